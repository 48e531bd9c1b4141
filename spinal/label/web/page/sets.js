// Several classes for an image: sets of classes, and the buttons that switch classes on and off.

import { named } from "./colours.js";
import { $, el, percent, words } from "./dom.js";

/** The classes with a probability above one half. */
export const likely = (classes, probs) => classes.filter((_, i) => probs[i] > 0.5).map(({ name }) => name);

/** The probability that the whole set is right. */
export const sureOfAll = (probs) => probs.reduce((product, p) => product * Math.max(p, 1 - p), 1);

/** The same set in the order of the classes. */
const inOrder = (set, classes) => classes.map(({ name }) => name).filter((name) => set.has(name));

/** Classes that a label probably lacks or has too many, each with its probability. */
export const doubts = (label, instead) => instead.map(({ label: name, confidence }) =>
  `${label.includes(name) ? `${name} is doubted` : `${name} is missing?`} ${percent(confidence)}`).join(", ");

/** The classes that are switched on for the image that is shown. */
const chosen = new Set();

/** Show on the buttons which classes are switched on. */
export function drawChosen({ classes, multi }) {
  $("submit").hidden = !multi;
  if (!multi) return;
  for (const button of $("choices").children) button.setAttribute("aria-pressed", String(chosen.has(button.dataset.label)));
  for (const name of chosen) if (!classes.some((each) => each.name === name)) chosen.delete(name);
  $("submit").replaceChildren(el("span", {}, `Submit ${words(inOrder(chosen, classes))} `), el("kbd", {}, "Enter"));
}

export function toggle(name, state) {
  if (!chosen.delete(name)) chosen.add(name);
  drawChosen(state);
}

export const current = ({ classes }) => inOrder(chosen, classes);

/** Switch all classes off, for the next image. */
export function clear(state) {
  chosen.clear();
  drawChosen(state);
}

/** Buttons that change their own set of classes, such as that of a tile; ``changed`` is called with it. */
export class Editor {
  constructor(label, classes, changed) {
    [this.set, this.classes, this.changed] = [new Set(label ?? []), classes, changed];
    this.buttons = classes.map(({ name, keys }) => el("button", { "aria-pressed": String(this.set.has(name)), onclick: () => this.toggle(name) },
      ...named(name), keys[0] ? el("kbd", {}, keys[0].toUpperCase()) : null));
  }

  get label() { return inOrder(this.set, this.classes); }

  toggle(name) {
    if (!this.set.delete(name)) this.set.add(name);
    this.classes.forEach((each, i) => this.buttons[i].setAttribute("aria-pressed", String(this.set.has(each.name))));
    this.changed(this.label);
  }
}
