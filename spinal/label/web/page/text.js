// Texts: loaded from the server, folded if long, with the words that support the prediction.

import * as api from "./api.js";
import { count, el } from "./dom.js";

const FOLD = 1500; // characters of a text that are shown at first
const EXCERPT = 260; // characters on a tile
const WORD = /[\p{L}\p{N}_]{2,}/gu;

export const fetchText = (image) => api.get(`/text/${image}`);

/** Where to cut a text: at the end of a word, near this length. */
function cutAt(text, length) {
  if (text.length <= length * 1.2) return text.length;
  const space = text.lastIndexOf(" ", length);
  return space > length / 2 ? space : length;
}

/** The text with its marked words, as nodes; strong words have a stronger colour. */
function marked(text, marks) {
  const weights = new Map(marks), most = Math.max(...weights.values());
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(WORD)) {
    const weight = weights.get(match[0].toLowerCase());
    if (!weight) continue;
    const strength = weight > most / 2 ? "strong" : "weak";
    nodes.push(text.slice(end, match.index), el("mark", { class: strength }, match[0]));
    end = match.index + match[0].length;
  }
  return [...nodes, text.slice(end)];
}

const countMarks = (text, marks) => {
  const words = new Set(marks.map(([word]) => word));
  return [...text.matchAll(WORD)].filter(([word]) => words.has(word.toLowerCase())).length;
};

/** A full text, folded if it is long. */
export function fullText({ text, cut, marks }, withMarks) {
  const shown = withMarks ? marks : [];
  const fold = cutAt(text, FOLD), rest = text.slice(fold);
  const body = el("div", { class: "text-body", dir: "auto" }, ...marked(text.slice(0, fold), shown));
  const node = el("div", { class: "text", tabindex: "-1" }, body);
  if (rest) {
    const hidden = countMarks(rest, shown);
    body.append(el("span", { class: "text-more" }, " …"));
    node.append(el("button", { class: "text-unfold", onclick: () => unfold(node) },
      `Show ${count(rest.length + cut, "more character")}`, hidden ? `, ${count(hidden, "marked word")}` : "", " ", el("kbd", {}, "↓")));
    node.unfold = () => {
      body.replaceChildren(...marked(text, shown), ...(cut ? [el("p", { class: "muted" }, `${count(cut, "more character")} not shown`)] : []));
      node.querySelector("button").remove();
    };
  }
  return node;
}

/** Unfold a text; false if it is already unfolded. */
export function unfold(node) {
  if (!node?.querySelector(".text-unfold")) return false;
  node.unfold();
  return true;
}

/** A small image, or the beginning of a text; `loaded` is called when it is loaded. */
export function preview({ image }, kind, loaded = () => {}) {
  if (kind !== "texts") return el("img", { src: `/thumb/${image}`, loading: "lazy", alt: "", draggable: "false", onload: loaded });
  const node = el("div", { class: "tile-text", dir: "auto" });
  fetchText(image).then((reply) => {
    node.replaceChildren(...excerpt(reply));
    node.title = reply.title;
    loaded();
  }, (error) => api.complain(error.message));
  return node;
}

/** The beginning of a text, or the part around its first marked word. */
function excerpt({ text, marks }) {
  const first = new Set(marks.slice(0, 3).map(([word]) => word));
  const match = [...text.matchAll(WORD)].find(([word]) => first.has(word.toLowerCase()));
  let start = match && match.index > EXCERPT * 0.8 ? text.lastIndexOf(" ", match.index - EXCERPT / 3) + 1 : 0;
  const part = text.slice(start, start + cutAt(text.slice(start), EXCERPT));
  const before = start ? "… " : "", after = start + part.length < text.length ? " …" : "";
  return [before, ...marked(part, marks), after];
}
