// What is shown, as a link: text, step or two steps, behind the '#', which browsers never send to a server.

/** { text, step, compare: [before, after] | null } of a fragment; what is no number is left out. */
export function readLink(fragment) {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  const number = (text) => (/^[0-9]{1,9}$/.test(text ?? "") ? Number(text) : null);
  const pair = (parts.get("compare") ?? "").split("-").map(number);
  return {
    text: parts.get("text"),
    step: number(parts.get("step")),
    compare: pair.length === 2 && pair.every((step) => step !== null) ? pair : null,
  };
}

export function writeLink({ text, step, compare }) {
  const parts = new URLSearchParams();
  if (text) parts.set("text", text);
  if (compare) parts.set("compare", compare.join("-"));
  else if (step !== null) parts.set("step", String(step));
  const written = parts.toString();
  return written ? `#${written}` : "";
}
