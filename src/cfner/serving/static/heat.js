// The table of F1 by type (rows) and step (columns). All its figures were measured on the same sentences: a series.
// Other series can be selected, but are never mixed with it.

import { $, make, show } from "./dom.js";

const MUCH = 5; // points of F1: a loss that deserves a colour

const points = (value) => (Math.abs(value) < 0.05 ? "0.0" : `${value < 0 ? "−" : ""}${Math.abs(value).toFixed(1)}`);

/** Best earlier F1 minus the last one; null where there is no earlier one. */
function loss(row) {
  const measured = row.filter((f1) => f1 !== null);
  return measured.length > 1 ? Math.max(...measured.slice(0, -1)) - measured.at(-1) : null;
}

/** Where figures turn from one ink to the other, light and dark: see page.css. */
const strength = (f1) => (f1 > 82 ? "f1 high" : f1 > 52 ? "f1 mid" : "f1");

function cell(step, f1, knows, title) {
  const attributes = { title, "data-step": step.step };
  if (f1 !== null) return make("td", { className: strength(f1), value: f1 / 100, ...attributes }, f1.toFixed(0));
  return knows ? make("td", { className: "unscored", ...attributes }, "–") : make("td", { className: "not-yet", ...attributes }, "·");
}

/** What a figure is and what it was measured on: shown on hover and tap. */
function explained(name, step, score, knows, on) {
  if (!knows) return `Step ${step.step} has not learned ${name}.`;
  if (!score) return `Step ${step.step} has no score of ${name} on ${on}.`;
  return (
    `${name} after step ${step.step}: F1 ${score.f1.toFixed(1)}, from precision ${score.precision.toFixed(1)} (of what is ` +
    `found, how much is right) and recall ${score.recall.toFixed(1)} (of the ${score.mentions} mentions, how many are found). ` +
    `Measured on ${on}.`
  );
}

function explainedMean(step, f1, on) {
  if (f1 === null) return `Step ${step.step} was not scored on all its types on ${on}, so there is no F1 over all of them.`;
  return (
    `All types after step ${step.step}: F1 ${f1.toFixed(1)} over all mentions together (micro). Later steps have more types ` +
    `to find, so a lower figure need not be a loss. Measured on ${on}.`
  );
}

function explainedLoss(name, lost, on) {
  if (lost === null) return `${name} was measured once only, so nothing can be said about forgetting.`;
  const moved = lost >= 0 ? `${lost.toFixed(1)} points below` : `${(-lost).toFixed(1)} points above`;
  return `${name}: its last F1 is ${moved} its best earlier one. Measured on ${on}.`;
}

let marked = []; // the chosen steps
let shown = null; // the hash of the series that was chosen; null: the first

/** The series, as a choice where there are several, then the table of the one that is chosen. */
export function drawSeries(model, types, hues, choose) {
  const named = model.series.filter((series) => series.recorded);
  const index = Math.max(0, named.findIndex((series) => series.hash === shown));
  const select = $("heat-series");
  select.replaceChildren(...named.map((series) => make("option", {}, series.label)));
  named.forEach((series, each) => (select.options[each].value = series.hash));
  if (named.length) select.value = named[index].hash;
  select.onchange = () => {
    shown = select.value;
    drawSeries(model, types, hues, choose);
    markChosen(marked);
  };
  show($("heat-choice"), named.length > 1);
  $("heat-on").textContent = named.length ? `Measured on ${named[index].label}.` : "";
  show($("heat-on"), named.length > 0);
  drawHeat(model.steps, named[index] ?? { steps: {}, label: "recorded sentences" }, types, hues, choose);
  sayWhatIsMissing(model, named[index]?.steps ?? {}, named.length);
  drawEstimates(model.steps);
}

function drawHeat(steps, { steps: measured, label: on }, types, hues, choose) {
  const scores = new Map(steps.map((step) => [step, new Map(Object.entries(measured[step.step]?.per_type ?? {}))]));
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, make("span", { className: "hidden" }, "Type")),
    ...steps.map((step) => {
      const title = `Show step ${step.step}: ${step.name}`;
      const button = make("button", { type: "button", title, "aria-label": title, "data-step": step.step }, String(step.step));
      button.addEventListener("click", () => choose(step.step));
      return make("th", { scope: "col" }, button);
    }),
    make("th", { scope: "col", title: "Forgetting: a type's best earlier F1 minus its last, in points." }, "forgetting"),
  );
  const row = (name, values, className, hue) => {
    // the row of all types is a mean over a growing set of types, so a lower mean need not be a loss
    const lost = hue === undefined ? null : loss(values.map(([, f1]) => f1));
    const big = lost !== null && lost >= MUCH;
    return make(
      "tr",
      { className },
      make(
        "th",
        { scope: "row", title: name },
        hue === undefined ? null : make("span", { className: "dot", hue, "aria-hidden": "true" }),
        name,
      ),
      ...values.map(([step, f1, knows, title]) => cell(step, f1, knows, title)),
      make(
        "td",
        { className: big ? "lost-points much" : "lost-points", title: hue === undefined ? undefined : explainedLoss(name, lost, on) },
        lost === null ? "" : points(lost),
      ),
    );
  };
  const body = types.map((type) =>
    row(
      type,
      steps.map((step) => {
        const score = scores.get(step).get(type);
        const knows = step.types.includes(type);
        return [step, score?.f1 ?? null, knows, explained(type, step, score, knows, on)];
      }),
      "",
      hues.of(type),
    ),
  );
  // a mean over some of its types only is not comparable with the others in its row
  const all = steps.map((step) => {
    const f1 = isWhole(step, measured) ? measured[step.step].micro_f1 : null;
    return [step, f1, true, explainedMean(step, f1, on)];
  });
  body.push(row("all (micro)", all, "all"));
  $("heat-table").replaceChildren(make("thead", {}, head), make("tbody", {}, ...body));
}

