// One image of many, large, with everybody's answers and buttons to change the label.

import * as api from "./api.js";
import { named } from "./colours.js";
import { classOf } from "./label.js";
import { $, about, el, percent, words } from "./dom.js";
import { Editor } from "./sets.js";
import { fetchText, fullText } from "./text.js";
import { editNote, isMineFlagged, remarks, toggleFlag } from "./notes.js";
import { drawNeighbours } from "./neighbours.js";
import { Zoom } from "./zoom.js";

let items = [], at = 0, state = null, actions = null, zoom = null, editor = null;

/** Show one of several images; the arrows go through the others. */
export function show(all, item, now, can) {
  [items, at, state, actions] = [all, all.indexOf(item), now, can];
  draw();
  if (!$("viewer").open) $("viewer").showModal();
}

export const close = () => $("viewer").close();

async function draw() {
  const item = items[at];
  const kept = actions.isKept(item);
  const facts = el("div", { id: "facts" }), near = el("div", { hidden: true });
  const title = el("h2", {}, state.kind === "texts" ? "" : item.path);
  const stage = el("div", { id: "viewer-stage", class: state.kind === "texts" ? "has-text" : "" },
    state.kind === "texts" ? textOf(item, title) : el("img", { src: `/image/${item.image}`, alt: item.path, draggable: "false" }));
  const was = $("viewer").contains(document.activeElement) ? document.activeElement.textContent : null;
  $("viewer").replaceChildren(
    stage,
    el("div", { id: "viewer-side" },
      el("div", { class: "viewer-head" }, title, el("button", { class: "quiet", "aria-label": "Close", onclick: close }, "✕")), facts,
      kept ? el("p", { class: "muted" }, "Reserved for the audit: it will be asked later, at random.")
        : el("div", { class: "choices" }, ...(state.multi ? switches(item) : state.classes.map(({ name, keys }) =>
          el("button", { "aria-pressed": String(name === item.label), onclick: () => give(name) }, ...named(name), keys[0] ? el("kbd", {}, keys[0].toUpperCase()) : null)))),
      near,
      el("div", { class: "viewer-actions" },
        el("button", { onclick: () => turn(-1), disabled: at === 0, "aria-label": about("Previous image") }, "‹"),
        el("button", { onclick: () => turn(1), disabled: at === items.length - 1, "aria-label": about("Next image") }, "›"),
        el("button", { class: "flag", disabled: true, "aria-pressed": "false", onclick: () => mark(toggleFlag) }, "Flag ", el("kbd", {}, ".")),
        el("button", { class: "note", disabled: true, onclick: () => mark(editNote) }, "Note ", el("kbd", {}, ",")),
        ...(actions.alike ? [el("button", { onclick: () => actions.alike(item.image) }, about("Similar images"))] : []))));
  zoom = new Zoom(stage);
  drawNeighbours(near, item.image, state);
  // The button that was pressed has been replaced: move the focus to the new one.
  const buttons = [...$("viewer").querySelectorAll("button:enabled")];
  if (was !== null) (buttons.find((button) => button.textContent === was) ?? $("viewer")).focus();
  try {
    const known = await api.get(`/api/about/${item.image}`);
    if (items[at] !== item) return;
    item.notes = known.notes;
    facts.replaceChildren(...described(known), ...remarks(known));
    for (const button of $("viewer").querySelectorAll(".flag, .note")) button.disabled = false;
    $("viewer").querySelector(".flag").setAttribute("aria-pressed", String(isMineFlagged(item)));
  } catch (error) {
    facts.replaceChildren(el("p", { class: "bad-text" }, error.message));
  }
}

/** Buttons for several classes, and one to save them. */
function switches(item) {
  const save = el("button", { class: "primary", onclick: () => give(editor.label) }, "");
  const draw = (label) => save.replaceChildren(`Save ${words(label)} `, el("kbd", {}, "Enter"));
  editor = new Editor(item.label ?? item.predicted, state.classes, draw);
  draw(editor.label);
  return [...editor.buttons, save];
}

/** A full text, with its place as the title, when it is loaded. */
function textOf({ image }, title) {
  const node = el("div", {});
  fetchText(image).then((reply) => {
    node.replaceChildren(fullText(reply, true));
    title.textContent = reply.title;
  }, (error) => api.complain(error.message));
  return node;
}

function described({ answers, predicted, confidence }) {
  const said = answers.map(({ person, label, at: when }) => el("p", {}, el("strong", {}, ...named(label ?? "skipped")),
    el("span", { class: "muted" }, ` by ${person}, ${new Date(when).toLocaleDateString("en", { dateStyle: "medium" })}`)));
  const guess = predicted ? [el("p", { class: "muted" }, answers.length
    ? `Without the label, the model predicts ${words(predicted)}, ${percent(confidence)} sure.` : `The model predicts ${words(predicted)}, ${percent(confidence)} sure.`)] : [];
  return [...(said.length ? said : [el("p", { class: "muted" }, "No answer yet.")]), ...guess];
}

function turn(step) {
  const to = at + step;
  if (to < 0 || to >= items.length) return;
  at = to;
  draw();
}

/** Flag the image, or write a note on it. */
async function mark(how) {
  const item = items[at];
  if (!item.notes) return; // not known yet
  await how(item);
  await actions.marked?.();
  draw();
}

async function give(label) {
  const item = items[at];
  if (actions.isKept(item)) return;
  await actions.give(item.image, label);
  item.label = label;
  draw();
}

/** Call once: handle keys inside the dialog, which the page ignores. */
export function start() {
  $("viewer").addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input")) return; // a slider handles its own keys
    const name = classOf(event.key, state);
    if (name && state.multi) editor.toggle(name);
    else if (name) give(name);
    else if (event.key === "Enter" && state.multi && !event.target.closest("button")) give(editor.label);
    else if (event.key === ".") mark(toggleFlag);
    else if (event.key === ",") mark(editNote);
    else if (zoom.key(event)) { /* handled by the zoom */ }
    else if (event.key === "ArrowRight") turn(1);
    else if (event.key === "ArrowLeft") turn(-1);
    else return;
    event.preventDefault();
  });
}
