// The learning curve: estimated accuracy on all images, with its 95 % interval, by number of labels.

import { about, el, percent } from "./dom.js";

const LEFT = 34, RIGHT = 8, TOP = 8, BOTTOM = 24;

/** Draw the curve into a node of about this size, in pixels. */
export function drawCurve(node, state, width = 300, height = 124) {
  // After an undo, a round can have fewer labels than the one before; the last of each size counts.
  const bySize = new Map(state.rounds.filter((r) => r.audited > 0).map((r) => [r.trained_on, r]));
  const rounds = [...bySize.values()].sort((a, b) => a.trained_on - b.trained_on);
  const note = about("For all images, ") + `estimated by the audit: ${percent(state.audit)} of the questions, at least 10, are drawn at random. They are also used for training; each is predicted by a model trained without it.`
    + (state.multi ? " A prediction is right if it is right for all classes." : "");
  if (!rounds.length) {
    node.replaceChildren(el("p", { class: "muted" }, `${note} The first result comes with the first model.`));
    return;
  }
  const last = rounds[rounds.length - 1];
  const head = el("p", { class: "figure" },
    el("strong", {}, percent(last.accuracy)),
    el("span", { class: "muted" },
      ` ${percent(last.low)} to ${percent(last.high)} · ${last.correct} of ${last.audited} right in the audit`));
  const advice = state.advice ? [el("p", { class: "advice" }, `${state.advice[0].toUpperCase()}${state.advice.slice(1)}.`)] : [];
  node.replaceChildren(head, plot(rounds, state, width, height), ...advice, el("p", { class: "muted" }, note));
}

function plot(rounds, state, width, height) {
  const most = Math.max(state.budget ?? 0, rounds[rounds.length - 1].trained_on, 10);
  const x = (n) => LEFT + ((width - LEFT - RIGHT) * n) / most;
  const y = (p) => TOP + (height - TOP - BOTTOM) * (1 - p);
  const points = (of) => rounds.map((round) => `${x(round.trained_on).toFixed(1)},${y(of(round)).toFixed(1)}`);
  const accuracy = (round) => round.accuracy;
  const last = rounds[rounds.length - 1];
  const grid = [0, 0.5, 1].flatMap((p) => [
    el("svg:line", { class: "rule", x1: LEFT, x2: width - RIGHT, y1: y(p), y2: y(p) }),
    el("svg:text", { class: "tick", x: LEFT - 6, y: y(p) + 4, "text-anchor": "end" }, `${100 * p}`),
  ]);
  const band = [...points((r) => r.high), ...points((r) => r.low).reverse()].join(" ");
  return el("svg:svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `Accuracy ${percent(accuracy(last))} after ${last.trained_on} labels` },
    ...grid,
    el("svg:text", { class: "tick", x: LEFT, y: height - 6 }, "0"),
    el("svg:text", { class: "tick", x: width - RIGHT, y: height - 6, "text-anchor": "end" }, `${most} labels`),
    el("svg:polygon", { class: "band", points: band }),
    el("svg:polyline", { class: "line", points: points(accuracy).join(" ") }),
    el("svg:circle", { class: "dot", cx: x(last.trained_on), cy: y(accuracy(last)), r: 3.5 }));
}
