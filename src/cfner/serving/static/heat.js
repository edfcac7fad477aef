// The table of F1 by step and type, with the steps across, as time goes.

import { $, make, show } from "./dom.js";

const MUCH = 5; // points of F1: a loss that deserves a colour

const points = (value) => (Math.abs(value) < 0.05 ? "0.0" : `${value > 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`);

/** Best earlier F1 minus the last one; null where there is no earlier one. */
function loss(row) {
  const measured = row.filter((f1) => f1 !== null);
  return measured.length > 1 ? Math.max(...measured.slice(0, -1)) - measured.at(-1) : null;
}

function cell(step, f1, knows, type) {
  if (f1 !== null) {
    const title = `${type}, step ${step.step}: F1 ${f1.toFixed(1)}`;
    return make("td", { className: "f1", value: f1 / 100, title, "data-step": step.step }, f1.toFixed(0));
  }
  if (!knows) {
    return make("td", { className: "not-yet", title: `${type} is not known to step ${step.step}`, "data-step": step.step }, "·");
  }
  return make("td", { className: "unscored", title: `Step ${step.step} was not scored on ${type}`, "data-step": step.step }, "–");
}

export function drawHeat(steps, types, hues, choose) {
  const scores = new Map(steps.map((step) => [step, new Map(Object.entries(step.scores?.per_type ?? {}))]));
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
    make("th", { scope: "col", title: "Best earlier F1 compared with the last one, in points" }, "since best"),
  );
  const row = (name, values, className, hue) => {
    // the row of all types is a mean of more and more of them: a lower one need not be a loss
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
      ...values.map(([step, f1, knows]) => cell(step, f1, knows, name)),
      make("td", { className: big ? "lost-points much" : "lost-points" }, lost === null ? "" : points(lost)),
    );
  };
  const body = types.map((type) =>
    row(
      type,
      steps.map((step) => [step, scores.get(step).get(type)?.f1 ?? null, step.types.includes(type)]),
      "",
      hues.of(type),
    ),
  );
  // over some of its types only, a mean would say something else than the others in its row
  const all = steps.map((step) => [step, isWhole(step) ? step.scores.micro_f1 : null, true]);
  body.push(row("all (micro)", all, "all"));
  $("heat-table").replaceChildren(make("thead", {}, head), make("tbody", {}, ...body));
  sayWhatIsMissing(steps);
}

/** Whether every type that the step knows was scored. */
function isWhole(step) {
  return Boolean(step.scores) && step.types.every((type) => Object.hasOwn(step.scores.per_type, type));
}

function sayWhatIsMissing(steps) {
  const names = steps.filter((step) => !step.scores).map((step) => step.step);
  const damaged = steps.filter((step) => step.problem).map((step) => step.step);
  const list = (numbers) => `${numbers.length > 1 ? "Steps" : "Step"} ${numbers.join(", ")}`;
  const told = [];
  if (names.length) {
    told.push(`${list(names)} ${names.length > 1 ? "have" : "has"} no scores: not evaluated when saved.`);
  }
  const partly = steps.filter((step) => step.scores && !isWhole(step)).map((step) => step.step);
  if (partly.length) {
    told.push(`${list(partly)} ${partly.length > 1 ? "were" : "was"} scored on some of the types only.`);
  }
  if (damaged.length) told.push(`${list(damaged)} cannot be used: the files are damaged.`);
  $("heat-missing").textContent = told.join(" ");
  show($("heat-missing"), told.length > 0);
}

/** Mark the chosen steps in the table, and bring the last of them into sight. */
export function markChosen(numbers) {
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
