// Virtual time, in a simulated game: it stands still, goes on by an event, slower or faster, and back to any moment.

import { html, put, say } from "./elements.js";
import { isOpen, isPresent } from "./model.js";

const SPEEDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100];
const KEYS = { p: "let virtual time stand still, or go on", e: "one event on", ",": "slower", ".": "faster", z: "one second back" };
const precise = (ms) => `${Math.floor(ms / 60000)}:${((ms % 60000) / 1000).toFixed(3).padStart(6, "0")}`;
const part = (name) => document.getElementById(name);

export class VirtualTime {
  // `give` sends a command.
  constructor(give) {
    this.give = give;
    this.game = null;
    part("speed").append(...SPEEDS.map((each) => html("option", { value: each }, `${each} ×`)));
    part("speed").addEventListener("change", () => this.setSpeed(Number(part("speed").value)));
    part("pause").addEventListener("click", () => this.pause());
    part("next-event").addEventListener("click", () => this.nextEvent());
    part("anew").addEventListener("click", () => this.anew([]));
    for (const [name, ms] of [["back-1", 1000], ["back-10", 10_000]])
      part(name).addEventListener("click", () => this.back(this.game.at_ms - ms));
    part("back").addEventListener("submit", (event) => {
      event.preventDefault();
      this.back(Math.round(Number(part("to").value) * 1000));
    });
  }

  get simulation() {
    return this.game?.simulation;
  }

  update(game) {
    this.game = game;
    const now = game.simulation;
    if (!now) return;
    if (part("time").hidden) this.open();
    const stands = now.time === "paused";
    const isIdle = game.groups.every((each) => each.rate === 0);
    const asked = !now.reached ? "" : isIdle ? `; this machine manages ${now.reached} ×` : `; reaches ${now.reached} × with so many records`;
    const state = { forming: "the groups are forming", running: `${now.speed} ×${asked}`, paused: "stands still",
      replaying: `runs again from the seed up to ${precise(now.until_ms)}` }[now.time];
    say(part("seed"), String(now.seed));
    say(part("clock"), precise(game.at_ms));
    say(part("time-state"), this.isOpen || game.status === "starting" ? state : "");
    put(part("time-state"), "title", part("time-state").textContent);
    say(part("event"), now.event);
    say(part("pause"), stands ? "Go on" : "Pause");
    const speed = part("speed");
    if (document.activeElement !== speed) speed.value = String(now.speed);
    if (document.activeElement !== part("to")) part("to").value = (game.at_ms / 1000).toFixed(1);
    for (const each of part("time").querySelectorAll("button"))
      put(each, "aria-disabled", String(!(each.id === "next-event" ? isPresent(game) : this.isOpen)));
    speed.disabled = part("to").disabled = !this.isOpen;
  }

  // The game turns out to be simulated.
  open() {
    part("time").hidden = false;
    part("keys").querySelector("dl").append(...Object.entries(KEYS).map(([key, does]) =>
      html("div", {}, html("dt", {}, html("kbd", {}, key)), html("dd", {}, does))));
  }

  get isOpen() {
    return this.simulation && isOpen(this.game);
  }

  pause() {
    if (!this.isOpen) return;
    const paused = this.simulation.time !== "paused";
    this.give({ type: "pace", paused }, paused ? "pause" : "go on");
  }

  nextEvent() {
    if (isPresent(this.game)) this.give({ type: "next-event" }, "one event on");
  }

  setSpeed(speed) {
    if (this.isOpen) this.give({ type: "pace", speed }, `${speed} times the speed of the clock`);
  }

  // To the next speed that is lower, or higher.
  change(direction) {
    if (!this.isOpen) return;
    const next = direction > 0 ? SPEEDS.find((each) => each > this.simulation.speed)
      : SPEEDS.findLast((each) => each < this.simulation.speed);
    if (next) this.setSpeed(next);
  }

  back(ms) {
    if (this.isOpen) this.give({ type: "back", to_ms: Math.max(0, ms) }, `back to ${precise(Math.max(0, ms))}`);
  }

  // Begin again without what was played, in these designs or the same ones; whether it could.
  async anew(played) {
    if (!this.isOpen) return false;
    const { accepted } = await this.give({ type: "anew", played }, "from the start");
    return accepted;
  }

  // The time that the right edge of the lanes shows, when the last news came so long ago.
  shownMs(sinceMs, behindMs) {
    const { time, speed, reached } = this.simulation;
    if (time !== "running") return this.game.at_ms;
    return Math.max(0, this.game.at_ms + (sinceMs - behindMs) * (reached || speed));
  }
}

// In a column: the same again in another design.
export class SameAgain {
  constructor(design, give) {
    this.design = design;
    this.choice = html("select", { "aria-label": `Play the same as ${design} in` });
    this.button = html("button", { type: "button", "aria-label": `Play the same as ${design} in the chosen design`, onclick: () => this.isOpen
      && give({ type: "same", design, other: this.choice.value }, `the same as ${design} in ${this.choice.value}`) }, "Play");
    this.root = html("div", { class: "tools same", "data-part": "same" }, html("span", {}, "The same again in"), this.choice, this.button);
  }

  update(game) {
    const { simulation, groups } = game, shown = groups.map((each) => each.design);
    const others = simulation.designs.filter((each) => !shown.includes(each));
    this.isOpen = isPresent(game);
    if (this.others !== others.join()) {
      this.others = others.join();
      this.choice.replaceChildren(...others.map((each) => html("option", { value: each }, each)));
    }
    this.root.hidden = !others.length;
    put(this.button, "aria-disabled", String(!this.isOpen));
  }
}
