// Quality of the model for each class, and activity of people.

import * as api from "./api.js";
import { named, paint } from "./colours.js";
import { drawCurve } from "./curve.js";
import { drawMatrix } from "./matrix.js";
import { $, about, bar, count, el, percent } from "./dom.js";

const SIDE = 240, EDGE = 34;

let state = null, board = null, go = null, drawn = "";

export async function open(_, now, __, leave) {
  [state, go] = [now, leave];
  await load();
}

/** Load the numbers again only after an answer or a fit. */
export function update(now) {
  state = now;
  const news = JSON.stringify([now.progress, now.rounds.at(-1), now.classes]);
  if (news !== drawn) load();
}

export const key = () => false;

async function load() {
  drawn = JSON.stringify([state.progress, state.rounds.at(-1), state.classes]);
  try {
    board = await api.get("/api/dashboard");
  } catch (error) {
    return api.complain(error.message);
  }
  const curve = el("div", { class: "wide-curve" });
  if (matchMedia("(max-width: 800px)").matches) drawCurve(curve, state);
  else drawCurve(curve, state, 560, 210);
  $("dashboard").replaceChildren(
    el("div", { class: "view-head" }, el("div", {}, el("h2", {}, "Dashboard"), el("p", {}, summary()))),
    el("div", { class: "cards" },
      card("Estimated accuracy", "half", curve),
      card("Calibration", "half", ...calibration()),
      card("Classes", "half", ...classes()),
      board.multi ? card("All classes together", "half", ...overall())
        : card("Labels and predictions", "half", ...drawMatrix(board, (label, predicted) => go("browse", { label, predicted }))),
      card("People", "half", ...people()),
      card("Model", "half", ...model())));
}

const card = (title, size, ...content) => el("section", { class: `card ${size}` }, el("h2", {}, title), ...content);
const soft = (text) => el("p", { class: "muted" }, about(text));

function summary() {
  const { labelled, images } = state.progress;
  const each = board.seconds === null ? "" : `, ${seconds(board.seconds)} per answer`;
  return about(`${labelled.toLocaleString("en")} of ${count(images, "image")} labelled${each}`);
}

const seconds = (s) => `${s < 10 ? s.toFixed(1) : Math.round(s)}\u202fs`;

function classes() {
  const { classes: rows } = board;
  if (rows.every(({ precision, recall }) => !precision && !recall)) {
    return [soft("Precision and recall are shown after labels have been checked, in a pause. This needs five labels in each of two classes.")];
  }
  const shown = (share, name) => share ? el("td", {}, paint(bar(share.value, "of-class"), name), el("span", { class: "value" }, percent(share.value)),
    el("span", { class: "muted" }, ` ${percent(share.low)} to ${percent(share.high)}`)) : el("td", { class: "muted" }, "–");
  return [el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Classes" }, el("table", { class: "figures" },
    el("thead", {}, el("tr", {}, ...["Class", "Precision", "Recall", "Audit"].map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {},
      el("th", { scope: "row" }, el("button", { class: "open", onclick: () => go("browse", { label: row.name }) }, ...named(row.name)),
        el("span", { class: "muted" }, count(state.progress.classes[row.name] ?? 0, "label"))),
      shown(row.precision, row.name), shown(row.recall, row.name),
      el("td", { class: row.audited ? "" : "muted" }, row.audited ? `${row.audited_right} of ${row.audited}` : "–")))))),
    soft("For labelled images, each predicted by a circuit that was fitted without it, with 95\u202f% intervals. The model asks for hard images, so these numbers are rather low. The audit is drawn at random; its column shows " + (board.multi
      ? "for how many images the class was predicted right." : "how many images of the class were predicted right."))];
}

/** Means over the classes, where an image can have several. */
function overall() {
  const rows = [["Macro-F1", board.scores.macro_f1], ["Mean average precision", board.scores.map]].filter(([, score]) => score);
  if (!rows.length) return [soft("Shown after labels have been checked. This needs ten images, and a class with five of them.")];
  return [el("table", { class: "figures" }, el("tbody", {}, ...rows.map(([name, score]) => el("tr", {}, el("th", { scope: "row" }, name),
    el("td", {}, bar(score.value), el("span", { class: "value" }, percent(score.value)), el("span", { class: "muted" }, ` ${percent(score.low)} to ${percent(score.high)}`)))))),
  soft(`The mean over ${count(rows[0][1].classes, "class", "classes")}, from ${count(rows[0][1].n, "image")}, with 95\u202f% bootstrap intervals. The model asks for hard images, so these numbers are rather low.`)];
}

