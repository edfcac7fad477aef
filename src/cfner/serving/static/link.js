// The state of the page as a link: text, threshold and steps, after the '#', which browsers never send to a server.

/** { text, lines, least, step, compare: [before, after] | null } of a fragment; what is not a number is left out. */
export function readLink(fragment) {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  const number = (text) => (/^[0-9]{1,9}$/.test(text ?? "") ? Number(text) : null);
  const pair = (parts.get("compare") ?? "").split("-").map(number);
  return {
    text: parts.get("text"),
    lines: parts.get("lines") === "1",
    least: /^[01](\.[0-9]{1,3})?$/.test(parts.get("least") ?? "") ? Math.min(Number(parts.get("least")), 1) : 0,
    step: number(parts.get("step")),
    compare: pair.length === 2 && pair.every((step) => step !== null) ? pair : null,
  };
}

/** `text` is null where it is the example that the page opens with anyway. */
export function writeLink({ text, lines, least, step, compare }) {
  const parts = new URLSearchParams();
  if (text !== null) parts.set("text", text);
  if (lines) parts.set("lines", "1");
  if (least) parts.set("least", String(least));
  if (compare) parts.set("compare", compare.join("-"));
  else if (step !== null) parts.set("step", String(step));
  const written = parts.toString();
  return written ? `#${written}` : "";
}
