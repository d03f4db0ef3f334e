// A design that is not shown in full, as a strip: how much of its partitions was delivered over the window, its main
// counters, and what is wrong now. A click shows it in full.

import { Counters } from "./counted.js";
import { html, put, say, several, svg } from "./elements.js";
import { glance } from "./model.js";
import { shares } from "./shares.js";

const WIDTH = 300, HEIGHT = 20;

export class Strip {
  constructor({ design }, show) {
    this.button = html("button", { type: "button", "aria-label": `Show ${design} in full`, onclick: () => show(design) }, design);
    this.said = html("span", { class: "strip-said" });
    this.gaps = svg("rect", { class: "gap", width: WIDTH, height: HEIGHT });
    this.area = svg("path", { class: "share" });
    this.twice = svg("g");
    this.plot = svg("svg", { class: "share-plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" }, this.gaps, this.area, this.twice);
    this.counters = new Counters({ design }, true);
    this.root = html("li", { class: "strip", "data-design": design }, this.button, this.said, this.plot, this.counters.root);
  }

  update(group, game, windowMs) {
    const seen = glance(group), waiting = group.waiting.length;
    this.root.dataset.kind = seen.kind;
    const now = { alarm: () => `⚠ ${seen.twice.length}: two deliver`, notice: () => `▨ ${seen.unowned.length}: nobody delivers`, good: () => "✓", idle: () => "forming" };
    say(this.said, now[seen.kind]() + (waiting ? `, ${several(waiting, "member")} waiting` : ""));
    this.counters.update(group, game);
    this.draw(group, game.at_ms - windowMs, game.at_ms);
  }

  draw(group, from, to) {
    const all = group.partitions.length || 1, x = (at) => ((at - from) / (to - from) * WIDTH).toFixed(1);
    const parts = shares(group.intervals, from, to), y = (count) => (HEIGHT * (1 - count / all)).toFixed(1);
    put(this.area, "d", parts.map((each) => `M${x(each.from)} ${HEIGHT}V${y(each.count)}H${x(each.until)}V${HEIGHT}z`).join(""));
    const begun = parts.find((each) => each.count > 0)?.from ?? to;
    put(this.gaps, "x", x(begun));
    const twice = group.intervals.filter((each) => each.kind === "both" && (each.to_ms ?? to) > from && each.to_ms !== each.from_ms);
    this.twice.replaceChildren(...twice.map((each) => svg("rect", { class: "both", x: x(Math.max(each.from_ms, from)), y: 0, height: 5,
      width: Math.max(2, x(each.to_ms ?? to) - x(Math.max(each.from_ms, from))) })));
    const formed = parts.filter((each) => each.from >= begun), percent = (count) => `${Math.round(100 * count / all)} %`;
    const least = Math.min(...formed.map((each) => each.count)), last = formed.at(-1)?.count ?? 0;
    put(this.plot, "aria-label", formed.length ? `Partitions delivered over the window: ${percent(last)} now, ${percent(least)} at least` : "Nothing was delivered yet");
  }
}
