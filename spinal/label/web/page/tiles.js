// Many images at a time: confident guesses (confirmed together), likely mistakes, outliers, disagreements.

import * as agreement from "./agreement.js";
import * as api from "./api.js";
import { named } from "./colours.js";
import { classOf } from "./label.js";
import { $, about, count, el, percent, toast, words } from "./dom.js";
import { flag } from "./notes.js";
import { doubts, Editor } from "./sets.js";
import { preview } from "./text.js";

const PAGE = 60;

const KINDS = {
  guesses: {
    title: "Confident guesses",
    intro: "The model's most confident predictions. Click images that are wrong to leave them out, or correct their class. Then confirm the rest together.",
    empty: "Nothing here: the model predicts this class for no other unlabelled image.",
    caption: (item) => [...(item.editor ? [el("strong", {}, ...named(item.editor.label))] : []), `${percent(item.confidence)} sure`],
    bulk: true,
  },
  mistakes: {
    title: "Likely mistakes",
    intro: "Labels that a model trained without them would not predict. Keep them, or correct them.",
    empty: "No label looks wrong. Labels are checked when the model has nothing else to do.",
    caption: (item) => [el("span", {}, "Labelled ", el("strong", {}, ...named(item.label))),
      el("span", { class: "muted" }, item.editor ? doubts(item.label, item.instead) : `looks like ${item.instead}, ${percent(item.instead_confidence)}`)],
    keep: true,
  },
  outliers: {
    title: "Outliers",
    intro: "Images that are least like those the model was trained on. They may belong to no class: skip or label them.",
    empty: "Nothing here yet: outliers are known after the first fit.",
    caption: (item) => [el("span", { class: "muted" }, `${words(item.label)}? ${percent(item.confidence)}`)],
    skip: true,
  },
  disagreements: {
    title: "Disagreements",
    intro: "People gave these images different labels. They are not used for training until somebody decides.",
    empty: "Nobody disagrees.",
    caption: (item) => [...item.answers.map(({ person, label }) => el("span", {}, `${person}: `, el("strong", {}, ...named(label)))),
      ...(item.consensus ? [el("span", { class: "muted" }, `consensus with the model: ${words(item.consensus.label)}, ${percent(item.consensus.confidence)}`)] : [])],
  },
};
const SETS = "The model's most confident predictions, with all their classes. Switch classes on or off, and click unclear images to leave them out. Then confirm the rest together.";
const REASONS = { guesses: "guess", mistakes: "mistake", outliers: "outlier", disagreements: "disagreement" };

let kind = null, state = null, label = null, items = [], shown = 0;

export async function open(which, now) {
  kind = which;
  state = now;
  if (!state.classes.some(({ name }) => name === label)) label = state.classes[0].name;
  $("tiles-title").textContent = KINDS[kind].title;
  $("tiles-intro").textContent = about(state.multi && kind === "guesses" ? SETS : KINDS[kind].intro);
  drawChips();
  $("agreement").hidden = true;
  if (kind === "disagreements") await agreement.draw(() => load(0));
  await load(0);
}

async function load(start) {
  const wanted = kind;
  const query = new URLSearchParams({ start, n: PAGE, ...(kind === "guesses" ? { label } : {}) });
  const reply = await api.get(`/api/${kind}?${query}`).catch((error) => ({ images: [], error: error.message }));
  if (wanted !== kind) return;
  if (reply.error) api.complain(reply.error);
  const images = kind === "disagreements" ? reply.images.filter(agreement.isShown) : reply.images;
  const tiles = images.map((image) => withEditor({ ...image, out: false, as: null, inView: false, seen: false }));
  items = start ? [...items, ...tiles] : tiles;
  shown = start + tiles.length;
  $("grid").replaceChildren(...items.map(tile));
  $("grid").className = [kind, state.kind === "texts" ? "has-text" : "", state.multi ? "sets" : ""].join(" ").trim();
  $("more").hidden = !reply.more;
  $("more").onclick = () => load(shown);
  afterChange();
}

/** Where an image can have several classes, a tile starts with those of the label or prediction. */
function withEditor(item) {
  if (!state.multi) return item;
  item.editor = new Editor(item.label ?? item.consensus?.label ?? item.answers[0].label, state.classes, () => {
    const saves = nodeOf(item).querySelector(".save");
    if (saves) saves.firstChild.textContent = saveText(item);
    if (KINDS[kind].bulk) nodeOf(item).querySelector(".caption").replaceChildren(...KINDS[kind].caption(item));
  });
  return item;
}

const saveText = (item) => KINDS[kind].keep && words(item.editor.label) === words(item.label) ? "Keep" : "Save";

function afterChange() {
  $("tiles-empty").hidden = items.length > 0;
  $("tiles-empty").textContent = about(KINDS[kind].empty);
  const bulk = KINDS[kind].bulk && items.length > 0;
  $("tiles-actions").replaceChildren(...(bulk ? [confirmButton()] : []));
}

function confirmButton() {
  const agreed = items.filter((item) => !item.out && item.seen).length;
  const unseen = items.filter((item) => !item.out && !item.seen).length;
  const changed = items.filter((item) => item.out && item.as).length;
  const text = `Confirm ${agreed} as ${state.multi ? "shown" : label}` + (changed ? `, ${changed} as corrected` : "");
  return el("div", {},
    el("button", { class: "primary", onclick: confirmAll }, text, " ", el("kbd", {}, "Enter")),
    unseen ? el("p", { class: "muted" }, `${count(unseen, "more", "more")} further down, not yet seen`) : null);
}

