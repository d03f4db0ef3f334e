// A replay: the playground's columns, at a moment of runs that are over. Everything shown follows from that moment.

import { Captions } from "./captions.js";
import { Cursor } from "./cursor.js";
import { COUNTERS } from "./counters.js";
import { data } from "./data.js";
import { html, put, say, seconds } from "./elements.js";
import { GroupColumn } from "./group.js";
import { Timeline } from "./timeline.js";

const SPEEDS = [0.1, 0.2, 0.5, 1, 2, 5, 10];
const WINDOWS_S = [60, 20, 5, 1];
const SHOWN_MAX = 10_000;  // so many bars of all lanes at first
const BEFORE_MS = 500;    // so long before the first change it begins
const TICK_MS = 250, STILL_MS = 500;
const LONGEST_FRAME_MS = 250;  // a page that was not in sight goes on where it was
const REBALANCE = "r", FAULT = "f";
const part = (name) => document.getElementById(name);
const stands = window.matchMedia("(prefers-reduced-motion: reduce)");
const narrow = window.matchMedia("(max-width: 700px)");
const precise = (ms) => `${Math.floor(ms / 60000)}:${((ms % 60000) / 1000).toFixed(3).padStart(6, "0")}`;

class Replay {
  constructor(all) {
    this.all = all;
    this.timeline = new Timeline(all);
    this.lengthMs = all.length_ms;
    this.columns = all.first.groups.map((group, number) => this.column(group, number));
    // What is counted is said by design; a column has a name of its own if there are several of one.
    for (const each of COUNTERS) each.designs.push(...Object.keys(all.designs).filter((name) => each.designs.includes(all.designs[name])));
    this.isPlaying = false;
    this.captions = new Captions(all);
    this.jump(Math.max(0, Math.min(all.change_ms - BEFORE_MS, this.captions.all[0]?.ms ?? Infinity)));
  }

  column(group, number) {
    const about = this.all.znodes[group.design];
    const column = new GroupColumn(group, null, () => "", null);
    column.root.querySelector("h2").id = `column-${number}`;
    if (about) column.root.querySelector(".znodes h3").after(html("p", { class: "faint" }, about));
    if (this.all.first.groups.length > 1) for (const each of column.root.querySelectorAll(":scope > :is(.counters, .feed-part, div:not(.head, .glance))")) each.dataset.of = group.design;
    column.cursor = new Cursor(column.lanes, (ms) => this.seek(ms));
    part("groups").append(column.root);
    part("jump").append(html("a", { href: `#column-${number}` }, group.design));
    return column;
  }

  // -- moving ----------------------------------------------------------------------------------------------------------

  // To a moment, whatever was shown before.
  jump(ms, done = -1) {
    this.ms = Math.min(this.lengthMs, Math.max(0, ms));
    this.timeline.goTo(done >= 0 ? done : this.timeline.doneAt(this.ms));
    for (const column of this.columns) for (const each of column.parts) each.forget?.();
    this.isStale = this.isMoved = true;
  }

  seek(ms) {
    this.jump(ms);
    this.announce();
  }

  pass(sinceMs) {
    const to = Math.min(this.lengthMs, this.ms + sinceMs * Number(part("speed").value)), stop = this.captions.stop(this.ms, to);
    this.ms = stop ?? to;
    const done = this.timeline.doneAt(this.ms);
    this.isStale ||= done !== this.timeline.done;
    this.timeline.goTo(done);
    if (stop !== null || this.ms >= this.lengthMs) this.play(false);
  }

  play(isPlaying = !this.isPlaying) {
    if (isPlaying && this.ms >= this.lengthMs) this.jump(0);
    if (isPlaying !== this.isPlaying) this.turnTo(isPlaying ? "groups" : "caption");
    this.isPlaying = isPlaying;
    say(part("play"), isPlaying ? "Pause" : "Play");
    if (!isPlaying) this.announce();
  }

