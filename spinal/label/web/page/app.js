// Starts the page, updates its state, and passes keys to the open view.

import * as api from "./api.js";
import * as browse from "./browse.js";
import * as classes from "./classes.js";
import * as dashboard from "./dashboard.js";
import * as exporting from "./export.js";
import * as labelling from "./label.js";
import * as tiles from "./tiles.js";
import * as viewer from "./viewer.js";
import { named, setColours } from "./colours.js";
import { $, about, count, el, percent, redraw, setKind } from "./dom.js";

// Name, text, module and element of each view. A module has open(name, state, wanted, go) and
// key(event), which returns whether it handled the key; some have update(state), for new states.
const VIEWS = [["label", "Label", labelling, "label"], ["guesses", "Guesses", tiles, "tiles"], ["mistakes", "Mistakes", tiles, "tiles"],
  ["outliers", "Outliers", tiles, "tiles"], ["disagreements", "Disputes", tiles, "tiles"], ["browse", "Browse", browse, "browse"],
  ["dashboard", "Dashboard", dashboard, "dashboard"], ["export", "Export", exporting, "export"]];
const current = () => VIEWS.find(([name]) => name === view);
let state = null;
let view = "label";
let crashed = false;

async function begin() {
  history.replaceState(null, "", location.pathname + location.hash); // no token in the address bar
  state = await fetchState();
  setKind(state.kind);
  if (!api.person.get() && state.person) api.person.set(state.person);
  if (!api.person.get()) await askName();
  await api.sendLeftOvers();
  document.title = `${state.name} · spinal label`;
  $("title").textContent = state.name;
  drawHead();
  await labelling.start(state);
  labelling.update(state);
  const hash = location.hash.slice(1);
  if (VIEWS.some(([name]) => name === hash)) go(hash);
  document.body.dataset.ready = "";
  poll();
}

async function fetchState() {
  const fresh = await api.get(`/api/state?person=${encodeURIComponent(api.person.get())}`);
  setColours(fresh.classes);
  return fresh;
}

async function refresh() {
  state = await fetchState();
  labelling.update(state);
  const [, , module] = current();
  if (module !== labelling) module.update?.(state);
  drawHead();
  return state;
}

async function poll() {
  for (;;) {
    await new Promise((wake) => setTimeout(wake, 1000 * state.poll));
    if (document.hidden) continue;
    try {
      await refresh();
    } catch { /* try again later; sending an answer shows the error */ }
  }
}

function go(name, wanted) {
  view = name;
  history.replaceState(null, "", `#${name}`);
  const [, , module, main] = current();
  for (const node of document.querySelectorAll("main")) node.hidden = node.id !== main;
  module.open?.(name, state, wanted, go);
  $(main).tabIndex = -1;
  $(main).focus({ preventScroll: true });
  scrollTo(0, 0);
  drawHead();
}

function drawHead() {
  const disputed = state.progress.disputed;
  redraw($("tabs"), ...VIEWS.map(([name, text], i) =>
    el("button", { "aria-current": name === view ? "page" : null, title: `Shift+${i + 1}`, "data-view": name, onclick: () => go(name) },
      text, name === "disagreements" && disputed ? el("span", { class: "badge" }, `${disputed}`) : null)));
  $("person").textContent = api.person.get();
  drawStatus();
}

function drawStatus() {
  const { worker, model, shares, warning, progress, rounds } = state;
  const last = rounds[rounds.length - 1];
  const said = {
    starting: "Starting", fitting: worker.total ? `Learning: ${percent(worker.done / worker.total)}` : "Learning", idle: "Up to date", fitted: "Up to date", waiting: "Waiting for answers",
    auditing: "Estimating accuracy", checking: "Checking labels", off: "No model", crashed: "The model failed",
    features: about(`Reading images: ${worker.done ?? 0} of ${worker.total ?? "?"}`),
  }[worker.state] ?? worker.state;
  const busy = ["starting", "fitting", "features", "auditing", "checking"].includes(worker.state);
  const light = worker.state === "crashed" ? "bad" : busy ? "busy" : worker.state === "off" ? "" : "good";
  redraw($("status"), el("span", { class: `light ${light}` }), said);
  const learnt = last ? ` · trained on ${count(last.trained_on, "label")}` : "";
  $("engine").textContent = `Model: ${model}${learnt}`;
  $("shares").textContent = Object.entries(shares ?? {}).map(([name, share]) => `${name} ${percent(share)}`).join(", ");
  $("warning").textContent = warning ?? "";
  $("warning").hidden = !warning;
  if (worker.state === "crashed") api.complain(`The model failed: ${worker.message}. You can continue to label.`);
  else if (crashed) api.complain("");
  crashed = worker.state === "crashed";
  $("files").hidden = !progress.problems;
  $("files").textContent = `${count(progress.problems, "file")} cannot be shown`;
}

async function showProblems() {
  const { images } = await api.get("/api/problems");
  $("problems").replaceChildren(el("h2", {}, "Files that cannot be shown"),
    el("ul", {}, ...images.map(({ path, problem }) => el("li", {}, el("strong", {}, path), ` ${problem}`))),
    closeButton());
  $("problems").showModal();
}

const closeButton = () => el("form", { method: "dialog" }, el("button", { class: "primary" }, "Close"));

function showHelp() {
  const rows = [...state.classes.map(({ name, keys }) => [keys, name]), [["space"], "skip"], [["u"], "undo"], [["."], "flag"], [[","], "note"],
    [["Shift+1", `Shift+${VIEWS.length}`], "views, first to last"], [["← ↑ ↓ →"], state.kind === "texts" ? "go through tiles; unfold and scroll a text" : "go through tiles"],
    ...(state.multi ? [[["Enter"], "submit the classes that are on; confirm, save, open"], [["Shift+Enter"], "accept the model's guess"]]
      : [[["Enter"], "accept the model's guess; confirm, keep, open"]]), [["space"], "in Browse: select"],
    ...(state.kind === "texts" ? [] : [[["+", "-", "0"], "zoom in, out, whole image"], [["[", "]"], "brightness"], [["{", "}"], "contrast"]]),
    [["/"], "find a class, if there are many"], [["?"], "this list"]];
  $("help").replaceChildren(el("h2", {}, "Keys"),
    el("dl", {}, ...rows.flatMap(([keys, text]) =>
      [el("dt", {}, ...keys.map((k) => el("kbd", {}, k.length === 1 ? k.toUpperCase() : k))), el("dd", {}, ...named(text))])),
    closeButton());
  $("help").showModal();
}

async function askName() {
  const dialog = $("name-dialog");
  $("name").value = api.person.get();
  $("people").replaceChildren(...Object.keys(state.people).map((name) => el("option", { value: name })));
  dialog.showModal();
  await new Promise((closed) => dialog.addEventListener("close", closed, { once: true }));
  if ($("name").value.trim()) api.person.set($("name").value);
  if (!api.person.get()) await askName();
}

$("person").onclick = async () => { await askName(); location.reload(); };
$("help-open").onclick = showHelp;
$("files").onclick = showProblems;
$("classes-open").onclick = () => classes.open(state, refresh);

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.closest("input, select, textarea, dialog, summary") || document.querySelector("dialog[open]")) return;
  const digit = event.shiftKey && /^Digit([1-9])$/.exec(event.code);
  let done = true;
  if (digit) VIEWS[digit[1] - 1] && go(VIEWS[digit[1] - 1][0]);
  else if (event.key === "?") showHelp();
  else done = current()[2].key(event);
  if (done) event.preventDefault();
});

viewer.start();
exporting.start(go);
begin().catch((error) => api.complain(error.message));
