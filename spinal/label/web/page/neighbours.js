// The most similar labelled images, which may explain the prediction.

import * as api from "./api.js";
import { named } from "./colours.js";
import { about, el, toast, words } from "./dom.js";
import { preview } from "./text.js";
import * as viewer from "./viewer.js";

/** Draw them into a node, which is hidden if there are none. */
export async function drawNeighbours(node, image, state) {
  node.dataset.image = image;
  let images = [];
  try {
    ({ images } = await api.get(`/api/neighbours/${image}`));
  } catch { /* show none */ }
  if (node.dataset.image !== String(image)) return; // another image is shown now
  const bySize = [...grouped(images)].sort((a, b) => b[1].length - a[1].length);
  node.hidden = !images.length;
  node.replaceChildren(el("h2", {}, about("Similar labelled images")),
    el("div", { class: `near ${state.kind}` }, ...bySize.flatMap(([label, all]) => all.map((item) =>
      el("button", { title: state.kind === "texts" ? null : item.path, "aria-label": `${label}: ${item.path}`, onclick: () => open(images, item, state) },
        preview(item, state.kind), el("span", { class: "name" }, ...named(item.label)))))));
}

function grouped(images) {
  const groups = new Map();
  for (const item of images) groups.set(words(item.label), [...(groups.get(words(item.label)) ?? []), item]);
  return groups;
}

export const hideNeighbours = (node) => { node.hidden = true; node.dataset.image = ""; };

/** Open one of them; its label can be corrected. */
const open = (images, item, state) => viewer.show(images, item, state, { give, isKept: () => false });

async function give(image, label) {
  try {
    await api.answer([{ token: api.token(), image, label, reason: "browse" }]);
  } catch (error) {
    return api.complain(error.message);
  }
  toast(`${about("1 image")} labelled ${words(label)}.`, { text: "Undo", run: api.undoLast });
}
