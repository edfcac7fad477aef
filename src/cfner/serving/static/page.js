// The page: what is chosen, what is shown, and what happens when something changes.

import { entitiesOf, forgetAnswers } from "./asking.js";
import { copy, showToCopy } from "./clipboard.js";
import { differences, kindsOf } from "./differences.js";
import { $, make, show } from "./dom.js";
import { Hues, drawChanges, drawEmpty, drawLegend, drawTexts } from "./drawing.js";
import { listenForFiles } from "./drop.js";
import { EXAMPLES, mostTelling } from "./examples.js";
import { drawSeries, explainFigures, markChosen } from "./heat.js";
import { readLink, writeLink } from "./link.js";
import { ServerError, fetchModel, onKeyNeeded, rememberKey } from "./server.js";
import { MOST_TEXTS, textsOf } from "./texts.js";
import { startTheme } from "./theme.js";

const WAIT_WHILE_TYPING = 300; // milliseconds
const LOOK_AGAIN = 20_000;
const PLAY_EACH = 1_400;

// step null: whichever is current; least: the lowest score that is shown
const state = { text: "", lines: false, least: 0, step: null, compare: null };
let firstText = EXAMPLES[0]; // what the page opens with, if the link brings no text
let shown = null; // what is drawn: the texts, and of each step their entities
let model = null;
let types = [];
let hues = new Hues([]);
let asking = null; // AbortController of the question under way
let typing = null;
let linking = null;
let playing = null;

const facts = (number) => model.steps.find((step) => step.step === number);
const chosen = () => state.step ?? model.current;
const link = () => location.pathname + writeLink({ ...state, text: state.text === firstText ? null : state.text });
const counted = (number, one, many) => `${number} ${number === 1 ? one : many}`;

// -- the model ---------------------------------------------------------------------------------------------

async function loadModel() {
  const fresh = await fetchModel();
  if (model && JSON.stringify(fresh) === JSON.stringify(model)) return false;
  model = fresh;
  forgetAnswers();
  types = [...new Set(model.steps.flatMap((step) => step.types))];
  hues = new Hues(types);
  document.title = `${model.name} · cfner`;
  $("about").replaceChildren(
    make("b", {}, model.name),
    ` · ${counted(model.types.length, "type", "types")}` +
      (model.has_steps ? ` · step ${model.current} is current` : " · a checkpoint without steps"),
  );
  const several = model.steps.length > 1;
  show($("modes"), several);
  show($("heat"), model.has_steps);
  $("page").classList.toggle("with-heat", model.has_steps);
  $("slider").max = String(model.steps.length);
  for (const select of [$("left-step"), $("right-step")]) {
    select.replaceChildren(
      ...model.steps.map((step) => make("option", {}, `${step.step} · ${step.name}`)),
    );
    model.steps.forEach((step, index) => (select.options[index].value = String(step.step)));
  }
  if (model.has_steps) drawSeries(model, types, hues, chooseFromTable);
  dropUnknownSteps();
  return true;
}

function dropUnknownSteps() {
  if (state.step !== null && !facts(state.step)) state.step = null;
  if (state.compare && !state.compare.every((step) => facts(step))) state.compare = null;
}

// -- choosing ----------------------------------------------------------------------------------------------

function choose(change, { now = true } = {}) {
  asking?.abort(); // its answer is about what was chosen before
  Object.assign(state, change);
  clearTimeout(linking); // browsers refuse to change the address with every key
  linking = setTimeout(() => history.replaceState(null, "", link()), WAIT_WHILE_TYPING);
  drawControls();
  clearTimeout(typing);
  if (now) answer();
  else typing = setTimeout(answer, WAIT_WHILE_TYPING);
}

function chooseFromTable(number) {
  if (state.compare) choose({ compare: [state.compare[0], number] });
  else choose({ step: number });
}

function move(by) {
  const index = model.steps.findIndex((step) => step.step === chosen()) + by;
  if (index >= 0 && index < model.steps.length) choose({ step: model.steps[index].step });
}

function play(on) {
  clearInterval(playing);
  playing = on ? setInterval(next, PLAY_EACH) : null;
  $("play").setAttribute("aria-pressed", String(on));
  $("play").textContent = on ? "Stop" : "Play";
  if (on) choose({ step: model.steps[0].step });

  function next() {
    if (chosen() === model.steps.at(-1).step) play(false);
    else if ($("answers").getAttribute("aria-busy") !== "true") move(1);
  }
}

// -- drawing -----------------------------------------------------------------------------------------------

