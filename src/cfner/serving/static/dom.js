// Create elements. Strings always become text nodes, so texts and labels are never markup.

export const $ = (id) => document.getElementById(id);

/** An element with classes, properties and children; `h` is the hue of its type. */
export function make(tag, { className = "", title, hue, value, ...attributes } = {}, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (title !== undefined) element.title = title;
  if (hue !== undefined) element.style.setProperty("--h", String(hue));
  if (value !== undefined) element.style.setProperty("--v", String(value));
  for (const [name, content] of Object.entries(attributes)) {
    if (content !== undefined && content !== null) element.setAttribute(name, String(content));
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

export function show(element, visible) {
  element.hidden = !visible;
}
