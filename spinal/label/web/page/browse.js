// All images: filters, search by name, similar images, and labels for one or many.

import * as api from "./api.js";
import { named } from "./colours.js";
import { classOf } from "./label.js";
import { $, about, count, el, percent, toast, words } from "./dom.js";
import * as notes from "./notes.js";
import { Editor } from "./sets.js";
import { preview } from "./text.js";
import * as viewer from "./viewer.js";

const PAGE = 60;
const NOTHING = { name: "", state: "", label: "", predicted: "", sure: "", person: "", marked: "", order: "name", like: "" };
const STATES = [["", "All"], ["labelled", "Labelled"], ["unlabelled", "Not labelled"], ["skipped", "Skipped"],
  ["disputed", "Disputed"], ["problem", "Cannot be shown"]];
const SURE = [["", "Any"], ["0-0.5", "Under 50\u202f%"], ["0.5-0.8", "50 to 80\u202f%"], ["0.8-0.95", "80 to 95\u202f%"],
  ["0.95-1", "Over 95\u202f%"]];
const MARKED = [["", "Any"], ["flagged", "Flagged"], ["noted", "With a note"]];
const ORDERS = [["name", "Name"], ["recent", "Last answered"], ["unsure", "Least confident"], ["sure", "Most confident"]];

let state = null, query = { ...NOTHING }, items = [], total = 0, start = 0, requests = 0, options = "", lastPicked = 0;
const selected = new Set(); // numbers of images
let editor = null; // where an image can have several classes: the classes for the selected images

/** Open the view; ``wanted`` starts a new search. */
export async function open(_, now, wanted) {
  state = now;
  if (wanted) query = { ...NOTHING, ...wanted };
  build();
  await load(wanted ? 0 : start);
}

export function update(now) {
  state = now;
  if (build()) load(start);
}

