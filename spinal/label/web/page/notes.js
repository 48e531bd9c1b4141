// Flags and notes on images. Each person has their own.

import * as api from "./api.js";
import { $, about, count, el, toast } from "./dom.js";

const SHAPES = { flagged: "M3 14 V2 H12 L9.5 5.5 L12 9 H3", noted: "M3 2 H13 V14 H3 Z M6 6 H10 M6 9.5 H10" };

const mine = ({ notes }) => (notes ?? []).find(({ person }) => person === api.person.get());

export const isMineFlagged = (item) => Boolean(mine(item)?.flagged);

/** Change the flag or the note of images, and update the item of the first. */
async function change(images, what, item) {
  try {
    const known = await api.note(images, what);
    if (item) Object.assign(item, known);
    return true;
  } catch (error) {
    api.complain(error.message);
    return false;
  }
}

/** Flag an image, or remove the flag. */
export const toggleFlag = (item) => change([item.image], { flagged: !isMineFlagged(item) }, item);

/** Flag images, or remove their flags, and offer to undo it. */
export async function flag(images, flagged, done = () => {}) {
  if (!(await change(images, { flagged }))) return;
  toast(about(`${count(images.length, "image")} ${flagged ? "flagged" : "no longer flagged"}.`),
    { text: "Undo", run: () => flag(images, !flagged, done) });
  done();
}

/** Write a note on an image; resolves when the dialog closes, to whether the note changed. */
export function editNote(item) {
  const before = mine(item)?.note ?? "";
  const dialog = $("note-dialog");
  const text = el("textarea", { id: "note", maxlength: "500", "aria-label": "Note" });
  text.value = before;
  const save = () => { dialog.close("save"); };
  text.onkeydown = (event) => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); save(); } };
  dialog.replaceChildren(el("h2", {}, about("Note on this image")),
    el("p", { class: "muted" }, "For people, not for the model. It is exported with the labels."), text,
    el("div", { class: "buttons" }, el("button", { class: "primary", onclick: save }, "Save ", el("kbd", {}, "Enter")),
      el("button", { onclick: () => dialog.close() }, "Cancel")));
  dialog.returnValue = "";
  dialog.showModal();
  text.focus();
  return new Promise((resolve) => dialog.addEventListener("close", () => {
    const now = text.value.trim();
    resolve(dialog.returnValue === "save" && now !== before && change([item.image], { note: now }, item));
  }, { once: true }));
}

/** The flags and notes on an image, as paragraphs. */
export function remarks({ notes = [] }) {
  const flagged = notes.filter((said) => said.flagged).map(({ person }) => person);
  return [...(flagged.length ? [el("p", { class: "remark flagged" }, `Flagged by ${flagged.join(", ")}`)] : []),
    ...notes.filter(({ note }) => note).map(({ person, note }) =>
      el("p", { class: "remark" }, note, el("span", { class: "muted" }, ` (${person})`)))];
}

/** Icons on a tile. */
export const marks = (item) => el("span", { class: "marks", "aria-hidden": "true" }, ...Object.keys(SHAPES).filter((name) => item[name])
  .map((name) => el("span", { class: name }, el("svg:svg", { viewBox: "0 0 16 16" }, el("svg:path", { d: SHAPES[name] })))));
