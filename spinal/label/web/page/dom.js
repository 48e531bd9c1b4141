// Small helpers. Names of files and classes only become text nodes: nothing is parsed as HTML.

export const $ = (id) => document.getElementById(id);

/** An element with properties (class, data-*, aria-*, on*) and children; strings become text nodes. */
export function el(tag, properties = {}, ...children) {
  const node = tag.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

/** Replace the content of a node only if it differs: otherwise focus is lost, and a status is read again. */
export function redraw(node, ...children) {
  const fresh = node.cloneNode(false);
  fresh.append(...children);
  if (!fresh.isEqualNode(node)) node.replaceChildren(...fresh.childNodes);
}

/** A bar; its width is set as a property, since inline styles in HTML are not allowed. */
export function bar(share, kind = "") {
  const inner = el("span", { class: `bar-fill ${kind}` });
  inner.style.width = `${Math.max(0, Math.min(100, 100 * share))}%`;
  return el("span", { class: "bar" }, inner);
}

/** A percentage, never "100 %" for less than 1, with a non-breaking space. */
export const percent = (p) => `${p < 1 ? Math.min(99, Math.round(100 * p)) : 100}\u202f%`;
export const count = (n, one, many = `${one}s`) =>
  `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

let fading;
/** Show a message for a few seconds, optionally with a button. */
export function toast(text, action) {
  const node = $("toast");
  clearTimeout(fading);
  const button = action && el("button", { onclick: () => { node.hidden = true; action.run(); } }, action.text);
  node.replaceChildren(text, ...(button ? [button] : []));
  node.hidden = false;
  fading = setTimeout(() => { node.hidden = true; }, action ? 8000 : 3500);
}

let noun = "image";
/** Set what is labelled: "images" or "texts". */
export const setKind = (kind) => { noun = kind.slice(0, -1); };
/** A sentence about images, changed to texts if texts are labelled. */
export const about = (sentence) =>
  noun === "image" ? sentence : sentence.replaceAll("image", noun).replaceAll("Image", "Text");

/** A label in words: its class or classes. */
export const words = (label) =>
  !Array.isArray(label) ? label : label.length ? label.join(", ") : "none of these";
