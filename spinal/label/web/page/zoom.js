// Zoom and pan by wheel, pinch, drag and keys; brightness and contrast, which are kept for later images.

import { el } from "./dom.js";

const MOST = 16, STEP = 1.4, PAN = 60;
const tones = { brightness: 1, contrast: 1 };

/** Zoom for the image in a stage. The tools are added to the frame around it. */
export class Zoom {
  constructor(stage, frame = stage) {
    this.stage = stage;
    this.pointers = new Map();
    this.level = el("button", { class: "level", title: "Whole image: 0", onclick: () => this.whole() });
    this.sliders = Object.keys(tones).map((name) => this.slider(name));
    this.panel = el("div", { class: "tones", hidden: true }, ...this.sliders.map(({ field }) => field),
      el("button", { class: "quiet", onclick: () => this.tone({ brightness: 1, contrast: 1 }) }, "Reset"));
    this.half = el("button", { class: "half", "aria-label": "Brightness and contrast", title: "Brightness [ ], contrast { }", "aria-expanded": "false",
      onclick: () => { this.panel.hidden = !this.panel.hidden; this.half.setAttribute("aria-expanded", String(!this.panel.hidden)); } });
    this.tools = el("div", { class: "stage-tools", role: "group", "aria-label": "Zoom, brightness and contrast" },
      el("button", { "aria-label": "Zoom out", title: "Zoom out: −", onclick: () => this.zoom(1 / STEP) }, "−"), this.level,
      el("button", { "aria-label": "Zoom in", title: "Zoom in: +", onclick: () => this.zoom(STEP) }, "+"), this.half, this.panel);
    frame.append(this.tools);
    this.listen();
    this.fresh();
  }

  get image() { return this.stage.querySelector("img"); }

  /** Show a new image whole, with the same brightness and contrast. */
  fresh() {
    this.tools.hidden = !this.image;
    this.whole();
    this.tone({});
  }

  whole() {
    [this.scale, this.x, this.y] = [1, 0, 0];
    this.draw();
  }

  /** Zoom by a factor; the point (x, y), relative to the centre of the stage, stays in place. */
  zoom(factor, x = 0, y = 0) {
    const scale = Math.max(1, Math.min(MOST, this.scale * factor));
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.draw();
  }

  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.draw();
  }

  draw() {
    const { clientWidth, clientHeight } = this.stage;
    const limit = (value, side) => Math.max(-1, Math.min(1, value / (((this.scale - 1) * side) / 2 || 1))) * (((this.scale - 1) * side) / 2);
    [this.x, this.y] = [limit(this.x, clientWidth), limit(this.y, clientHeight)];
    this.level.textContent = `${Math.round(100 * this.scale)}\u202f%`;
    this.level.setAttribute("aria-label", `${this.level.textContent}: whole image`);
    this.stage.classList.toggle("zoomed", this.scale > 1);
    if (this.image) this.image.style.transform = this.scale > 1 ? `translate(${this.x}px, ${this.y}px) scale(${this.scale})` : "";
  }

  slider(name) {
    const input = el("input", { type: "range", min: "20", max: "300", step: "5", oninput: () => this.tone({ [name]: input.value / 100 }) });
    const text = { brightness: "Brightness", contrast: "Contrast" }[name];
    return { name, input, field: el("label", {}, el("span", {}, text), input) };
  }

  tone(change) {
    for (const [name, value] of Object.entries(change)) tones[name] = Math.max(0.2, Math.min(3, value));
    for (const { name, input } of this.sliders) input.value = String(Math.round(100 * tones[name]));
    const changed = tones.brightness !== 1 || tones.contrast !== 1;
    this.half.classList.toggle("changed", changed);
    if (this.image) this.image.style.filter = changed ? `brightness(${tones.brightness}) contrast(${tones.contrast})` : "";
  }

  /** Handle a key; returns whether it did. */
  key({ key, shiftKey }) {
    const arrow = { ArrowLeft: [PAN, 0], ArrowRight: [-PAN, 0], ArrowUp: [0, PAN], ArrowDown: [0, -PAN] }[key];
    const tone = { "[": ["brightness", -0.1], "]": ["brightness", 0.1], "{": ["contrast", -0.1], "}": ["contrast", 0.1] }[key];
    if (!this.image) return false;
    if (key === "+" || key === "=") this.zoom(STEP);
    else if (key === "-") this.zoom(1 / STEP);
    else if (key === "0" && !shiftKey) this.whole();
    else if (arrow && this.scale > 1) this.pan(...arrow);
    else if (tone) this.tone({ [tone[0]]: Math.round(20 * (tones[tone[0]] + tone[1])) / 20 });
    else return false;
    return true;
  }

  listen() {
    const at = ({ clientX, clientY }) => {
      const box = this.stage.getBoundingClientRect();
      return [clientX - box.left - box.width / 2, clientY - box.top - box.height / 2];
    };
    this.stage.addEventListener("wheel", (event) => {
      // If the page itself scrolls, the wheel scrolls it, unless Ctrl is held (as with a pinch).
      if (!this.image || (!event.ctrlKey && document.documentElement.scrollHeight > innerHeight)) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0022)), ...at(event));
    }, { passive: false });
    this.stage.addEventListener("dblclick", (event) => (this.scale > 1 ? this.whole() : this.zoom(2.5, ...at(event))));
    this.stage.addEventListener("pointerdown", (event) => {
      if (event.target.closest(".stage-tools")) return;
      this.pointers.set(event.pointerId, at(event));
      if (this.scale > 1 || this.pointers.size > 1) this.stage.setPointerCapture(event.pointerId);
    });
    this.stage.addEventListener("pointermove", (event) => this.move(event.pointerId, at(event)));
    for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
      this.stage.addEventListener(end, (event) => this.pointers.delete(event.pointerId));
    }
  }

  /** One pointer drags; two pinch. */
  move(id, [x, y]) {
    const before = this.pointers.get(id);
    if (!before) return;
    const other = [...this.pointers].find(([each]) => each !== id)?.[1];
    this.pointers.set(id, [x, y]);
    if (!other) return this.scale > 1 && this.pan(x - before[0], y - before[1]);
    const apart = (point) => Math.max(1, Math.hypot(point[0] - other[0], point[1] - other[1]));
    this.zoom(apart([x, y]) / apart(before), (x + other[0]) / 2, (y + other[1]) / 2);
    this.pan((x - before[0]) / 2, (y - before[1]) / 2);
  }
}
