// Live lanes of one design: a lane a partition, whom the authority names above, who delivers below. The right edge is
// now. Everything is placed at its own time in one group, which moves to the left as time passes. Each lane has room
// for an overlap: when one appears, nothing moves.

import { clock, html, keyed, printable, put, say, several, svg } from "./elements.js";
import { Legend } from "./legend.js";
import { Marks, ROOM } from "./marks.js";
import { fitting, inSight, overlapText, LETTER } from "./painter.js";

const BAR = 10, PHASE = 12, AXIS = 16;
const LONGEST_MS = 8000;
const STEPS_MS = [1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000, 120_000];  // between the times on the axis
const AT_HALF = 13;  // of the letters of such a time
// Below the bar of the first who delivers: the bars of others who deliver at once, and the red strip that names them.
const USUAL = { second: 5, strip: 11, gap: 3 }, CLOSE = { second: 3, strip: 9, gap: 2 };
const MANY = 12;  // partitions; above, lanes stand closer

const isSeen = (fromMs) => ({ to_ms }) => to_ms === null || to_ms >= fromMs;

const signed = (intervals) => intervals.map((each) => `${each.id}:${each.to_ms ?? ""}:${each.member}`).join();

// Whether one interval begins with the other and goes on as long: the name would stand twice.
function covers(one, other) {
  return Math.abs(one.from_ms - other.from_ms) < 1500 && (one.to_ms ?? Infinity) >= (other.to_ms ?? Infinity) - 500;
}

export class Lanes {
  constructor(group) {
    this.strips = new Map();
    this.windowMs = 60_000;
    this.names = svg("svg", { class: "lane-names", "aria-hidden": "true" });
    this.moving = svg("g");
    this.marks = new Marks(group.design);
    this.legend = new Legend(group);
    this.plot = svg("svg", { class: "lane-plot", role: "group" }, this.moving);
    this.nows = svg("svg", { class: "lane-nows", "aria-hidden": "true" });
    this.rows = html("tbody");
    this.root = html("section", { class: "lanes", "data-part": "lanes", "aria-label": `Lanes of ${group.design}` },
      this.legend.root, this.marks.said, html("div", { class: "lane-figure" }, this.names, this.plot, this.nows), 
      this.lists = html("div", { class: "lane-lists" }, this.marks.list, html("details", {}, html("summary", {}, "As a table"), html("div", { class: "scroll", tabindex: 0, role: "region",
        "aria-label": `Partitions of ${group.design}` },
        html("table", {}, html("thead", {}, html("tr", {}, ...["partition", "named", "delivered by", "log end",
          "delivered", "committed"].map((name) => html("th", { scope: "col" }, name)))), this.rows)))));
    this.sizes = new ResizeObserver(() => this.resized());
    this.sizes.observe(this.plot);
  }

  resized() {
    this.width = this.plot.clientWidth;
    this.tick(this.nowMs ?? 0, true);
    this.move(this.nowMs ?? 0);
  }

  // -- what has changed ------------------------------------------------------------------------------------------------

  update(group, now) {
    const seen = group.intervals.filter(isSeen(now.at_ms - this.windowMs));
    const signature = [signed(seen), group.partitions.map((each) => each.name).join(),
      group.members.map((each) => each.name).join()].join("|");
    if (signature !== this.signature) {
      this.signature = signature;
      this.draw(group, seen);
      this.tick(now.at_ms);
    }
    this.drawNow(group);
    this.tabulate(group);
  }

  draw(group, seen) {
    const before = this.strips;
    const room = this.room = group.partitions.length > MANY ? CLOSE : USUAL;
    this.strips = new Map();
    this.layout = new Map();
    this.names.replaceChildren();
    let y = ROOM;
    for (const { name } of group.partitions) {
      this.layout.set(name, { named: y, delivering: y + BAR + 1 });
      this.name(name, y + BAR + 4);
      const own = seen.filter((each) => each.partition === name);
      this.strip(before, `lane ${name}`, `${room.strip} ${signed(own)}`, y, () => this.lane(own));
      y += BAR + 1 + BAR + room.second + room.strip + room.gap;
    }
    y = this.members(group, seen.filter((each) => each.kind === "phase"), before, y + 2);
    const faults = seen.filter((each) => each.kind === "fault"), signature = `${y} ${signed(faults)}`;
    this.strip(before, "bands", signature, 0, () => this.bands(faults, y));
    this.marks.draw(seen.filter((each) => each.kind === "act"), y);
    this.height = y + AXIS;
    this.axis ??= svg("g", { class: "axis" });
    this.stack();
    for (const each of [this.names, this.plot, this.nows]) put(each, "height", this.height);
  }

