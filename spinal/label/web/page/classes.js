// A dialog to add, rename, merge and remove classes, and to choose their keys and colours.

import * as api from "./api.js";
import { $, count, el } from "./dom.js";

let counts = {}; // images by class
let reply = { classes: [], last: null };
let refresh = async () => {};
let multi = false; // whether an image can have several

/** Open the dialog; ``changed`` is called after each change, and returns the state of the server. */
export async function open(state, changed) {
  [refresh, multi] = [changed, state.multi];
  counts = state.progress.classes;
  reply = await api.get("/api/classes");
  draw();
  $("classes").showModal();
}

async function change(path, body) {
  try {
    reply = await api.post(path, body);
    counts = (await refresh()).progress.classes;
    draw();
  } catch (error) {
    draw(error.message);
  }
}

const edit = (kind, name, target) => change("/api/classes", { kind, name, target });

function draw(problem = "") {
  const scrolled = $("classes").scrollTop;
  $("classes").replaceChildren(el("h2", {}, "Classes"),
    el("div", { class: "last-change", role: "status" },
      ...(problem ? [el("p", { class: "bad-text" }, problem)]
        : reply.last ? [el("p", {}, `Last change: ${reply.last}.`), el("button", { onclick: () => change("/api/classes/undo", {}) }, "Undo")]
          : [el("p", { class: "muted" }, "Changes apply immediately, to all answers, and can be undone.")])),
    el("ul", { class: "class-list" }, ...reply.classes.map(row)),
    el("form", { class: "new-class", onsubmit: add },
      el("input", { id: "new-class", maxlength: "100", placeholder: "New class", "aria-label": "Name of the new class", required: true }),
      el("button", {}, "Add")),
    el("form", { method: "dialog" }, el("button", { class: "primary" }, "Close")));
  $("classes").scrollTop = scrolled;
}

function add(event) {
  event.preventDefault();
  edit("add", $("new-class").value.trim()).then(() => $("new-class").focus());
}

function row({ name, keys, own, colour }) {
  const input = el("input", { value: name, maxlength: "100", "aria-label": `Name of ${name}`, "data-class": name });
  input.onchange = () => edit("rename", name, input.value.trim());
  const key = el("input", { class: "key", value: (own ?? "").toUpperCase(), maxlength: "1", placeholder: (keys.at(-1) ?? "").toUpperCase(), "aria-label": `Key of ${name}` });
  key.onchange = () => edit("key", name, key.value.trim());
  const chosen = el("input", { type: "color", class: "colour", value: colour, "aria-label": `Colour of ${name}` });
  chosen.onchange = () => edit("colour", name, chosen.value);
  const node = el("li", {}, chosen, input, key,
    el("span", { class: "value" }, `${counts[name] ?? 0}`),
    el("button", { "aria-label": `Merge ${name}`, onclick: () => askMerge(node, name) }, "Merge"),
    el("button", { "aria-label": `Remove ${name}`, onclick: () => askRemove(node, name) }, "Remove"));
  return node;
}

/** Explain what would happen to the answers, and ask for confirmation. */
function ask(node, text, ...controls) {
  node.querySelector(".sure")?.remove();
  node.append(el("div", { class: "sure" }, el("p", {}, text), ...controls,
    el("button", { onclick: () => node.querySelector(".sure").remove() }, "Cancel")));
  node.querySelector(".sure select, .sure button").focus();
}

function askMerge(node, name) {
  const others = reply.classes.filter((other) => other.name !== name);
  const into = el("select", { "aria-label": "Merge into" }, ...others.map((other) => el("option", {}, other.name)));
  ask(node, `Its answers (${count(counts[name] ?? 0, "image")}) are moved to`, into,
    el("button", { class: "primary", onclick: () => edit("merge", name, into.value) }, "Merge"));
}

function askRemove(node, name) {
  ask(node, `Its answers (${count(counts[name] ?? 0, "image")}) ${multi ? "lose it, and keep their other classes" : "are set aside, and the images are asked again"}.`,
    el("button", { class: "primary", onclick: () => edit("remove", name) }, "Remove"));
}