/** Draw the controls again if they have changed; returns whether they have. */
function build() {
  const needed = JSON.stringify([state.classes, Object.keys(state.people)]);
  if (options === needed) {
    fill();
    return false;
  }
  options = needed;
  const classes = [["", "Any"], ...state.classes.map(({ name }) => [name, name])];
  const people = [["", "Anybody"], ...Object.keys(state.people).map((name) => [name, name])];
  $("browse").replaceChildren(
    el("div", { class: "view-head" }, el("div", {}, el("h2", {}, about("All images")), el("p", { id: "found", role: "status" })),
      el("button", { id: "select-page", onclick: selectPage }, "Select this page")),
    el("form", { id: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
      field(state.kind === "texts" ? "Words" : "Name", el("input", { id: "filter-name", type: "search", maxlength: "200",
        placeholder: state.kind === "texts" ? "Part of a text" : "Part of a name", oninput: later })),
      el("button", { id: "filter-toggle", type: "button", "aria-expanded": "false", onclick: toggleFilters }, "Filters"), // on narrow screens
      choice("state", "Show", state.multi ? [...STATES, ["none", "None of the classes"]] : STATES), choice("label", "Class", classes), choice("predicted", "Prediction", classes),
      choice("sure", "Confidence", SURE), ...(people.length > 2 ? [choice("person", "Answered by", people)] : []),
      choice("marked", "Flags and notes", MARKED), choice("order", "Order", ORDERS),
      el("button", { id: "reset", type: "button", class: "quiet", onclick: () => search(NOTHING) }, "Reset")),
    el("div", { id: "alike", hidden: true }),
    el("div", { id: "images", role: "listbox", "aria-multiselectable": "true", "aria-label": about("Images"), class: `${state.kind === "texts" ? "has-text" : ""} ${state.multi ? "sets" : ""}` }),
    el("p", { id: "none-found", class: "empty", hidden: true }, about("No image matches.")),
    el("div", { id: "pages" }),
    el("div", { id: "selection", role: "region", "aria-label": about("Selected images"), hidden: true }));
  fill();
  return true;
}

const field = (text, control) => el("label", { class: "field" }, el("span", {}, text), control);

const choice = (name, text, values) =>
  field(text, el("select", { id: `filter-${name}`, onchange: (event) => search({ ...query, [name]: event.target.value }) },
    ...values.map(([value, shown]) => el("option", { value }, shown))));

function toggleFilters() {
  const isOpen = $("filters").classList.toggle("open");
  $("filter-toggle").setAttribute("aria-expanded", String(isOpen));
}

let typing;
const later = (event) => {
  clearTimeout(typing);
  const name = event.target.value;
  typing = setTimeout(() => search({ ...query, name }), 250);
};

/** Show the current search in the controls. */
function fill() {
  for (const [name, value] of Object.entries(query)) {
    const control = $(`filter-${name}`);
    if (control && control !== document.activeElement) control.value = value;
  }
  $("filter-order").disabled = Boolean(query.like);
  $("reset").hidden = Object.keys(NOTHING).every((name) => query[name] === NOTHING[name]);
  $("alike").hidden = !query.like;
  $("alike").replaceChildren(...(query.like ? [preview({ image: query.like }, state.kind), about("Most similar to this image first"),
    el("button", { class: "quiet", onclick: () => search({ ...query, like: "" }) }, "Back to all")] : []));
}

function search(wanted) {
  query = { ...wanted };
  fill();
  return load(0);
}

export const alike = (image) => { viewer.close(); search({ ...NOTHING, like: String(image) }); };

async function load(from) {
  const mine = ++requests;
  const { sure, ...asked } = query;
  const [low, high] = sure ? sure.split("-") : ["", ""];
  const wanted = Object.entries({ ...asked, low, high, start: from, n: PAGE }).filter(([, value]) => value !== "");
  let reply;
  try {
    reply = await api.get(`/api/browse?${new URLSearchParams(wanted)}`);
  } catch (error) {
    return api.complain(error.message);
  }
  if (mine !== requests) return; // there is a newer search
  if (from && !reply.images.length) return load(0);
  [items, total, start] = [reply.images, reply.total, from];
  selected.clear();
  $("images").replaceChildren(...items.map(tile));
  $("none-found").hidden = items.length > 0;
  $("found").textContent = query.like && !total ? about("The features of the images are not computed yet.") : about(count(total, "image"));
  drawPages();
  drawSelection();
}

function drawPages() {
  const to = start + items.length;
  const turn = (text, from, name) => el("button", { disabled: from < 0 || from >= total, "aria-label": name,
    onclick: () => { load(from); $("browse").scrollTo(0, 0); scrollTo(0, 0); } }, text);
  $("pages").replaceChildren(...(total > items.length
    ? [turn("‹", start - PAGE, "Previous page"), el("span", {}, `${(start + 1).toLocaleString("en")} to ${to.toLocaleString("en")} of ${total.toLocaleString("en")}`),
      turn("›", start + PAGE, "Next page")] : []));
}

/** An image of the audit gets no label here before it is asked: the audit must stay random. */
const isKept = (item) => item.reserved && !item.label && !item.skipped && !item.disputed;

function tile(item, i) {
  const says = caption(item);
  const node = el("div", { class: `tile ${isKept(item) ? "kept" : ""}`, role: "option", tabindex: i ? "-1" : "0", "data-image": item.image,
    "aria-selected": "false", "aria-disabled": isKept(item) ? "true" : null, "aria-label": [item.path, ...says.map((part) => part.textContent), ...(item.flagged ? ["flagged"] : []), ...(item.noted ? ["has a note"] : [])].join(", ") },
    item.problem ? el("div", { class: "no-image" }, item.problem)
      : preview(item, state.kind),
    ...(isKept(item) ? [] : [el("span", { class: "check", "aria-hidden": "true", onclick: (event) => pick(i, event.shiftKey) })]),
    notes.marks(item),
    el("div", { class: "caption" }, ...says.flatMap((part) => [part, " "])));
  if (state.kind === "images") node.title = item.path;
  if (!item.problem) node.firstElementChild.onclick = () => look(item);
  return node;
}

function caption(item) {
  const guess = item.predicted && `${words(item.predicted)}? ${percent(item.confidence)}`;
  const soft = (text) => el("span", { class: "muted" }, text);
  if (item.problem) return [soft("cannot be shown")];
  if (item.disputed) return [el("strong", {}, "disputed")];
  if (item.label) return [el("strong", {}, ...named(item.label)), ...(guess && isOther(item) ? [soft(guess)] : [])];
  if (item.skipped) return [soft("skipped")];
  if (isKept(item)) return [soft("for the audit")];
  return [soft(guess ?? "no label")];
}

const isOther = ({ label, predicted }) => `${[label].flat().sort()}` !== `${[predicted].flat().sort()}`;

const nodes = () => [...$("images").children];

function pick(i, range = false) {
  if (isKept(items[i])) return;
  const on = !selected.has(items[i].image);
  const [from, to] = range ? [Math.min(i, lastPicked), Math.max(i, lastPicked)] : [i, i];
  for (const item of items.slice(from, to + 1)) mark(item, on);
  lastPicked = i;
  drawSelection();
}

function mark(item, on) {
  if (isKept(item)) return;
  if (on) selected.add(item.image);
  else selected.delete(item.image);
  $("images").querySelector(`[data-image="${item.image}"]`).setAttribute("aria-selected", String(on));
}

function selectPage() {
  const all = items.filter((item) => !isKept(item)).every((item) => selected.has(item.image));
  for (const item of items) mark(item, !all);
  drawSelection();
}

function drawSelection() {
  $("selection").hidden = !selected.size;
  if (!selected.size) editor = null;
  $("selection").replaceChildren(el("strong", {}, `${selected.size} selected`),
    el("div", { class: "choices" }, ...(state.multi ? switches() : state.classes.map(({ name }) => el("button", { onclick: () => give([...selected], name) }, ...named(name)))),
      el("button", { class: "quiet", onclick: () => give([...selected], null) }, "Skip"),
      el("button", { class: "quiet", id: "flag-selected", onclick: () => flag([...selected]) }, isFlagged([...selected]) ? "Remove flag" : "Flag"),
      ...(selected.size === 1 ? [el("button", { class: "quiet", onclick: () => alike([...selected][0]) }, about("Similar images"))] : []),
      el("button", { class: "quiet", onclick: () => { for (const item of items) mark(item, false); drawSelection(); } }, "Select none")));
}

/** Buttons for several classes, and one that gives them to all selected images. */
function switches() {
  const save = el("button", { class: "primary", onclick: () => give([...selected], editor.label) });
  const draw = (label) => { save.textContent = `Label ${selected.size} ${words(label)}`; };
  const [only] = selected.size === 1 ? items.filter(({ image }) => selected.has(image)) : [];
  editor = new Editor(editor?.label ?? only?.label, state.classes, draw);
  draw(editor.label);
  return [...editor.buttons, save];
}

/** The key of a class labels images with it; where an image can have several, it toggles the class. */
function choose(at, images, name) {
  if (!state.multi) return give(images, name);
  if (!editor) pick(at);
  editor.toggle(name);
}

/** Label images, or skip them; this overrules earlier answers. */
async function give(images, label) {
  if (!images.length) return;
  try {
    await api.answer(images.map((image) => ({ token: api.token(), image, label, reason: "browse" })));
  } catch (error) {
    return api.complain(error.message);
  }
  toast(about(`${count(images.length, "image")} `) + `${label === null ? "skipped" : `labelled ${words(label)}`}.`, { text: "Undo", run: undo });
  await again();
}

const isFlagged = (images) => items.filter(({ image }) => images.includes(image)).every(({ flagged }) => flagged);
const flag = (images) => notes.flag(images, !isFlagged(images), again);

/** Load this page again, and keep the focus where it was. */
async function again() {
  const focused = nodes().indexOf(document.activeElement);
  await load(start);
  if (focused >= 0) focus(Math.min(focused, items.length - 1));
}

async function undo() {
  if (await api.undoLast()) await load(start);
}

/** Write a note on an image; its notes are loaded first. */
async function write(item) {
  const known = await api.get(`/api/about/${item.image}`).catch((error) => api.complain(error.message));
  if (known && await notes.editNote(known)) await again();
}

const look = (item) => !item.problem && viewer.show(items.filter((each) => !each.problem), item, state,
  { give: (image, label) => give([image], label), marked: again, alike, isKept });

function focus(i) {
  const all = nodes();
  if (!all[i]) return;
  for (const node of all) node.tabIndex = node === all[i] ? 0 : -1;
  all[i].focus();
}

/** Arrows go through the images, space selects, Enter opens; keys of classes label selected images. */
export function key(event) {
  const at = nodes().indexOf(document.activeElement);
  const columns = getComputedStyle($("images")).gridTemplateColumns.split(" ").length;
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
  if (event.target.closest("button, select")) return false;
  if (step) focus(at < 0 ? 0 : Math.max(0, Math.min(items.length - 1, at + step)));
  else if (event.key.toLowerCase() === "u") undo();
  else if (event.key === " " && at >= 0) pick(at, event.shiftKey);
  else if (event.key === "Enter" && at >= 0) look(items[at]);
  else if (event.key === "Escape" && selected.size) { for (const item of items) mark(item, false); drawSelection(); }
  else {
    const name = classOf(event.key, state);
    const images = selected.size ? [...selected] : at >= 0 && !isKept(items[at]) ? [items[at].image] : [];
    if (name && images.length) choose(at, images, name);
    else if (event.key === "." && images.length) flag(images);
    else if (event.key === "," && at >= 0) write(items[at]);
    else return false;
  }
  return true;
}
