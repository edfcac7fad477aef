// The page: what is chosen, what is shown, and what happens when something changes.

import { differences, kindsOf } from "./differences.js";
import { $, make, show } from "./dom.js";
import { Hues, drawChanges, drawEmpty, drawLegend, drawText } from "./drawing.js";
import { drawSeries, markChosen } from "./heat.js";
import { readLink, writeLink } from "./link.js";
import { ServerError, fetchEntities, fetchModel, onKeyNeeded, rememberKey } from "./server.js";
import { startTheme } from "./theme.js";

const EXAMPLE =
  "Ada Lovelace met Charles Babbage in London in June 1833. The Analytical Engine was never built, " +
  "but the Science Museum paid £500 to show a part of it.";
const WAIT_WHILE_TYPING = 300; // milliseconds
const LOOK_AGAIN = 20_000;
const PLAY_EACH = 1_400;

const state = { text: "", step: null, compare: null }; // step null: whichever is current
let model = null;
let types = [];
let hues = new Hues([]);
let asking = null; // AbortController of the question under way
let typing = null;
let linking = null;
let playing = null;
const answers = new Map(); // step's hash, number and text -> entities

const facts = (number) => model.steps.find((step) => step.step === number);
const chosen = () => state.step ?? model.current;
const link = () => location.pathname + writeLink(state);
const counted = (number, one, many) => `${number} ${number === 1 ? one : many}`;

// -- the model ---------------------------------------------------------------------------------------------

async function loadModel() {
  const fresh = await fetchModel();
  if (model && JSON.stringify(fresh) === JSON.stringify(model)) return false;
  model = fresh;
  answers.clear();
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

function drawOne(found) {
  drawText($("left-text"), state.text, found, hues);
  drawLegend($("legend"), types, new Set(facts(chosen()).types), found, hues);
  say(`${counted(found.length, "entity", "entities")} found${model.has_steps ? ` by step ${chosen()}` : ""}.`);
}

function drawTwo(before, after) {
  const found = differences(before, after);
  drawText($("left-text"), state.text, before, hues, kindsOf(found, "old"));
  drawText($("right-text"), state.text, after, hues, kindsOf(found, "fresh"));
  drawChanges($("changes"), found);
  const known = new Set(state.compare.flatMap((step) => facts(step).types));
  drawLegend($("legend"), types, known, after, hues);
  say(
    found.length
      ? `${counted(found.length, "difference", "differences")} between step ${state.compare[0]} and step ${state.compare[1]}.`
      : `Step ${state.compare[0]} and step ${state.compare[1]} agree on this text.`,
  );
}

function drawNothing() {
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

async function entitiesOf(number, signal) {
  const known = facts(number);
  const name = `${known.hash}/${number}/${state.text}`;
  if (!answers.has(name)) {
    if (known.problem) throw new ServerError(503, `Step ${number} cannot be used. ${known.problem}`);
    const said = await fetchEntities(state.text, number, signal);
    if (answers.size > 300) answers.clear();
    answers.set(name, said.results[0].entities);
  }
  return answers.get(name);
}

async function answer() {
  asking = new AbortController();
  const { signal } = asking;
  complain("");
  if (state.text.trim() === "") {
    $("answers").setAttribute("aria-busy", "false");
    drawNothing();
    return;
  }
  $("answers").setAttribute("aria-busy", "true");
  try {
    const steps = state.compare ?? [chosen()];
    const found = await Promise.all(steps.map((step) => entitiesOf(step, signal)));
    if (signal.aborted) return;
    if (state.compare) drawTwo(...found);
    else drawOne(found[0]);
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
  $("example").addEventListener("click", () => choose({ text: EXAMPLE }));
  $("link").addEventListener("click", copyLink);
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

async function copyLink() {
  const label = $("link").textContent;
  try {
    await navigator.clipboard.writeText(location.origin + link());
    $("link").textContent = "Copied";
  } catch {
    $("link").textContent = "Copy it from the address bar";
  }
  setTimeout(() => ($("link").textContent = label), 2000);
}

function openLink() {
  const { text, step, compare } = readLink(location.hash);
  Object.assign(state, { text: text ?? "", step, compare });
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
  listen();
  openLink();
  document.documentElement.dataset.ready = "true";
}

start();