  name(text, y) {
    const shown = printable(text), short = shown.length > 14 ? `…${shown.slice(-13)}` : shown;
    this.names.append(svg("text", { x: "100%", dx: -6, y, "text-anchor": "end" }, short));
  }

  // A part of the picture, which is drawn again only if what it shows has changed.
  strip(before, key, signature, y, build) {
    let found = before.get(key);
    if (found?.signature !== signature) {
      found = { signature, root: svg("g"), items: [], isFresh: true };
      this.into = found;
      build();
    }
    put(found.root, "transform", `translate(0 ${y})`);
    this.strips.set(key, found);
  }

  // The bands of faults below everything, their marks above.
  stack() {
    const { bands, ...others } = Object.fromEntries(this.strips);
    const order = [...[bands, ...Object.values(others)].map((each) => each.root), this.marks.root, this.axis];
    order.forEach((root, place) => {
      const there = this.moving.children[place];
      if (there !== root) this.moving.insertBefore(root, there ?? null);
    });
    while (this.moving.children.length > order.length) this.moving.lastChild.remove();
  }

  lane(own) {
    const { second, strip } = this.room, below = BAR + 1, of = (kind) => own.filter((each) => each.kind === kind);
    const between = (kind) => of(kind).filter((each) => each.to_ms !== each.from_ms);  // somebody took over at once
    for (const each of between("unnamed")) this.bar(each, 0, BAR, "gap", "", "nobody is named");
    for (const each of between("nobody")) this.bar(each, below, BAR, each.member ? "frozen" : "gap", each.member ? [`${each.member} is frozen`, `${each.member} frozen`, each.member] : "nobody",
      each.member ? `nobody delivers: ${each.member} is frozen` : "nobody delivers");
    for (const each of of("named")) this.bar(each, 0, BAR, `bar ${each.style}`, each.member, `${each.member} is named`);
    for (const each of of("delivering")) {
      const height = each.row ? second : BAR, top = each.row ? below + BAR : below;
      const label = each.row || of("named").some((other) => other.member === each.member && covers(other, each)) ? "" : each.member;
      this.bar(each, top, height, `bar ${each.style}`, label, `${each.member} delivers ${each.partition}`);
    }
    for (const each of between("both")) {
      const who = each.member, says = `${who} ${who.split(" + ").length > 2 ? "all" : "both"} deliver`;
      this.bar(each, below - 1, BAR + second + 2, "frame", "", says);
      this.bar(each, below + BAR + second, strip, "both", [`two deliver: ${who}`, who], says);
    }
  }

  members(group, phases, before, y) {
    for (const { name } of group.members) {
      const own = phases.filter((each) => each.member === name);
      this.name(`${name} phase`, y + PHASE - 3);
      this.strip(before, `member ${name}`, signed(own), y, () => {
        this.into.root.append(svg("path", { class: "base", d: `M0 ${PHASE - 1}h1e7` }));
        for (const each of own) this.bar(each, 0, PHASE - 3, each.style, each.label, `${name}: ${each.label}`);
      });
      y += PHASE;
    }
    return y;
  }

  bands(faults, bottom) {
    for (const each of faults) this.bar(each, ROOM - 2, bottom - ROOM + 2, "band", "", `${each.member}: ${each.label}`);
  }

  // A bar from one time to another; its label stays in sight while it reaches out of the picture.
  bar(each, y, height, style, label, hint) {
    const node = svg("rect", { class: style, y, height, rx: style.startsWith("bar") ? 1.5 : 0 }, svg("title", {}, hint));
    this.into.root.append(node);
    const item = { from_ms: each.from_ms, to_ms: each.to_ms, node, labels: [label].flat().filter(Boolean).map(printable) };
    if (item.labels.length) {
      item.isRed = style === "both";
      item.text = svg("text", { class: item.isRed ? "on-red" : ["gap", "frozen"].includes(style) ? "on-gap" : "on-bar", y: y + height - 2 });
      this.into.root.append(item.text);
    }
    this.into.items.push(item);
  }

  // -- as time passes --------------------------------------------------------------------------------------------------

  // Several times a second: lengthens open bars, keeps labels in sight, writes the axis.
  tick(nowMs, all = false) {
    this.nowMs = nowMs;
    if (!this.width || !this.axis) return;
    const scale = this.width / this.windowMs, left = nowMs - this.windowMs, right = nowMs + LONGEST_MS;
    for (const strip of this.strips.values()) {
      for (const item of strip.items) this.placeBar(item, scale, left, right, nowMs, all || strip.isFresh);
      strip.isFresh = false;
    }
    this.marks.place(scale, left, nowMs * scale);
    this.writeAxis(scale, left, nowMs);
  }

