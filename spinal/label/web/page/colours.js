// The colours of the classes, the same in all views, always shown with the name.

import { el, words } from "./dom.js";

const colours = new Map(); // by class

export function setColours(classes) {
  colours.clear();
  for (const { name, colour } of classes) colours.set(name, colour);
}

/** Set the colour of a class on a node, for the style sheet. */
export function paint(node, name) {
  if (colours.has(name)) node.style.setProperty("--class", colours.get(name));
  return node;
}

const swatch = (name) => paint(el("span", { class: "swatch", "aria-hidden": "true" }), name);

/** The name of a class after a spot of its colour; plain text if there is no such class. */
const one = (name) => colours.has(name) ? [swatch(name), name] : [name];

/** The same for a label, which may have several classes or none. */
export const named = (label) => !Array.isArray(label) ? one(label)
  : label.length ? label.flatMap((name, i) => i ? [", ", ...one(name)] : one(name)) : [words(label)];