function drawControls() {
  const two = state.compare !== null;
  const several = model.steps.length > 1;
  $("mode-two").checked = two;
  $("mode-one").checked = !two;
  show($("time"), several && !two);
  show($("choose"), two);
  show($("right"), two);
  show($("left-title"), two);
  show($("changes"), two);
  $("answers").classList.toggle("two", two);
  const length = Array.from(state.text).length;
  $("length").textContent = length ? counted(length, "character", "characters") : "";
  if ($("text").value !== state.text) $("text").value = state.text;
  $("lines").checked = state.lines;
  $("least").value = String(state.least);
  $("least-shown").textContent = state.least.toFixed(2);
  $("least-track").style.setProperty("--v", String(state.least));
  if (two) {
    [$("left-step").value, $("right-step").value] = state.compare.map(String);
    drawTitle($("left-title"), state.compare[0]);
    drawTitle($("right-title"), state.compare[1]);
  } else drawTime();
  if (model.has_steps) markChosen(two ? state.compare : [chosen()]);
}

function drawTitle(place, number) {
  place.replaceChildren(make("b", {}, `Step ${number}`), ` · ${facts(number).name}`);
}

function drawTime() {
  const step = facts(chosen());
  const index = model.steps.indexOf(step);
  $("slider").value = String(index + 1);
  $("slider").setAttribute("aria-valuetext", `Step ${step.step} of ${model.steps.length}: ${step.name}`);
  drawStops(index);
  $("earlier").disabled = index === 0;
  $("later").disabled = index === model.steps.length - 1;
  const day = step.created ? new Date(step.created) : null;
  const dated = day && !Number.isNaN(day.getTime()) ? ` · ${day.toLocaleDateString(undefined, { dateStyle: "medium" })}` : "";
  $("caption").replaceChildren(
    make("b", {}, `Step ${step.step} of ${model.steps.length}`),
    ` · ${step.name}${dated}`,
    step.step === model.current ? make("span", { className: "pill" }, "current") : "",
  );
}

function drawStops(reached) {
  const last = model.steps.length - 1;
  $("stops").replaceChildren(...model.steps.map((_, index) => make("li", { className: index <= reached ? "past" : "" })));
  $("stops").classList.toggle("many", last > 10);
  $("stops").style.setProperty("--v", String(last ? reached / last : 0));
}

/** What was found, without what the threshold hides. */
function drawFound() {
  const { texts, found } = shown;
  const kept = found.map((step) => step.map((entities) => entities.filter(({ score }) => (score ?? 1) >= state.least)));
  const count = (steps) => steps.flat(2).length;
  const hidden = count(found) - count(kept);
  $("hidden").textContent = hidden ? `${hidden} hidden` : "";
  $("threshold").title =
    "A score is the probability that the model gives a mention's type, mean over its words. Which mentions are found at all, " +
    "the model decides; this only hides those with a lower score.";
  if (state.compare) drawTwo(texts, ...kept);
  else drawOne(texts, kept[0]);
}

function drawOne(texts, found) {
  drawTexts($("left-text"), texts, found, hues);
  const all = found.flat();
  drawLegend($("legend"), types, new Set(facts(chosen()).types), all, hues);
  say(
    `${counted(all.length, "entity", "entities")} found${texts.length > 1 ? ` in ${texts.length} texts` : ""}` +
      `${model.has_steps ? ` by step ${chosen()}` : ""}.${leftOut()}`,
  );
}

function drawTwo(texts, before, after) {
  const changes = texts.map((_, index) => differences(before[index], after[index]));
  drawTexts($("left-text"), texts, before, hues, changes.map((found) => kindsOf(found, "old")));
  drawTexts($("right-text"), texts, after, hues, changes.map((found) => kindsOf(found, "fresh")));
  const number = (index) => (texts.length > 1 ? index + 1 : null);
  const found = changes.flatMap((some, index) => some.map((change) => ({ ...change, number: number(index) })));
  drawChanges($("changes"), found);
  const known = new Set(state.compare.flatMap((step) => facts(step).types));
  drawLegend($("legend"), types, known, after.flat(), hues);
  const them = texts.length > 1 ? `these ${texts.length} texts` : "this text";
  say(
    (found.length
      ? `${counted(found.length, "difference", "differences")} between step ${state.compare[0]} and step ${state.compare[1]}.`
      : `Step ${state.compare[0]} and step ${state.compare[1]} agree on ${them}.`) + leftOut(),
  );
}

function leftOut() {
  const more = shown.given - shown.texts.length;
  return more ? ` The last ${more} of ${shown.given} texts are left out: 'cfner predict' tags any number.` : "";
}

function drawNothing() {
  shown = null;
  $("hidden").textContent = "";
  for (const place of [$("left-text"), $("right-text")]) drawEmpty(place, "No text yet.");
  $("changes").replaceChildren();
  const known = state.compare ? state.compare.flatMap((step) => facts(step).types) : facts(chosen()).types;
  drawLegend($("legend"), types, new Set(known), [], hues);
  say("");
}

function say(words) {
  $("said").textContent = words;
}

function complain(words) {
  $("trouble").textContent = words;
  show($("trouble"), words !== "");
}

// -- asking ------------------------------------------------------------------------------------------------