/** Whether every type that the step knows was scored. */
function isWhole(step, measured) {
  const scores = measured[step.step];
  return Boolean(scores) && step.types.every((type) => Object.hasOwn(scores.per_type, type));
}

function sayWhatIsMissing(model, measured, choices) {
  const numbers = (steps) => steps.map((step) => step.step);
  const list = (names) => `${names.length > 1 ? "Steps" : "Step"} ${names.join(", ")}`;
  const told = [];
  const steps = model.steps;
  const missing = numbers(steps.filter((step) => !measured[step.step]));
  if (missing.length) {
    told.push(`${list(missing)} ${missing.length > 1 ? "have" : "has"} no scores on these sentences.`);
  }
  const partly = numbers(steps.filter((step) => measured[step.step] && !isWhole(step, measured)));
  if (partly.length) {
    told.push(`${list(partly)} ${partly.length > 1 ? "were" : "was"} scored on some of the types only.`);
  }
  const pruned = numbers(steps.filter((step) => step.pruned));
  if (pruned.length) told.push(`${list(pruned)} cannot be used: the weights were removed to free the disk.`);
  const damaged = numbers(steps.filter((step) => step.problem && !step.pruned));
  if (damaged.length) told.push(`${list(damaged)} cannot be used: the files are damaged.`);
  if (choices > 1) told.push("Figures of other sentences are not comparable with these.");
  const alone = model.series.filter((series) => !series.recorded).flatMap((series) => Object.keys(series.steps));
  if (alone.length) {
    told.push(
      `${list(alone.sort((a, b) => a - b))}: there are scores of which nobody recorded the sentences; not shown, ` +
        "because they are comparable with none.",
    );
  }
  $("heat-missing").textContent = told.join(" ");
  show($("heat-missing"), told.length > 0);
}

/** Scores of each step's types when it was learned; shown separately, since they are not part of a series. */
function drawEstimates(steps) {
  const rows = steps
    .filter((step) => step.estimate)
    .map((step) => {
      const types = step.estimate.types.map(({ type, f1, low, high, enough }) => {
        const few = enough ? "" : ", too few mentions";
        return `${type} ${f1.toFixed(0)} (${low.toFixed(0)} to ${high.toFixed(0)}${few})`;
      });
      return make("li", { title: `Measured with ${step.estimate.measured_with}.` }, `Step ${step.step}: ${types.join(", ")}`);
    });
  $("heat-estimates-list").replaceChildren(...rows);
  show($("heat-estimates"), rows.length > 0);
}

const INVITATION = "Point at a figure, or tap it, to read what it is and what it was measured on.";

/** The explanation of a figure below the table, for users who cannot hover. */
export function explainFigures() {
  $("figure").textContent = INVITATION;
  const tell = (event) => {
    const figure = event.target.closest?.("td[title], th[title], li[title]");
    if (figure) $("figure").textContent = figure.title;
  };
  for (const kind of ["pointerover", "click"]) $("heat").addEventListener(kind, tell);
}

/** Mark the chosen steps in the table, and bring the last of them into sight. */
export function markChosen(numbers) {
  marked = numbers;
  const chosen = new Set(numbers.map(String));
  for (const button of $("heat-table").querySelectorAll("button[data-step]")) {
    const current = chosen.has(button.dataset.step);
    button.setAttribute("aria-current", String(current));
  }
  for (const each of $("heat-table").querySelectorAll("td[data-step]")) {
    each.classList.toggle("chosen", chosen.has(each.dataset.step));
  }
  intoSight($("heat-table").querySelector(`button[data-step="${numbers.at(-1)}"]`));
}

/** Scroll the table sideways only; scrollIntoView would move the page as well. */
function intoSight(button) {
  const box = $("heat-scroll");
  const column = button.getBoundingClientRect();
  const frame = box.getBoundingClientRect();
  const names = box.querySelector("tbody th").getBoundingClientRect().width;
  if (column.right > frame.right) box.scrollLeft += column.right - frame.right + 8;
  else if (column.left < frame.left + names) box.scrollLeft -= frame.left + names - column.left + 8;
}
