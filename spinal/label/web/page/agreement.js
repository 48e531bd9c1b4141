// The agreement of people, above the images that they disagree on; choosing a pair filters these.

import * as api from "./api.js";
import { $, about, count, el, percent } from "./dom.js";

let pair = null; // the two people whose disputes are shown; null for all

/** Whether an image is disputed between the chosen people. */
export const isShown = ({ answers }) => pair === null || pair.every((name) => answers.some(({ person }) => person === name));

/** Draw the table; ``changed`` is called when other people are chosen. */
export async function draw(changed) {
  const { pairs } = await api.get("/api/agreement").catch(() => ({ pairs: [] }));
  const last = pairs.some(({ classes }) => classes.length) ? "Kappa by class" : "Most often differ";
  if (!pairs.some(({ people }) => same(people))) pair = null;
  $("agreement").hidden = !pairs.length;
  $("agreement").replaceChildren(
    el("table", { class: "figures" },
      el("caption", {}, about("Agreement on images that both people labelled, before a dispute is settled")),
      el("thead", {}, el("tr", {}, ...["People", "Images", "Agreed", "Cohen's kappa", last].map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, ...pairs.map((row) => line(row, changed)))));
}

const same = (people) => pair !== null && people.join("\n") === pair.join("\n");

/** Cohen's kappa of each class, where an image can have several; lowest first. */
const byClass = (classes) => [...classes].sort((a, b) => (a[2] ?? 2) - (b[2] ?? 2))
  .map(([name, , kappa]) => `${name} ${kappa === null ? "–" : kappa.toFixed(2)}`).join(" · ");

function line({ people, images, agreed, kappa, confused, classes }, changed) {
  const choose = () => {
    pair = same(people) ? null : people;
    draw(changed);
    changed();
  };
  return el("tr", {},
    el("th", { scope: "row" }, el("button", { class: "open", "aria-pressed": String(same(people)), onclick: choose }, people.join(", "))),
    el("td", {}, count(images, "image")),
    el("td", {}, percent(agreed / images)),
    el("td", {}, kappa === null ? "–" : kappa.toFixed(2)),
    el("td", {}, classes.length ? byClass(classes) : confused.slice(0, 2).map(([labels, n]) => `${labels.join(" / ")} ${n}`).join(", ") || "–"));
}
