// Copy to the clipboard if the browser allows it; otherwise show the text for copying by hand.

import { $ } from "./dom.js";

/** Confirms on the button. Calls `instead` if there is no clipboard (as on pages over plain HTTP). */
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
