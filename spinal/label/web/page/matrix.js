// The confusion matrix: labels and predictions; each cell opens its images.

import { named } from "./colours.js";
import { about, count, el } from "./dom.js";

export function drawMatrix({ classes, matrix }, open) {
  const total = matrix.flat().reduce((sum, n) => sum + n, 0);
  if (!total) return [el("p", { class: "muted" }, "Shown after labels have been checked by models trained without them.")];
  const names = classes.map(({ name }) => name);
  const most = Math.max(...matrix.flat());
  const cell = (n, i, j) => {
    if (!n) return el("td", {}, el("span", { class: "muted" }, "·"));
    const what = `${about(count(n, "image"))} labelled ${names[i]}, predicted ${names[j]}`;
    const button = el("button", { class: i === j ? "right" : "wrong", title: what, "aria-label": what, onclick: () => open(names[i], names[j]) }, `${n}`);
    button.style.setProperty("--share", `${Math.round(12 + 38 * Math.sqrt(n / most))}%`);
    return el("td", {}, button);
  };
  return [
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Labels and predictions" },
      el("table", { class: `matrix ${names.length > 6 ? "many" : ""}` },
        el("caption", {}, "Rows: the label. Columns: the prediction."),
        el("thead", {}, el("tr", {}, el("td", {}), ...names.map((name) => el("th", { scope: "col" }, el("span", {}, ...named(name)))))),
        el("tbody", {}, ...matrix.map((row, i) => el("tr", {}, el("th", { scope: "row" }, el("span", {}, ...named(names[i]))), ...row.map((n, j) => cell(n, i, j))))))),
    el("p", { class: "muted" }, about(`${count(total, "image")}, without those of the audit. Click a number to see its images.`))];
}
