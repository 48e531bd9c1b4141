// The buttons of the classes, and the search for one by name.

import { named } from "./colours.js";
import { $, el } from "./dom.js";

const MANY = 9;

/** Buttons for all classes; ``choose`` is called with the name of one. */
export function draw({ classes }, choose) {
  $("choices").replaceChildren(...classes.map(({ name, keys }) =>
    el("button", { "data-label": name, onclick: (event) => { leave(event); choose(name); } },
      el("span", { class: "name" }, ...named(name)),
      el("span", { class: "keys" }, ...keys.map((k) => el("kbd", {}, k.toUpperCase()))))));
  const n = classes.length;
  $("choices").classList.toggle("many", n > MANY);
  $("choices").style.setProperty("--columns", n <= 3 ? n : n === 4 ? 2 : 3); // on a narrow screen
  $("find").hidden = n <= MANY;
  $("find").oninput = () => filter(classes);
  $("find").onkeydown = (event) => {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    const first = matches(classes, $("find").value)[0];
    if (event.key === "Enter" && $("find").value.trim() && first) choose(first);
    $("find").value = "";
    filter(classes);
    $("find").blur();
  };
  filter(classes);
}

/** Remove the focus from a clicked button, so that Enter accepts the model's guess. */
const leave = (event) => { if (event.detail) event.currentTarget.blur(); };

export const startFinding = () => $("find").focus();

/** Names that contain a text: first those that start with it, then those with such a word. */
export function matches(classes, text) {
  const wanted = text.trim().toLowerCase();
  const rank = (name) => {
    const at = name.indexOf(wanted);
    return at <= 0 ? at : /[\p{L}\p{N}]/u.test(name[at - 1]) ? 2 : 1;
  };
  return classes.map(({ name }) => [rank(name.toLowerCase()), name])
    .filter(([place]) => place >= 0).sort((a, b) => a[0] - b[0]).map(([, name]) => name);
}

function filter(classes) {
  const typed = $("find").value.trim() !== "";
  const names = matches(classes, $("find").value);
  for (const button of $("choices").children) {
    button.hidden = typed && !names.includes(button.dataset.label);
    button.classList.toggle("first", typed && button.dataset.label === names[0]);
  }
}

/** Highlight the button of a label for a moment; null is the skip button. */
export function press(label) {
  for (const button of document.querySelectorAll("#choices button, #skip, #submit")) {
    const it = label === null ? button.id === "skip" : Array.isArray(label) ? button.id === "submit" : button.dataset.label === label;
    button.classList.toggle("pressed", it);
    if (it) setTimeout(() => button.classList.remove("pressed"), 160);
  }
}
