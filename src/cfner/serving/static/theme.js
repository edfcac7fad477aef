// Light or dark: follows the system unless the user chooses.

const KEY = "cfner-theme";
const THEMES = ["auto", "light", "dark"];

export function startTheme(button) {
  let theme = "auto";
  try {
    theme = localStorage.getItem(KEY) ?? "auto";
  } catch {
    // storage may be switched off: the choice is then forgotten with the page
  }
  apply();
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // see above
    }
    apply();
  });

  function apply() {
    if (!THEMES.includes(theme)) theme = "auto";
    document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
  }
}
