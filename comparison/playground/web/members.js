// The members of one design as cards, with what can be done to each, and what can be done to the whole group.

import { html, keyed, light, put, say, several, swatch } from "./elements.js";
import { roomIn, takesCommands } from "./model.js";

const SLOW_MS = 200, PARTITIONS = 2;
const RATES = [0, 10, 20, 50, 100, 200, 500, 1000];

// Each button is one of two commands, by the member's state. Their places stay, so that the focus does, too.
const BUTTONS = [
  { start: "Start", leave: "Leave" },
  { kill: "Kill" },
  { freeze: "Freeze", continue: "Continue" },
  { cut: "Cut off", heal: "Heal" },
  { slow: "Slow" },
];
// As in comparison/playground/commands.py; a test compares them.
export const POSSIBLE = {
  pending: ["kill"],
  running: ["leave", "kill", "freeze", "cut", "slow"],
  frozen: ["continue", "kill"],
  cut: ["kill", "heal", "slow"],
  ended: ["start"],
};
const STEP = "From then on it waits before each of its ZooKeeper operations, until you let it go";
const STEPPABLE = ["pending", "running"];
const STATES = { pending: "starting", running: "running", frozen: "frozen", cut: "cut off", ended: "ended" };

// `give` sends a command to this design, or to every one, and `toWhom` says to which. Without it there is nothing to do.
export class Members {
  constructor(group, give, toWhom) {
    this.design = group.design;
    this.give = give;
    this.toWhom = toWhom;
    this.hasSteps = group.table.length > 0;
    this.cards = html("div", { class: "cards" });
    this.rate = html("span", { class: "rate" });
    this.roomText = html("p", { class: "room faint" });
    this.all = html("div", { class: "tools group-tools" },
      this.button("Add one", () => this.give({ type: "add-members", count: 1 }, "add one member"), "members"),
      this.button("Add five", () => this.give({ type: "add-members", count: 5 }, "add five members"), "members"),
      this.button(`Add ${PARTITIONS} partitions`, () => this.give({ type: "add-partitions", count: PARTITIONS }, "add partitions"), "partitions"),
      this.button("Slower", () => this.change(-1), "", -1), this.rate, this.button("Faster", () => this.change(1), "", 1));
    this.root = html("section", { class: "members", "data-part": "members" },
      html("h3", {}, `Members of ${group.design}`), ...(give ? [this.roomText, this.all] : []), this.cards);
  }

  // One that adds says what it adds: there is room for so many of them. One that turns the rate says whither.
  button(label, does, adds = "", turns = 0) {
    return html("button", { type: "button", "data-does": label, "data-adds": adds || false, "data-turns": turns || false,
      onclick: ({ currentTarget }) => currentTarget.getAttribute("aria-disabled") !== "true" && does() }, label);
  }

  // Where there is no room for more, or no other rate, a button does nothing, and has said so.
  showButtonOfAll(button) {
    const { does, adds, turns } = button.dataset, room = this.room[adds], can = adds ? room > 0 : this.rateNext(Number(turns)) !== undefined;
    const text = !adds ? "" : can ? `, where there is room for ${room} more` : `: no more, the most is ${this.limits[adds]} ${adds}`;
    put(button, "aria-label", `${does} in ${this.toWhom(this.design)}${text}`);
    put(button, "title", text.replace(/^\W+/, ""));
    put(button, "aria-disabled", String(!this.isOpen || !can));
  }

  rateNext(direction) {
    const { rate } = this.now;
    return direction > 0 ? RATES.find((each) => each > rate && each <= this.limits.rate) : RATES.findLast((each) => each < rate);
  }

  change(direction) {
    const next = this.rateNext(direction);
    this.give({ type: "rate", per_second: next }, `produce ${next} records a second`);
  }

