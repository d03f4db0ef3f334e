// What the lanes' bars, marks and colours mean; one that is folded is folded in all columns.

import { html, svg } from "./elements.js";
import { SHAPES } from "./marks.js";

// The phases of a rebalance, as a member enters them; the palette has their colours.
const PHASES = ["detect", "stop", "release", "join", "decide", "claim", "resume", "backoff"];
const FOLD = "legend-folds";

const sample = (...parts) => svg("svg", { class: "sample", width: 18, height: 14, "aria-hidden": "true" }, ...parts);
const rect = (style, y = 2, height = 10) => svg("rect", { class: style, x: 1, y, width: 16, height });
const sign = (style) => sample(svg("g", { class: "mark", "data-style": style, transform: "translate(9 0)" }, svg("path", { class: "sign", d: SHAPES[style] })));

function meanings(authority) {
  return [
    [sample(rect("bar k0", 1, 5), rect("bar k0", 8, 5)), `above: whom ${authority} names; below: who delivers`],
    [sample(rect("gap")), "hatched: nobody"], [sample(rect("frozen")), "dashed: its owner is frozen"], [sample(rect("both")), "red: several at once"], [sample(rect("band", 0, 14)), "a fault lasts"],
    [sign("begin"), "something goes or breaks"], [sign("heal"), "heals"], [sign("change"), "changes"],
    ...PHASES.map((each) => [sample(rect(`phase p-${each}`)), each]),
  ];
}

export class Legend {
  constructor(group) {
    const authority = group.coordinated ? "the coordinator" : "ZooKeeper";
    const items = meanings(authority).map(([shape, text]) => html("li", {}, shape, text));
    this.root = html("details", { class: "legend", open: !matchMedia("(max-width: 700px)").matches },
      html("summary", {}, "Legend"), html("ul", {}, ...items.slice(0, -PHASES.length), html("li", { class: "phases" }, "phases:"),
        ...items.slice(-PHASES.length)));
    this.root.addEventListener("toggle", () => document.dispatchEvent(new CustomEvent(FOLD, { detail: this.root.open })));
    document.addEventListener(FOLD, ({ detail }) => { this.root.open = detail; });
  }
}
