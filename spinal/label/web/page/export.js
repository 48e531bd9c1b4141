// Downloads of the labels and the model, and the trial of the model on a new image or text.

import * as api from "./api.js";
import { $, about, bar, el, percent, words } from "./dom.js";
import { likely, sureOfAll } from "./sets.js";

const FORMATS = [
  ["csv", "CSV table", "A row for each label, with who gave it, when and why"],
  ["jsonl", "JSON Lines", "The same, a line for each label"],
  ["coco", "COCO", "JSON with a category for each class"],
  ["label-studio", "Label Studio", "Tasks to import there"],
  ["notes", "Notes", "CSV: flags and notes on images, including those without a label"],
  ["imagefolder", "Folders", "ZIP: a folder for each class, with its images"],
  ["model", "Model", "ZIP: safetensors, a small Python module, and ONNX"],
];
const FOR_IMAGES = ["coco", "imagefolder"];
const SEEN = 0.01; // if a smaller share of images has a lower density, an image is unlike anything seen
const LARGEST = 64 * 2 ** 20;

let state = null, built = "";

export function open(_, now, file) {
  state = now;
  build();
  if (file) tryOne(file);
}

export const key = () => false;

export function update(now) {
  state = now;
  build();
}

function build() {
  const needed = JSON.stringify([state.classes, state.kind]);
  if (built === needed) return;
  built = needed;
  const formats = FORMATS.filter(([name]) => (state.kind === "images" || !FOR_IMAGES.includes(name)) && !(state.multi && name === "imagefolder"));
  $("export").replaceChildren(
    el("div", { class: "view-head" }, el("div", {}, el("h2", {}, "Export and try"),
      el("p", {}, "Download the labels and the model, or try the model on something new."))),
    el("div", { class: "cards" },
      el("section", { class: "card" }, el("h2", {}, "Download"),
        el("label", { class: "with-predictions" }, el("input", { id: "predictions", type: "checkbox" }), about("With predictions for the images that have no label")),
        el("ul", { class: "formats" }, ...formats.map(([name, title, text]) => el("li", {},
          el("div", {}, el("strong", {}, title), el("p", { class: "muted" }, about(text))),
          el("button", { "data-format": name, "aria-label": `Download ${title}`, onclick: (event) => make(name, event.target) }, "Download")))),
        el("p", { id: "export-note", role: "status" })),
      el("section", { class: "card" }, el("h2", {}, "Try the model"), ...(state.kind === "texts" ? textBox() : dropBox()),
        el("div", { id: "trial", role: "status" }))));
}

async function make(to, button) {
  const note = $("export-note");
  button.disabled = true;
  button.textContent = "Preparing …";
  note.className = "muted";
  note.textContent = "";
  try {
    const { at, name, bytes, warning } = await api.makeFile(to, to !== "model" && $("predictions").checked);
    const link = el("a", { href: at, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    note.textContent = `${name}, ${size(bytes)}.${warning ? ` ${warning[0].toUpperCase()}${warning.slice(1)}.` : ""}`;
  } catch (error) {
    note.className = "bad-text";
    note.textContent = error.message;
  } finally {
    button.disabled = false;
    button.textContent = "Download";
  }
}

const size = (bytes) => bytes < 1e6 ? `${Math.ceil(bytes / 1e3).toLocaleString("en")}\u202fkB` : `${(bytes / 1e6).toFixed(1)}\u202fMB`;

function dropBox() {
  const input = el("input", { id: "photo", type: "file", accept: "image/*", onchange: () => input.files[0] && tryOne(input.files[0]) });
  return [el("label", { id: "drop" }, el("strong", {}, "Drop a photograph here"), el("span", { class: "muted" }, "or choose one. It is not stored."), input)];
}

function textBox() {
  const box = el("textarea", { id: "some-text", rows: "6", "aria-label": "Text", placeholder: "Write or paste a text. It is not stored." });
  return [box, el("button", { onclick: () => box.value.trim() && tryOne(new Blob([box.value])) }, "Try")];
}

async function tryOne(file) {
  const trial = $("trial");
  if (file.size > LARGEST) return trial.replaceChildren(el("p", { class: "bad-text" }, "More than 64 MB."));
  const picture = state.kind === "images" ? await draw(file) : null;
  const shown = [...(picture ? [picture] : []), ...(file.name ? [el("p", { class: "muted" }, file.name)] : [])];
  trial.replaceChildren(...shown, el("p", {}, "Predicting …"));
  try {
    trial.replaceChildren(...shown, ...said(await api.tryContent(file)));
  } catch (error) {
    trial.replaceChildren(...shown, el("p", { class: "bad-text" }, error.message));
  }
}

/** A small copy, drawn by the browser; null if it cannot. */
async function draw(file) {
  try {
    const bitmap = await createImageBitmap(file);
    const scale = Math.min(1, 640 / Math.max(bitmap.width, bitmap.height));
    const canvas = el("canvas", { width: Math.max(1, Math.round(bitmap.width * scale)), height: Math.max(1, Math.round(bitmap.height * scale)), role: "img", "aria-label": file.name });
    canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    return canvas;
  } catch {
    return null;
  }
}

function said({ classes, probs, density_rank: rank }) {
  const list = classes.map((name, i) => [name, probs[i]]).sort((a, b) => b[1] - a[1]);
  const strange = rank !== null && rank < SEEN;
  const usual = rank === null ? [] : strange
    ? [el("p", { class: "warning" }, el("strong", {}, "Unlike anything seen. "), about(rank ? `To the model, only ${percent(rank)} of the images here are more unusual. Do not rely on the class.`
      : "To the model, no image here is more unusual. Do not rely on the class."))]
    : [el("p", { class: "muted" }, about(`Not unusual: to the model, ${percent(rank)} of the images here are more unusual.`))];
  const { multi } = state;
  const [best, sure] = multi ? [words(likely(classes.map((name) => ({ name })), probs)), sureOfAll(probs)] : list[0];
  return [el("p", { class: "figure" }, el("strong", {}, best), el("span", { class: "muted" }, ` ${percent(sure)} sure`)),
    ...list.slice(0, multi ? 8 : 5).map(([name, p], i) => el("div", { class: "belief" }, el("span", { class: "name" }, name), bar(p, (multi ? p <= 0.5 : i) ? "other" : ""), el("span", { class: "value" }, percent(p)))),
    ...usual];
}

/** Call once: try an image that is dropped anywhere on the page. */
export function start(go) {
  const isFile = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragover", (event) => {
    if (!isFile(event)) return;
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  addEventListener("drop", (event) => {
    if (!isFile(event)) return;
    event.preventDefault(); // otherwise the browser opens the file
    document.body.classList.remove("dropping");
    if (event.dataTransfer.files[0]) go("export", event.dataTransfer.files[0]);
  });
}