  update(group, game) {
    this.now = group;
    this.limits = game.limits;
    this.room = roomIn(group, game);
    this.isOpen = takesCommands(game);
    say(this.rate, `${several(group.rate, "record")}/s`);
    for (const button of this.all.querySelectorAll("button")) this.showButtonOfAll(button);
    const counts = ["members", "partitions"].map((each) => `${this.limits[each] - this.room[each]} of at most ${this.limits[each]} ${each}`);
    say(this.roomText, counts.join(", ") + (this.room.members > 0 ? "" : ": the group is full"));
    keyed(this.cards, group.members, (each) => each.name, (each) => this.card(each), (card, each) => this.show(card, each));
  }

  card({ name, style }) {
    const card = html("article", { class: "card" },
      html("h4", {}, swatch(style), html("span", { class: "name" }, name), html("span", { class: "state" }), html("span", { class: "leads" })),
      html("p", { class: "about" }), html("p", { class: "faint id" }));
    if (!this.give) return card;
    const buttons = html("div", { class: "buttons" });
    for (const _ of BUTTONS) buttons.append(html("button", { type: "button", onclick: (event) => this.act(name, event.currentTarget) }));
    if (this.hasSteps) buttons.append(html("button", { type: "button", class: "step-by-step", title: STEP, onclick: () => this.step(name) }, "Step"));
    card.append(buttons);
    return card;
  }

  member(name) {
    return this.now.members.find((each) => each.name === name);
  }

  show(card, member) {
    const [, name, state, leads] = card.querySelector("h4").childNodes;
    say(name, member.process);
    say(state, STATES[member.state] + (member.state === "ended" && member.ended ? `: ${member.ended}` : ""));
    say(leads, member.leads ? "leader" : "");
    if (card.dataset.state && card.dataset.state !== member.state) light(card);
    card.dataset.state = member.state;
    const about = card.querySelector(".about");
    say(about, this.about(member));
    put(about, "title", about.textContent);
    const id = card.querySelector(".id");
    say(id, member.id || "no id yet");
    put(id, "title", member.id);
    if (!this.give) return;
    const buttons = [...card.querySelectorAll(".buttons button")];
    BUTTONS.forEach((each, place) => this.showButton(buttons[place], each, member));
    if (this.hasSteps) {
      put(buttons.at(-1), "aria-pressed", String(member.stepping));
      put(buttons.at(-1), "aria-label", `Step by step: ${member.name} in ${this.design}`);
      put(buttons.at(-1), "aria-disabled", String(!this.canStep(member)));
    }
  }

  about(member) {
    if (member.state === "ended") return "delivers nothing";
    const what = member.delivers.length ? `owns ${member.delivers.join(", ")}` : "owns nothing";
    return what + (member.rebalancing ? `; rebalancing: ${member.rebalancing}` : "")
      + (member.delay_ms ? `; ${member.delay_ms} ms per record` : "");
  }

  showButton(button, labels, member) {
    const can = this.isOpen ? POSSIBLE[member.state] : [], actions = Object.keys(labels);
    const action = actions.find((each) => can.includes(each)) ?? actions.find((each) => each !== "start") ?? actions[0];
    const label = action === "slow" && member.delay_ms ? "Full speed" : labels[action];
    say(button, label);
    button.dataset.action = action;
    put(button, "aria-disabled", String(!can.includes(action)));
    put(button, "aria-label", `${label}: ${member.name} in ${this.toWhom(this.design)}`);
  }

  canStep(member) {
    return this.isOpen && STEPPABLE.includes(member.state);
  }

  act(name, button) {
    if (button.getAttribute("aria-disabled") === "true") return;
    const action = button.dataset.action, command = { type: "member", action, member: name };
    if (action === "slow") command.delay_ms = this.member(name).delay_ms ? 0 : SLOW_MS;
    this.give(command, `${button.textContent.toLowerCase()} ${name}`);
  }

  step(name) {
    const member = this.member(name);
    if (!this.canStep(member)) return;
    this.give({ type: "stepping", member: name, on: !member.stepping }, `step ${name}`, true);
  }
}