  // A narrow screen has no room for words and groups.
  turnTo(name) {
    if (this.captions.all.length && narrow.matches) part(name).scrollIntoView({ behavior: stands.matches ? "auto" : "smooth" });
  }

  on(mark = "") {
    const number = this.timeline.next(mark);
    this.play(false);
    if (number < 0) return this.refuse("There is no later one.");
    this.ms = this.timeline.at(number);
    this.timeline.goTo(number + 1);
    this.isStale = this.isMoved = true;
    return this.announce();
  }

  // To the one before this moment: that which is shown only if something has happened since.
  back(mark = "") {
    const shown = this.timeline.last(mark), { done } = this.timeline;
    const isPast = shown >= 0 && (done > shown + 1 || this.ms > this.timeline.at(shown));
    const number = isPast ? shown : this.timeline.last(mark, shown);
    this.play(false);
    if (number < 0) {
      this.jump(0, 0);
      return this.refuse("There is no earlier one: this is the beginning.");
    }
    this.jump(this.timeline.at(number), number + 1);
    return this.announce();
  }

  // To where the next caption begins, or the one before.
  step(direction) {
    const to = this.captions.all[this.captions.begun(this.ms) - 1 + direction];
    this.play(false);
    this.turnTo("caption");
    if (to) this.seek(to.ms);
    else this.refuse(`There is no ${direction > 0 ? "later" : "earlier"} one.`);
  }

  faster(direction) {
    const speed = Number(part("speed").value);
    const next = direction > 0 ? SPEEDS.find((each) => each > speed) : SPEEDS.findLast((each) => each < speed);
    if (next) part("speed").value = String(next);
  }

  // -- what is said ----------------------------------------------------------------------------------------------------

  get moment() {
    const since = this.ms - this.all.change_ms;
    return `${seconds(Math.abs(since))} ${since < 0 ? "before" : "after"} the first change`;
  }

  // The event at the cursor, or the last one before it.
  get event() {
    const number = this.timeline.last();
    if (number < 0) return "Nothing has happened yet";
    const [at, place, says] = this.timeline.steps[number];
    const of = this.columns.length > 1 ? `${this.all.first.groups[place].design}: ` : "";
    return `${at === Math.floor(this.ms) ? "Now" : `Last event, at ${precise(at)}`}: ${of}${says}`;
  }

  announce() {
    say(part("announced"), `${this.moment}. ${this.event}`);
  }

  refuse(why) {
    say(part("announced"), why);
  }

  // -- what is shown ---------------------------------------------------------------------------------------------------

  get windowMs() {
    return Math.min(this.lengthMs, Number(part("window").value) * 1000 || this.lengthMs);
  }

  // What is at the right edge of the lanes: the cursor is in the middle, but for the beginning and the end. Without
  // motion they do not glide.
  get rightMs() {
    const width = this.windowMs, middle = stands.matches ? Math.floor(this.ms / width) * width + width / 2 : this.ms;
    return Math.min(this.lengthMs, Math.max(width, middle + width / 2));
  }

  draw(at) {
    const isTick = this.isMoved || at - (this.tickedAt ?? 0) >= TICK_MS, right = this.rightMs;
    if (isTick) this.tickedAt = at;
    const { state } = this.timeline;
    this.columns.forEach((column, place) => {
      const { lanes } = column;
      lanes.windowMs = this.windowMs;
      if (this.isStale) column.update(state.groups[place], { ...state, at_ms: this.ms });
      if (isTick || this.isStale) lanes.tick(right, this.isMoved);
      lanes.move(right);
      column.cursor.place(this.ms, right);
    });
    if (document.activeElement !== part("scrubber") || this.isPlaying || !part("scrubber").isDragged) part("scrubber").value = this.ms;
    put(part("scrubber"), "aria-valuetext", this.moment);
    say(part("clock"), precise(this.ms));
    say(part("since"), this.moment);
    say(part("event"), this.event);
    this.captions.show(this.ms);
    this.isStale = this.isMoved = false;
    this.drawnMs = this.ms;
    this.drawnWidth = this.columns[0].lanes.width;
  }

