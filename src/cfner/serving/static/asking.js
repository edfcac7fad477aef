// Request entities from the server: many texts in parts, with a cache.

import { ServerError, fetchEntities } from "./server.js";
import { MOST_TEXTS } from "./texts.js";

const TEXTS_AT_A_TIME = 32; // in one request: others are served in between
const CHARACTERS_AT_A_TIME = 50_000;

const answers = new Map(); // step's hash, number and text -> entities

export const forgetAnswers = () => answers.clear();

/** The entities of each text, from one step. */
export async function entitiesOf(step, texts, mostTexts, signal) {
  const name = (text) => `${step.hash}/${step.step}/${text}`;
  if (answers.size > 4 * MOST_TEXTS) answers.clear();
  const found = new Map(texts.map((text) => [name(text), answers.get(name(text))])); // cleared meanwhile or not
  const missing = texts.filter((text) => !found.get(name(text)));
  if (missing.length && step.problem) throw new ServerError(503, `Step ${step.step} cannot be used. ${step.problem}`);
  for (const some of batches(missing, Math.min(TEXTS_AT_A_TIME, mostTexts))) {
    const said = await fetchEntities(some, step.step, signal);
    some.forEach((text, index) => found.set(name(text), said.results[index].entities));
  }
  for (const [key, entities] of found) answers.set(key, entities);
  return texts.map((text) => found.get(name(text)));
}

function batches(texts, most) {
  const parts = [];
  let room = 0;
  for (const text of texts) {
    if (!parts.length || room < text.length || parts.at(-1).length >= most) {
      parts.push([]);
      room = CHARACTERS_AT_A_TIME;
    }
    parts.at(-1).push(text);
    room -= text.length;
  }
  return parts;
}
