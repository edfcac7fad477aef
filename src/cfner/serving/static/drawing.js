// Texts with their entities, legends, lists of differences.

import { make } from "./dom.js";

const SIGNS = { lost: "−", gained: "+", retyped: "≠", moved: "↔" };
const WORDS = { lost: "lost", gained: "gained", retyped: "another type", moved: "other boundaries" };

const LONG_NAME = 32; // characters; of a longer one the beginning is shown
const SHORT_NAME = 16; // stays on one line

/** Distinct hues for types that were learned in succession. */
export class Hues {
  constructor(types) {
    this.order = new Map(types.map((type, index) => [type, index]));
  }

  of(type) {
    const index = this.order.get(type) ?? this.order.size;
    return Math.round((255 + index * 137.508) % 360);
  }
}

function drawEntity(characters, entity, hues, kind) {
  const score = entity.score ?? null;
  const name = entity.type.length > LONG_NAME ? `${entity.type.slice(0, LONG_NAME)}…` : entity.type;
  const label = make(
    "span",
    { className: name.length > SHORT_NAME ? "label" : "label short" },
    name,
    score === null ? null : make("span", { className: "score" }, score.toFixed(2)),
  );
  const sign = kind ? make("span", { className: "sign", "aria-hidden": "true" }, SIGNS[kind]) : null;
  const title = [
    [entity.type, WORDS[kind]].filter(Boolean).join(", "),
    score === null ? "" : `Score ${score.toFixed(3)}: the probability that the model gives this type, mean over the words.`,
  ].filter(Boolean).join(". ");
  const attributes = { className: `entity ${kind ?? ""}`.trim(), hue: hues.of(entity.type), title };
  return make("mark", attributes, sign, characters.slice(entity.start, entity.end).join(""), label);
}

/** The texts into `place`, several as a numbered list; `found` and `kinds` have an entry for each. */
export function drawTexts(place, texts, found, hues, kinds = []) {
  place.classList.toggle("several", texts.length > 1);
  if (texts.length === 1) {
    drawText(place, texts[0], found[0], hues, kinds[0]);
    return;
  }
  place.replaceChildren(
    ...texts.map((text, index) => {
      const item = make("div", { className: "item", dir: "auto", "data-number": index + 1 });
      drawText(item, text, found[index], hues, kinds[index]);
      return item;
    }),
  );
}

/** Positions count code points, as on the server; JavaScript strings count UTF-16 units. */
function drawText(place, text, entities, hues, kinds = new Map()) {
  const characters = Array.from(text);
  const pieces = [];
  let at = 0;
  for (const entity of entities) {
    pieces.push(characters.slice(at, entity.start).join(""));
    pieces.push(drawEntity(characters, entity, hues, kinds.get(entity)));
    at = entity.end;
  }
  pieces.push(characters.slice(at).join(""));
  place.replaceChildren(...pieces);
}

export function drawEmpty(place, words) {
  place.classList.remove("several");
  place.replaceChildren(make("span", { className: "empty" }, words));
}

/** All types with their counts in the text; dashed and marked if the step does not know them. */
export function drawLegend(place, types, known, entities, hues) {
  const counts = new Map();
  for (const entity of entities) counts.set(entity.type, (counts.get(entity.type) ?? 0) + 1);
  place.replaceChildren(
    ...types.map((type) => {
      const knows = known.has(type);
      const count = counts.get(type) ?? 0;
      return make(
        "li",
        { className: knows ? "" : "unknown", title: knows ? `${type}: found ${count} ${count === 1 ? "time" : "times"} here` : `${type}: the step has not learned it` },
        make("span", { className: "dot", hue: hues.of(type), "aria-hidden": "true" }),
        make("span", { className: "name" }, type),
        make("span", { className: "count" }, knows ? String(count) : "not known"),
      );
    }),
  );
}

export function drawChanges(place, found) {
  place.replaceChildren(
    ...found.map(({ kind, old, fresh, number }) => {
      const quote = (entity) => make("q", {}, entity.text);
      const story = {
        lost: () => [quote(old), ` was ${old.type}`],
        gained: () => [quote(fresh), ` is now ${fresh.type}`],
        retyped: () =>
          old.text === fresh.text
            ? [quote(old), ` was ${old.type}, is now ${fresh.type}`]
            : [quote(old), ` was ${old.type}; now `, quote(fresh), ` is ${fresh.type}`],
        moved: () => [quote(old), " is now ", quote(fresh), ` (${old.type})`],
      }[kind]();
      return make(
        "li",
        { className: kind },
        make("span", { className: "sign", "aria-hidden": "true" }, SIGNS[kind]),
        make("span", { className: "what" }, WORDS[kind]),
        make("span", { className: "story" }, ...story, number ? ` · text ${number}` : ""),
      );
    }),
  );
}
