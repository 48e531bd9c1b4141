// One image at a time. The next ones are loaded and decoded in advance, and shown as soon as this one
// is answered: a key is always for the image on the screen, however slow the server is.

import * as api from "./api.js";
import * as choices from "./choices.js";
import { named, paint } from "./colours.js";
import * as sets from "./sets.js";
import { drawCurve } from "./curve.js";
import { $, about, bar, el, percent, redraw, toast } from "./dom.js";
import { fetchText, fullText, unfold } from "./text.js";
import { editNote, isMineFlagged, remarks, toggleFlag } from "./notes.js";
import { drawNeighbours, hideNeighbours } from "./neighbours.js";
import { Zoom } from "./zoom.js";

const AHEAD = 4;
const pictures = new Map(); // number of an image -> its decoded <img>, or the text
let questions = [];
const pending = new Set(); // images whose answers are being sent
let busy = false; // an answer is being undone
let last = null; // token of the last answer before the page was opened
let state = null;
let zoom = null;

export async function start(first) {
  zoom = new Zoom($("stage"), $("work"));
  state = first;
  last = first.last;
  $("why-title").textContent = about("Why this image");
  $("stage").classList.toggle("has-text", state.kind === "texts");
  drawChoices();
  $("skip").onclick = () => answer(null);
  $("submit").onclick = submit;
  $("undo").onclick = undo;
  $("flag").onclick = () => mark(toggleFlag);
  $("note-open").onclick = () => mark(editNote);
  await refill();
}

/** A class is the answer; where an image can have several, the class is switched on or off. */
const choose = (name) => state.multi ? sets.toggle(name, state) : answer(name);
const submit = () => answer(sets.current(state));

function drawChoices() {
  choices.draw(state, choose);
  sets.drawChosen(state);
}

/** Show a new state of the server, beside the image. */
export function update(now) {
  const classes = JSON.stringify(now.classes) !== JSON.stringify(state.classes);
  state = now;
  if (classes) drawChoices();
  drawSide();
  if ((classes || !questions.length) && !busy) refill(); // predictions are listed by class
}

async function refill() {
  try {
    await take(await api.next(AHEAD + pending.size));
  } catch (error) {
    api.complain(error.message);
  }
}

function take(reply) {
  questions = reply.questions.filter(({ image }) => !pending.has(image));
  last = reply.last;
  state.progress = reply.progress;
  const wanted = new Set(questions.map((question) => question.image));
  for (const image of pictures.keys()) if (!wanted.has(image)) pictures.delete(image);
  for (const question of questions) picture(question);
  return show();
}

function picture(question) {
  if (!pictures.has(question.image) && state.kind === "texts") {
    const held = { title: "" };
    held.ready = fetchText(question.image).then((reply) => {
      held.node = fullText(reply, question.belief !== null);
      held.title = reply.title;
      return true;
    }, () => false);
    pictures.set(question.image, held);
  } else if (!pictures.has(question.image)) {
    const node = el("img", { src: `/image/${question.image}`, alt: `Image to be labelled: ${question.path}`, draggable: "false" });
    pictures.set(question.image, { node, ready: node.decode().then(() => true, () => false) });
  }
  return pictures.get(question.image);
}

async function show() {
  const question = questions[0];
  if (!question) {
    const nothing = pending.size ? "Waiting for the server." : about(state.progress.images ? "All images have an answer." : "There are no images in this folder.");
    $("stage").replaceChildren(el("p", { class: "stage-note" }, nothing));
    delete $("stage").dataset.image;
    $("file").textContent = "";
    zoom.fresh();
    hideNeighbours($("neighbours"));
    drawSide();
    return;
  }
  if ($("stage").dataset.image === `${question.image}`) return drawSide(); // keep the scroll and zoom
  const shown = picture(question);
  if (!(await shown.ready)) {
    // The server has recorded that it cannot be shown, and sends another one.
    pictures.delete(question.image);
    toast(`${question.path} cannot be shown`);
    await refill();
    return;
  }
  if (questions[0] !== question) return;
  $("stage").replaceChildren(shown.node);
  $("stage").scrollTop = 0;
  $("stage").dataset.image = question.image;
  sets.clear(state);
  $("stage").classList.toggle("small", shown.node.naturalWidth < 200);
  $("file").textContent = shown.title ?? question.path;
  zoom.fresh();
  if (isHidden(question)) hideNeighbours($("neighbours"));
  else drawNeighbours($("neighbours"), question.image, state);
  drawSide();
}