  placeBar(item, scale, left, right, nowMs, all) {
    if (!all && item.stillUntil >= left) return;
    const from = Math.max(item.from_ms, left - LONGEST_MS), to = Math.min(item.to_ms ?? Infinity, right);
    const isHidden = to < left - LONGEST_MS;
    item.node.style.display = isHidden ? "none" : "";
    if (!isHidden && (all || item.to_ms === null || item.from_ms < left)) {
      put(item.node, "x", (from * scale).toFixed(1));
      put(item.node, "width", Math.max(1, (to - from) * scale).toFixed(1));
    }
    // One that has ended, and is whole in the picture, stays as it is until it reaches the left edge.
    item.stillUntil = item.to_ms !== null && item.to_ms <= nowMs ? item.from_ms : -Infinity;
    if (!item.text) return;
    const seen = inSight({ from: item.from_ms, until: item.to_ms ?? Infinity }, left, nowMs);
    if (item.isRed) this.placeRed(item, seen, scale, nowMs);
    else {
      say(item.text, fitting(item.labels, (seen.until - seen.from) * scale - 5) ?? "");
      put(item.text, "x", (seen.from * scale + 3).toFixed(1));
    }
  }

  // Who delivers at once is always said: beside the bar if it does not fit into it.
  placeRed(item, seen, scale, nowMs) {
    const { text, isInside } = overlapText(item.labels, seen, 1 / scale);
    const from = seen.from * scale, to = seen.until * scale, isRight = to + text.length * LETTER < nowMs * scale;
    say(item.text, to < nowMs * scale - this.width ? "" : text);
    put(item.text, "class", isInside ? "on-red" : "by-red");
    put(item.text, "text-anchor", isInside || isRight ? "start" : "end");
    put(item.text, "x", (isInside ? from + 3 : isRight ? to + 3 : from - 3).toFixed(1));
  }

  writeAxis(scale, left, nowMs) {
    const step = STEPS_MS.find((each) => each * scale >= 50) ?? STEPS_MS.at(-1), times = [];
    for (let at = Math.max(0, Math.ceil(left / step) * step); at <= nowMs; at += step) {
      const toEdge = Math.min(at - left, nowMs - at) * scale;
      if (toEdge >= AT_HALF) times.push(at);
    }
    keyed(this.axis, times, String,
      (at) => svg("text", { class: "at" }, clock(at)),
      (node, at) => {
        put(node, "x", (at * scale).toFixed(1));
        put(node, "y", this.height - 4);
      });
  }

  // Each frame.
  move(nowMs) {
    if (this.width) put(this.moving, "transform", `translate(${(this.width - nowMs * this.width / this.windowMs).toFixed(1)} 0)`);
  }

  // -- the present, in words -------------------------------------------------------------------------------------------

  drawNow(group) {
    keyed(this.nows, group.partitions, (each) => each.name,
      () => svg("g", {}, svg("text", { x: 5 }), svg("text", { x: 5 })),
      (node, each) => {
        const place = this.layout?.get(each.name), [named, delivers] = node.children;
        if (!place) return;
        put(named, "y", place.named + BAR - 1);
        put(delivers, "y", place.delivering + BAR - 1);
        say(named, each.owner || "–");
        const twice = each.deliverers.length > 1;
        say(delivers, twice ? `⚠ ${each.deliverers.join("+")}` : each.deliverers[0] ?? (each.frozen ? `${each.frozen} frozen` : "nobody"));
        put(delivers, "class", twice ? "bad" : each.deliverers.length ? "" : "doubt");
      });
    const twice = group.partitions.filter((each) => each.deliverers.length > 1);
    put(this.plot, "aria-label", `Ownership of ${several(group.partitions.length, "partition")} in ${group.design}: `
      + `${twice.length ? `${twice.length} delivered by two members now` : "none delivered by two members now"}. `
      + "The table below says the same.");
  }

  tabulate(group) {
    keyed(this.rows, group.partitions, (each) => each.name,
      (each) => html("tr", {}, html("th", { scope: "row" }, each.name), ...Array.from({ length: 5 }, () => html("td"))),
      (row, each) => {
        const texts = [each.owner || "nobody", each.deliverers.join(" and ") || (each.frozen ? `nobody: ${each.frozen} is frozen` : "nobody"), each.end, each.delivered, each.committed];
        texts.forEach((text, place) => say(row.children[place + 1], String(text)));
        row.classList.toggle("bad", each.deliverers.length > 1);
      });
  }
}