async function answer() {
  asking = new AbortController();
  const { signal } = asking;
  complain("");
  const given = textsOf(state.text, state.lines);
  const texts = given.slice(0, MOST_TEXTS);
  if (!texts.length) {
    $("answers").setAttribute("aria-busy", "false");
    drawNothing();
    return;
  }
  $("answers").setAttribute("aria-busy", "true");
  try {
    const steps = state.compare ?? [chosen()];
    const found = await Promise.all(steps.map((step) => entitiesOf(facts(step), texts, model.max_texts, signal)));
    if (signal.aborted) return;
    shown = { steps, texts, found, given: given.length };
    drawFound();
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof ServerError)) throw error;
    drawNothing();
    complain(error.message);
    play(false);
  }
  $("answers").setAttribute("aria-busy", "false");
}

/** A step may have been added, or another one made current, since the page was opened. */
async function lookAgain() {
  if (document.hidden) return;
  try {
    if (await loadModel()) choose({});
  } catch (error) {
    if (!(error instanceof ServerError)) throw error; // the next question will tell it
  }
}

function askUser(wrong) {
  const dialog = $("key-dialog");
  show($("key-trouble"), wrong);
  $("key").value = "";
  dialog.showModal();
  return new Promise((done) => {
    dialog.addEventListener("close", () => done(rememberKey($("key").value.trim())), { once: true });
  });
}

// -- events ------------------------------------------------------------------------------------------------

function listen() {
  $("text").addEventListener("input", () => choose({ text: $("text").value }, { now: false }));
  $("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) choose({ text: $("text").value });
  });
  $("example").addEventListener("click", () => {
    const next = EXAMPLES[(EXAMPLES.indexOf(state.text) + 1) % EXAMPLES.length];
    choose({ text: next, lines: false });
  });
  $("lines").addEventListener("change", () => choose({ lines: $("lines").checked }));
  $("least").addEventListener("input", () => choose({ least: Number($("least").value) }));
  $("link").addEventListener("click", () => copy($("link"), location.origin + link(), () => "Copy it from the address bar"));
  $("copy").addEventListener("click", () => copy($("copy"), JSON.stringify(asJson(), null, 1), showToCopy));
  listenForFiles((text, lines) => choose({ text, lines }), complain);
  explainFigures();
  $("slider").addEventListener("input", () => {
    play(false);
    choose({ step: model.steps[Number($("slider").value) - 1].step });
  });
  $("earlier").addEventListener("click", () => move(-1));
  $("later").addEventListener("click", () => move(1));
  $("play").addEventListener("click", () => play(playing === null));
  $("mode-one").addEventListener("change", () => choose({ compare: null, step: state.compare?.[1] ?? state.step }));
  $("mode-two").addEventListener("change", startComparing);
  $("left-step").addEventListener("change", () => choose({ compare: [Number($("left-step").value), state.compare[1]] }));
  $("right-step").addEventListener("change", () => choose({ compare: [state.compare[0], Number($("right-step").value)] }));
  $("exchange").addEventListener("click", () => choose({ compare: [state.compare[1], state.compare[0]] }));
  $("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the fragment is the permalink's
    $("text").focus();
  });
  window.addEventListener("hashchange", () => openLink());
  document.addEventListener("visibilitychange", lookAgain);
  setInterval(lookAgain, LOOK_AGAIN);
}

function startComparing() {
  play(false);
  const index = model.steps.findIndex((step) => step.step === chosen());
  const before = model.steps[index > 0 ? index - 1 : 0].step;
  const after = index > 0 ? chosen() : model.steps[1].step;
  choose({ compare: [before, after] });
}

/** The server's answers for what is shown: of one step, or of both compared steps. */
function asJson() {
  const { steps, texts, found } = shown ?? { steps: state.compare ?? [chosen()], texts: [], found: [[], []] };
  const told = steps.map((step, side) => ({
    step,
    hash: facts(step).hash,
    results: texts.map((text, index) => ({
      text,
      entities: found[side][index].filter(({ score }) => (score ?? 1) >= state.least),
    })),
  }));
  const about = { model: model.name, ...(state.least ? { min_score: state.least } : {}) };
  return state.compare ? { ...about, steps: told } : { ...about, ...told[0] };
}

/** Of the examples, the one that shows most of this model. */
async function chooseExample() {
  try {
    firstText = mostTelling(await entitiesOf(facts(chosen()), EXAMPLES, model.max_texts));
  } catch (error) {
    if (!(error instanceof ServerError)) throw error; // opening it will tell
  }
}

function openLink() {
  const { text, lines, least, step, compare } = readLink(location.hash);
  Object.assign(state, { text: text ?? firstText, lines, least, step, compare });
  dropUnknownSteps();
  choose({});
}

async function start() {
  startTheme($("theme"));
  onKeyNeeded(askUser);
  try {
    await loadModel();
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    $("about").textContent = "";
    complain(error.message);
    return;
  }
  if (readLink(location.hash).text === null) await chooseExample();
  listen();
  openLink();
  document.documentElement.dataset.ready = "true";
}

start();