async function answer(label) {
  const question = questions[0];
  if (busy || !question || $("stage").dataset.image !== `${question.image}`) return;
  const began = performance.now();
  choices.press(label);
  questions.shift();
  pending.add(question.image);
  const shown = show().then(() => performance.measure("next-image", { start: began, end: performance.now() }));
  try {
    const reply = await api.answer([{ token: api.token(), image: question.image, label }], AHEAD + pending.size);
    pending.delete(question.image);
    await shown;
    if (!busy) await take(reply);
  } catch (error) {
    pending.delete(question.image);
    api.complain(error.message);
    await refill();
  }
}

/** Flag the image that is shown, or write a note on it. */
async function mark(how) {
  const question = questions[0];
  if (!question || $("stage").dataset.image !== `${question.image}`) return;
  await how(question);
  const shown = questions[0]; // may be a new object for the same image
  if (shown?.image === question.image) Object.assign(shown, { flagged: question.flagged, notes: question.notes });
  drawMarks();
}

function drawMarks() {
  const question = questions[0];
  for (const id of ["flag", "note-open"]) $(id).disabled = !question;
  $("flag").setAttribute("aria-pressed", String(Boolean(question) && isMineFlagged(question)));
  const said = question ? remarks(question) : [];
  redraw($("remarks"), ...said);
  $("remarks").hidden = !said.length;
}

async function undo() {
  if (busy) return;
  busy = true;
  try {
    await api.allSent();
    const token = api.lastAnswer() ?? last;
    if (!token) return toast("There is nothing to undo.");
    const reply = await api.undo(token, AHEAD);
    await take(reply);
    toast(reply.undone > 1 ? `${reply.undone} answers undone.` : "Undone.");
  } catch (error) {
    api.complain(error.message);
  } finally {
    busy = false;
  }
}

/** The prediction for the image that is shown; undefined if it is hidden or unknown. */
function guess() {
  const belief = questions[0]?.belief;
  return belief && (state.multi ? sets.likely(state.classes, belief.probs) : sorted(belief)[0][0]);
}

export function key(event) {
  if (event.key === "Enter") {
    if (event.target.closest("button")) return false;
    if (state.multi && !event.shiftKey) submit();
    else if (!guess()) return false;
    else answer(guess());
  } else if (event.key === "/" && !$("find").hidden) choices.startFinding();
  else if (event.key === " ") answer(null);
  else if (event.key.toLowerCase() === "u") undo();
  else if (state.kind === "texts" && ["ArrowDown", "ArrowUp"].includes(event.key)) scroll(event.key);
  else {
    const found = classOf(event.key, state);
    if (found) choose(found);
    else if (event.key === ".") mark(toggleFlag);
    else if (event.key === ",") mark(editNote);
    else return zoom.key(event);
  }
  return true;
}

/** Show the rest of a long text, then scroll down and up. */
function scroll(direction) {
  if (direction === "ArrowDown" && unfold($("stage").querySelector(".text"))) return;
  const down = direction === "ArrowDown" ? 1 : -1;
  $("stage").scrollBy({ top: down * 0.7 * $("stage").clientHeight, behavior: "smooth" });
}

export const classOf = (key, { classes }) =>
  classes.find(({ keys }) => keys.includes(key.toLowerCase()))?.name;

function drawSide() {
  const question = questions[0];
  $("undo").disabled = !(api.lastAnswer() ?? last);
  $("why").dataset.reason = question?.reason ?? "";
  $("reason").replaceChildren(...(question ? because(question) : ["There is nothing to ask."]));
  $("belief").replaceChildren(...believed(question));
  drawMarks();
  drawProgress();
  drawCurve($("curve"), state);
}