  frame(at) {
    const since = Math.min(Math.max(0, at - (this.framedAt ?? at)), LONGEST_FRAME_MS), isDue = !stands.matches || at - (this.stillAt ?? 0) >= STILL_MS;
    this.framedAt = at;
    if (this.isPlaying) this.pass(since);
    this.isMoved ||= this.drawnWidth !== this.columns[0].lanes.width;
    if (this.isMoved || (isDue && (this.isStale || this.drawnMs !== this.ms))) {
      this.stillAt = at;
      this.draw(at);
    }
    requestAnimationFrame((next) => this.frame(next));
  }
}

// -- beginning ----------------------------------------------------------------------------------------------------------

function marksOf(all) {
  for (const [at, , says, mark] of all.steps.filter((step) => step[3] === FAULT)) {
    const tick = html("span", { class: "tick", title: `${precise(at)} ${says}` });
    tick.style.insetInlineStart = `${(100 * at) / all.length_ms}%`;
    part("marks").append(tick);
  }
}

// About how many bars the lanes show of so long.
function shown(all, windowMs) {
  return all.first.groups.reduce((sum, each) => sum + each.intervals.length, 0) * (windowMs / all.length_ms);
}

function begin(all) {
  const scrubber = part("scrubber");
  scrubber.max = all.length_ms;
  scrubber.step = Math.max(1, Math.round(all.length_ms / 1000));
  part("speed").append(...SPEEDS.map((each) => html("option", { value: each, selected: each === 1 }, `${each} ×`)));
  const windows = WINDOWS_S.filter((each) => each * 1000 < all.length_ms);
  part("window").append(html("option", { value: 0 }, "the whole run"), ...windows.map((each) => html("option", { value: each }, `${each} s`)));
  part("window").value = [0, ...windows].find((each) => shown(all, each * 1000 || all.length_ms) <= SHOWN_MAX) ?? windows.at(-1) ?? 0;
  marksOf(all);
  const replay = new Replay(all);
  const does = {
    play: () => replay.play(), "step-on": () => replay.step(1), "step-back": () => replay.step(-1),
    "event-on": () => replay.on(), "event-back": () => replay.back(),
    "rebalance-on": () => replay.on(REBALANCE), "rebalance-back": () => replay.back(REBALANCE),
    "fault-on": () => replay.on(FAULT), "fault-back": () => replay.back(FAULT), "keys-button": () => part("keys").showModal(),
  };
  for (const [name, act] of Object.entries(does)) part(name).addEventListener("click", act);
  scrubber.addEventListener("input", () => replay.seek(Number(scrubber.value)));
  part("window").addEventListener("change", () => { replay.isMoved = replay.isStale = true; });
  const keys = {
    " ": does.play, ArrowRight: does["event-on"], ArrowLeft: does["event-back"], j: does["rebalance-on"], k: does["rebalance-back"],
    s: does["step-on"], a: does["step-back"],
    f: does["fault-on"], d: does["fault-back"], ",": () => replay.faster(-1), ".": () => replay.faster(1),
    Home: () => replay.seek(0), End: () => replay.seek(replay.lengthMs), "?": does["keys-button"],
  };
  document.addEventListener("keydown", (event) => {
    const isOwn = event.target.matches("select, textarea, input") || (event.key === " " && event.target.matches("button, summary, a"));
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || isOwn || document.querySelector("dialog[open]")) return;
    if (!part("keys-on").checked || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
  part("controls").hidden = false;
  requestAnimationFrame((at) => replay.frame(at));
}

data.then(begin, (error) => say(part("failed"), `This browser could not unpack what the page shows: ${error}`));
