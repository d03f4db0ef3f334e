// Elements and texts. Texts from outside become text nodes only, and what cannot be printed is spelled out: a name may
// hold markup, control characters, or letters that turn the direction of writing around.

const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;
const SVG = "http://www.w3.org/2000/svg";

export function printable(text) {
  return String(text).replace(UNPRINTABLE, (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`);
}

function built(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== undefined) node.setAttribute(name, printable(value));
  }
  node.append(...children.map((each) => (typeof each === "string" ? printable(each) : each)));
  return node;
}

export const html = (tag, attributes = {}, ...children) => built(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => built(document.createElementNS(SVG, tag), attributes, children);

// Writes a text if it has changed; an unchanged one keeps its selection, and is not announced again.
export function say(node, text) {
  const shown = printable(text);
  if (node.textContent !== shown) node.textContent = shown;
}

export function put(node, name, value) {
  const shown = printable(value);
  if (node.getAttribute(name) !== shown) node.setAttribute(name, shown);
}

// Shows that something has changed: CSS lets it fade, or without motion only frames it for a moment.
export function light(node) {
  node.classList.remove("lit");
  void node.offsetWidth;
  node.classList.add("lit");
  clearTimeout(node.unlit);
  node.unlit = setTimeout(() => node.classList.remove("lit"), 2500);
}

// Words in which commands stand in backquotes.
export const coded = (text) => text.split("`").map((each, place) => (place % 2 ? html("code", {}, each) : each));

export const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
export const clock = (ms) => `${Math.floor(ms / 60000)}:${String(Math.floor(ms / 1000) % 60).padStart(2, "0")}`;
export const several = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

export const swatch = (style) =>
  svg("svg", { class: "swatch", width: 14, height: 14, "aria-hidden": "true" },
    svg("rect", { class: `bar ${style}`, x: 1, y: 1, width: 12, height: 12 }));

// Keeps one element for each key, in this order; `make` builds a new one, `update` brings each up to date.
export function keyed(parent, items, key, make, update) {
  const known = parent.byKey ?? (parent.byKey = new Map());
  const left = new Set(known.keys());
  let place = parent.firstChild;
  for (const item of items) {
    const name = key(item);
    left.delete(name);
    let node = known.get(name);
    if (!node) known.set(name, (node = make(item)));
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
    update?.(node, item);
  }
  for (const name of left) {
    known.get(name).remove();
    known.delete(name);
  }
}
