// What was done in a group, and what came of it, as marks above its lanes: a shape and a few letters, and in words when
// one is pointed at or focused. All of them are one stop of the Tab key; arrows go from one to the next.

import { clock, html, keyed, printable, put, say, svg } from "./elements.js";
import { crowded, LETTER } from "./painter.js";

export const ROOM = 16;  // above the lanes
const HALF = 4, TOP = 3, ASIDE = 7, NEAR_MS = 3000;
const HINT = "Point at a mark, or reach it with Tab and the arrow keys, to read what was done.";
// Their shapes differ, not only their colours.
export const SHAPES = { begin: `M${-HALF} ${TOP}h${2 * HALF}l${-HALF} 8z`, heal: `M${-HALF} ${TOP + 8}h${2 * HALF}l${-HALF} -8z`,
  change: `M0 ${TOP - 1}l5 5l-5 5l-5 -5z` };
// Letters are bold, and some of them wide.
const widthOf = (text) => LETTER * (text.length + 0.5 * (text.match(/[mw+]/gi)?.length ?? 0));
const words = (act) => `${clock(act.from_ms)} ${act.text || act.label}`;

export class Marks {
  constructor(design) {
    this.root = svg("g", { class: "marks", role: "group", "aria-label": `What was done in ${design}` });
    this.said = html("p", { class: "mark-words faint", "aria-live": "off" }, HINT);
    this.rows = html("ol", { class: "acts" });
    this.list = html("details", {}, html("summary", {}, "What was done"), html("div", { class: "scroll", tabindex: 0, role: "region",
      "aria-label": `What was done in ${design}` }, this.rows));
    this.root.addEventListener("keydown", (event) => this.go(event));
    this.items = [];
  }

  // `acts` are intervals of that kind; `bottom` is where the lanes end.
  draw(acts, bottom) {
    this.items = [];
    keyed(this.root, acts, (each) => each.id, (each) => this.mark(each), (node, act) => {
      put(node.querySelector("path"), "d", `M0 ${ROOM - 4}V${bottom}`);
      this.items.push({ act, node, text: node.querySelector("text"), label: printable(`${act.label} ${act.member}`.trim()) });
    });
    this.items.sort((one, other) => one.act.from_ms - other.act.from_ms || one.act.id - other.act.id);
    this.tell();
    this.choose(this.items.find(({ node }) => node === this.chosen) ?? this.items.at(-1));
    keyed(this.rows, [...acts].reverse(), (each) => each.id, (each) => html("li", {}, words(each)));
  }

  mark(act) {
    const show = () => say(this.said, words(act)), hide = () => say(this.said, HINT);
    return svg("g", { class: "mark", "data-style": act.style, role: "img", tabindex: -1, "aria-label": words(act), "data-act": act.label,
      onpointerenter: show, onpointerleave: hide, onfocus: show, onblur: hide },
    svg("path", { class: act.style, d: "" }), svg("rect", { class: "reach", x: -8, y: 0, width: 16, height: ROOM }),
    svg("path", { class: "sign", d: SHAPES[act.style] ?? SHAPES.change }), svg("text", { class: "fault-name", x: ASIDE, y: ROOM - 5 }));
  }

  // Without marks the line says nothing.
  tell() {
    if (!this.root.contains(document.activeElement) && !this.root.querySelector(":hover")) say(this.said, this.items.length ? HINT : "");
  }

  choose(item) {
    for (const { node } of this.items) put(node, "tabindex", node === item?.node ? "0" : "-1");
    this.chosen = item?.node;
  }

  go(event) {
    const at = this.items.findIndex(({ node }) => node === document.activeElement);
    const next = this.items[{ ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: this.items.length - 1 }[event.key]];
    if (at < 0 || !next) return;
    event.preventDefault();
    this.choose(next);
    next.node.focus();
  }

  // Puts the marks at their times; where letters would run into the next ones, the shape alone is there.
  place(scale, left, right) {
    const places = this.items.map(({ act, label }) => ({ x: act.from_ms * scale, text: label, wide: widthOf(label) }));
    // Where the picture ends before the letters do, they stand before their shape.
    const isLate = places.map(({ x, wide }) => x + ASIDE + wide > right);
    places.forEach((each, place) => { if (isLate[place]) each.x -= each.wide + ASIDE; });
    const isCrowded = crowded(places.toReversed().map(({ x, text, wide }) => ({ x: -x - wide, text, room: 14 + wide - LETTER * text.length }))).toReversed();
    this.items.forEach(({ act, node, text, label }, place) => {
      put(node, "transform", `translate(${(act.from_ms * scale).toFixed(1)} 0)`);
      put(text, "x", isLate[place] ? -ASIDE : ASIDE);
      put(text, "text-anchor", isLate[place] ? "end" : "start");
      node.style.visibility = act.from_ms >= left - NEAR_MS ? "" : "hidden";
      say(text, isCrowded[place] ? "" : label);
    });
  }
}