/** Share of right predictions by confidence, in groups of equal size from the audit. */
function calibration() {
  const groups = board.calibration;
  if (!groups.length) return [soft("Shown after five answers of the audit.")];
  const x = (p) => EDGE + (SIDE - EDGE - 8) * p, y = (p) => 8 + (SIDE - EDGE - 8) * (1 - p);
  const grid = [0, 0.5, 1].flatMap((p) => [
    el("svg:line", { class: "rule", x1: x(0), x2: x(1), y1: y(p), y2: y(p) }),
    el("svg:text", { class: "tick", x: EDGE - 6, y: y(p) + 4, "text-anchor": "end" }, `${100 * p}`),
    el("svg:text", { class: "tick", x: x(p), y: y(0) + 18, "text-anchor": p === 1 ? "end" : "middle" }, `${100 * p}`)]);
  const said = groups.map((g) => `${percent(g.confidence)} sure: ${percent(g.value)} right`).join(", ");
  const total = groups.reduce((sum, { n }) => sum + n, 0);
  return [el("div", { class: "calibration" }, el("svg:svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, role: "img", "aria-label": said },
    ...grid, el("svg:line", { class: "ideal", x1: x(0), x2: x(1), y1: y(0), y2: y(1) }),
    ...groups.flatMap((g) => [
      el("svg:line", { class: "whisker", x1: x(g.confidence), x2: x(g.confidence), y1: y(g.low), y2: y(g.high) }),
      el("svg:circle", { class: "dot", cx: x(g.confidence), cy: y(g.value), r: 4.5 })])),
  el("table", { class: "figures" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Confidence"), el("th", { scope: "col" }, "Right"), el("th", { scope: "col" }, about("Images")))),
    el("tbody", {}, ...groups.map((g) => el("tr", {}, el("td", {}, percent(g.confidence)), el("td", {}, percent(g.value)), el("td", {}, `${g.n}`)))))),
  soft(`Horizontal: confidence of the model. Vertical: how often it is right, with 95\u202f% intervals. On the dashed line, both are equal. From ${count(total, "image")} of the audit.`)];
}

function people() {
  if (!board.people.length) return [soft("Nobody has answered yet.")];
  const heads = ["Person", "Answers", "Skipped", "Corrections", "Undone", "Each"];
  return [el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "People" }, el("table", { class: "figures" },
    el("thead", {}, el("tr", {}, ...heads.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, ...board.people.map((row) => el("tr", {},
      el("th", { scope: "row" }, el("button", { class: "open", onclick: () => go("browse", { person: row.person, order: "recent" }) }, row.person),
        el("span", { class: "muted" }, `last ${new Date(row.last).toLocaleDateString("en", { dateStyle: "medium" })}`)),
      ...[row.answers, row.skipped, row.corrections, row.undone].map((n) => el("td", {}, n.toLocaleString("en"))),
      el("td", {}, row.seconds === null ? "–" : seconds(row.seconds))))))),
    soft("Each: the median time from one answer to the next; pauses of more than a minute do not count.")];
}

function model() {
  const last = state.rounds.at(-1);
  if (!last) return [soft(`${state.model}. It is trained after the first answers.`)];
  const from = board.learned_from === "pool"
    ? "The labels and all images without one: this predicted held-out labels better."
    : "Only the labels: images without one did not improve it.";
  const shares = Object.entries(state.shares ?? {}).map(([name, share]) => `${name} ${percent(share)}`).join(", ");
  const rows = [["Network", state.model], ...(shares ? [["Classifiers", shares]] : []), ["Trained on", about(from)],
    ["Labels", `${last.trained_on.toLocaleString("en")}, fit ${last.round} in ${seconds(last.seconds)}`]];
  return [el("dl", {}, ...rows.flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]))];
}
