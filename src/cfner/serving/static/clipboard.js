// Copying: to the clipboard where the browser allows it, and otherwise where it can be marked and copied by hand.

import { $ } from "./dom.js";

/** Says so on the button. `instead` is called where there is no clipboard (a page over plain HTTP has none). */
export async function copy(button, text, instead) {
  const label = button.dataset.label ?? (button.dataset.label = button.textContent);
  let told = "Copied";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    told = instead(text);
  }
  button.textContent = told;
  setTimeout(() => (button.textContent = label), 2000);
}

export function showToCopy(text) {
  $("json-text").value = text;
  $("json-dialog").showModal();
  $("json-text").select();
  return "See the window";
}