function because({ reason, belief, round }) {
  if (belief && belief.round !== round) belief = null; // from a newer model than the one that asked
  const top = belief && (state.multi ? unsure(belief) : sorted(belief)).slice(0, 2).map(([name, p]) => `${name} ${percent(p)}`).join(", ");
  const rare = belief && percent(belief.density_rank);
  const texts = {
    uncertain: ["Uncertain", top ? about(`One of the images the model is least sure of: ${top}.`)
      : about("One of the images an earlier model was least sure of.")],
    new: ["New", belief ? about(`Unlike the labelled images: to the model, ${rare} of all images are more unusual.`)
      : about("Unlike the images that an earlier model was trained on.")],
    coverage: ["Coverage", about("Typical of a group of images that has no label yet.")],
    audit: ["Audit", "Drawn at random, to estimate the accuracy of the model."],
    second: ["Second opinion", about("Somebody else has labelled it: one in ten images is asked of two people.")],
    again: ["Check", about("The label of this image may be wrong: please answer again.")],
    random: ["Random", "The model has not chosen questions yet."],
  };
  const [name, text] = texts[reason] ?? ["Again", "You have undone your answer."];
  return [el("strong", { class: "tag" }, name), text];
}

const unsure = (belief) => sorted(belief).sort((a, b) => Math.abs(a[1] - 0.5) - Math.abs(b[1] - 0.5));

const sorted = (belief) =>
  state.classes.map(({ name }, i) => [name, belief.probs[i] ?? 0]).sort((a, b) => b[1] - a[1]);

/** Whether the prediction is hidden, because it could influence the answer. */
const isHidden = (question) => question?.reserved || ["again", "second"].includes(question?.reason);

function believed(question) {
  const say = (text) => [el("p", { class: "muted" }, text)];
  if (isHidden(question)) return say("Hidden for this question, so that it does not influence you.");
  if (!question?.belief) return say(state.rounds.length ? about("The model has not seen this image yet.") : "There is no model yet: it needs your first answers.");
  const list = sorted(question.belief), { multi } = state;
  const sure = multi ? sets.sureOfAll(question.belief.probs) : list[0][1];
  return [el("div", { class: "figure guess" },
    el("p", {}, el("strong", {}, ...named(guess())), el("span", { class: "muted" }, ` ${percent(sure)} sure`)),
    el("button", { id: "take", onclick: () => answer(guess()) }, "Accept ", el("kbd", {}, multi ? "Shift+Enter" : "Enter"))),
    ...list.slice(0, multi ? 8 : 5).map(([name, p], i) => el("div", { class: "belief" },
      el("span", { class: "name" }, name), paint(bar(p, (multi ? p <= 0.5 : i) ? "other of-class" : "of-class"), name), el("span", { class: "value" }, percent(p))))];
}

function drawProgress() {
  const { labelled, images, audited, classes } = state.progress;
  const planned = Math.min(state.budget ?? images, images);
  const most = Math.max(1, ...Object.values(classes));
  const open = $("progress").querySelector("details")?.open ?? false;
  redraw($("progress"),
    el("p", { class: "figure" }, el("strong", {}, labelled.toLocaleString("en")),
      el("span", { class: "muted" }, ` of ${planned.toLocaleString("en")} ${state.budget ? "planned" : state.kind} · ${audited} in the audit`)),
    bar(labelled / Math.max(1, planned), "wide"),
    ...(state.budget && labelled >= state.budget
      ? [el("p", { class: "done" }, "All planned answers are given. Continue if you like, or export the labels.")] : []),
    el("details", { open }, el("summary", {}, "By class"),
      ...state.classes.map(({ name }) => el("div", { class: "belief" }, el("span", { class: "name" }, name),
        paint(bar((classes[name] ?? 0) / most, "of-class"), name), el("span", { class: "value" }, `${classes[name] ?? 0}`)))),
    ...(Object.keys(state.people).length > 1
      ? [el("p", { class: "muted" }, Object.entries(state.people).map(([who, n]) => `${who} ${n}`).join(" · "))] : []));
}
