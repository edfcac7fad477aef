// Files that are dropped onto the page, or opened with the button.

import { $ } from "./dom.js";
import { UnreadableFile, readFiles } from "./texts.js";

/** `take(text, eachLine)` gets their content, `complain(words)` any problem. */
export function listenForFiles(take, complain) {
  const box = $("write");
  const dragsFiles = (event) => event.dataTransfer?.types.includes("Files");
  const read = async (files) => {
    try {
      const { text, eachLine, told } = await readFiles(files);
      $("dropped").textContent = told;
      take(text, eachLine);
    } catch (error) {
      if (!(error instanceof UnreadableFile)) throw error;
      $("dropped").textContent = "";
      complain(error.message);
    }
  };
  $("open").addEventListener("click", () => $("files").click());
  $("files").addEventListener("change", () => {
    const files = [...$("files").files];
    $("files").value = ""; // so that the same file can be opened again
    read(files);
  });
  document.addEventListener("dragover", (event) => {
    if (!dragsFiles(event)) return;
    event.preventDefault(); // else the browser would leave the page to show the file
    box.classList.add("dropping");
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) box.classList.remove("dropping");
  });
  document.addEventListener("drop", (event) => {
    box.classList.remove("dropping");
    if (!dragsFiles(event)) return;
    event.preventDefault();
    read([...event.dataTransfer.files]);
  });
}