/** Watches which tiles are in view; one counts as seen if its image was loaded while in view. */
const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const item = items.find((each) => nodeOf(each) === target);
    if (item) look(item, isIntersecting);
  }
}, { threshold: 0.6 });

function look(item, inView) {
  item.inView = inView;
  const shown = nodeOf(item)?.firstElementChild;
  const isThere = shown?.matches("img") ? shown.complete && shown.naturalWidth : shown?.textContent;
  if (item.seen || !inView || !isThere) return;
  item.seen = true;
  afterChange();
}

function tile(item) {
  const node = el("div", { class: "tile", tabindex: "0", "data-image": item.image, role: "group", "aria-label": item.path },
    preview(item, state.kind, () => look(item, item.inView)),
    el("div", { class: "caption" }, ...KINDS[kind].caption(item)),
    el("div", { class: "tile-choices" }, ...choices(item)));
  if (state.kind === "images") node.title = item.path;
  watcher.observe(node);
  if (KINDS[kind].bulk) node.firstElementChild.onclick = () => toggle(item);
  return node;
}

function choices(item) {
  const { keep, skip, bulk } = KINDS[kind];
  if (item.editor) {
    return [...item.editor.buttons,
      ...(bulk ? [] : [el("button", { class: "primary save", onclick: () => choose(item, item.editor.label) }, el("span", {}, saveText(item)), el("kbd", {}, "Enter"))]),
      ...(skip ? [el("button", { onclick: () => choose(item, null) }, "Skip", el("kbd", {}, "space"))] : [])];
  }
  const buttons = state.classes.map(({ name, keys }) =>
    el("button", { onclick: () => choose(item, name) }, ...named(name), keys[0] ? el("kbd", {}, keys[0].toUpperCase()) : null));
  if (keep) buttons.unshift(el("button", { class: "primary", onclick: () => choose(item, item.label) }, "Keep", el("kbd", {}, "Enter")));
  if (skip) buttons.push(el("button", { onclick: () => choose(item, null) }, "Skip", el("kbd", {}, "space")));
  return buttons;
}

const nodeOf = (item) => $("grid").querySelector(`[data-image="${item.image}"]`);

function toggle(item, as = null) {
  item.out = as !== null ? as !== label : !item.out;
  item.as = item.out ? as : null;
  const node = nodeOf(item);
  node.classList.toggle("out", item.out);
  node.querySelector(".caption").replaceChildren(
    ...(item.out ? [item.as ? el("strong", {}, ...named(item.as)) : "left out"] : KINDS[kind].caption(item)));
  afterChange();
}

function choose(item, name) {
  if (KINDS[kind].bulk) return toggle(item, name);
  return send([item], (each) => [each, name]);
}

const confirmAll = () =>
  send(items.filter((item) => (item.out ? item.as : item.seen)), (item) => [item, item.editor?.label ?? item.as ?? label]);

async function send(chosen, decide) {
  if (!chosen.length) return;
  const answers = chosen.map((each) => {
    const [item, name] = decide(each);
    return { token: api.token(), image: item.image, label: name, reason: REASONS[kind] };
  });
  const focused = items.findIndex((item) => nodeOf(item) === document.activeElement?.closest(".tile"));
  try {
    await api.answer(answers);
  } catch (error) {
    return api.complain(error.message);
  }
  toast(`${count(answers.length, "answer")} saved.`, { text: "Undo", run: undoLast });
  const gone = new Set(chosen);
  for (const item of items) if (gone.has(item)) nodeOf(item).remove();
  items = items.filter((item) => !gone.has(item));
  if (KINDS[kind].bulk) return load(0);
  afterChange();
  focus(Math.min(focused, items.length - 1));
}

/** Undo the last answer, and all that were confirmed together with it. */
async function undoLast() {
  if (await api.undoLast()) await load(0);
}

function drawChips() {
  $("chips").hidden = kind !== "guesses";
  $("chips").replaceChildren(...state.classes.map(({ name }) =>
    el("button", { "aria-pressed": String(name === label), onclick: () => { label = name; drawChips(); load(0); } }, ...named(name))));
}

function focus(i) {
  if (i >= 0 && items[i]) nodeOf(items[i]).focus();
}

/** Arrows go through the tiles; the keys of classes, Enter and space act on the focused one. */
export function key(event) {
  const at = items.findIndex((item) => nodeOf(item) === document.activeElement);
  const columns = getComputedStyle($("grid")).gridTemplateColumns.split(" ").length;
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
  if (step) {
    focus(at < 0 ? 0 : Math.max(0, Math.min(items.length - 1, at + step)));
    return true;
  }
  if (event.target.closest("button")) return false;
  if (event.key.toLowerCase() === "u") undoLast();
  else if (event.key === "Enter" && KINDS[kind].bulk) confirmAll();
  else if (at < 0) return false;
  else if (event.key === "Enter" && state.multi) choose(items[at], items[at].editor.label);
  else if (event.key === "Enter" && KINDS[kind].keep) choose(items[at], items[at].label);
  else if (event.key === " ") KINDS[kind].bulk ? toggle(items[at]) : KINDS[kind].skip && choose(items[at], null);
  else {
    const name = classOf(event.key, state);
    if (name && state.multi) items[at].editor.toggle(name);
    else if (name) choose(items[at], name);
    else if (event.key === ".") flag([items[at].image], true);
    else return false;
  }
  return true;
}
