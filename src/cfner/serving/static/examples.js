// The initial text of the page: the example in which the model finds most.

export const EXAMPLES = [
  "Ada Lovelace met Charles Babbage in London in June 1833. The Analytical Engine was never built, " +
    "but the Science Museum paid £500 to show a part of it.",
  "Dr. Helen Marsh saw John Carter, a 62-year-old man from Boston, Massachusetts, on 03/14/2021. " +
    "Please call him at 617-555-0142 before the visit on Monday.",
  "Wake me up at seven on Friday, play some jazz in the kitchen, and tell me the weather in Berlin tomorrow.",
];

/** `found`: the entities of each example, in order. */
export function mostTelling(found) {
  const most = Math.max(...found.map((entities) => entities.length));
  return EXAMPLES[found.findIndex((entities) => entities.length === most)];
}
