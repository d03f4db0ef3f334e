// Guided tours: a few steps that do something, and say what to look at. What they say is in tours.json.

import { html, printable, say, seconds } from "./elements.js";

const ENDED_MS = 10_000, POLL_MS = 50;
const tours = fetch("tours.json").then((answer) => answer.json());

export class Tours {
  // `give` sends a command to the designs that it names; `anew` begins a simulated game again in some designs.
  constructor(root, give, anew) {
    this.root = root;
    this.give = give;
    this.anew = anew;
    this.tour = null;
    this.isAwaited = false;
    tours.then((all) => {
      this.all = all;
      if (this.isAwaited) this.choose();
    });
  }

  toggle() {
    if (this.root.hidden) this.choose();
    else this.close();
  }

  close() {
    this.tour = null;
    this.root.hidden = true;
    this.point(null);
  }

  // All tours, with what to start for those whose designs are not here; as soon as tours and game have arrived.
  choose() {
    this.isAwaited = !this.all || !this.game;
    if (this.isAwaited) return;
    this.tour = null;
    this.point(null);
    const running = this.game.groups.map((each) => each.design);
    const list = html("ul", { class: "tour-list" }, ...this.all.map((tour) => {
      const canBegin = this.game.simulation || tour.designs.every((each) => running.includes(each));
      const item = html("li", {}, html("strong", {}, tour.title), ` ${tour.about} `);
      if (canBegin) item.append(html("button", { type: "button", onclick: () => this.begin(tour) }, `Begin: ${tour.title}`));
      else item.append(html("span", { class: "faint" }, "It needs other designs: ", html("code", {}, commandLine(tour))));
      return item;
    }));
    const about = this.game.simulation ? [html("p", {}, "Each tour begins again from the start, in its own designs.")] : [];
    this.fill("Guided tours", ...about, list, html("div", { class: "tools" }, this.button("Close", () => this.close())));
  }

  async begin(tour) {
    if (this.game.simulation && !(await this.anew(tour.designs))) return;
    this.tour = tour;
    this.go(0);
  }

  go(number) {
    const step = this.tour.steps[number], isLast = number === this.tour.steps.length - 1;
    this.number = number;
    this.done = null;
    this.seen = html("ul", { class: "seen" });
    const tools = html("div", { class: "tools" });
    if (step.do) tools.append(this.doButton = this.button(step.label, () => this.perform(step)));
    if (number > 0) tools.append(this.button("Back", () => this.go(number - 1)));
    tools.append(isLast ? this.button("All tours", () => this.choose()) : this.button("Next", () => this.go(number + 1)));
    tools.append(this.button("Close", () => this.close()));
    this.fill(`${this.tour.title}: ${number + 1} of ${this.tour.steps.length}`, html("p", {}, ...marked(step.say)),
      html("p", { class: "look" }, html("strong", {}, "Look: "), ...marked(step.look)), this.seen, tools);
    this.point(step.part);
    this.update(this.game);
  }

  fill(title, ...content) {
    const hadFocus = this.root.contains(document.activeElement) || this.root.hidden;
    this.title = html("h2", { tabindex: -1 }, title);
    this.root.replaceChildren(this.title, ...content);
    this.root.hidden = false;
    if (hadFocus) this.title.focus();
  }

  button(label, does) {
    return html("button", { type: "button", onclick: does }, label);
  }

  async perform(step) {
    const before = { at_ms: this.game.at_ms, counters: this.countersOf(this.game) }, number = this.number;
    for (const command of step.do) {
      if (command.action === "start" && !(await this.ended(command.member))) return;
      const answer = await this.give(command, step.label);
      if (!answer.accepted) return;
    }
    if (this.number !== number || !this.tour) return;
    this.done = before;
    this.found = new Map();
    this.update(this.game);
  }

  // Waits until a member has ended in all designs: only then it can be started again.
  async ended(member) {
    const tour = this.tour, isEnded = () => this.game.groups.every((group) =>
      group.members.every((each) => each.name !== member || each.state === "ended"));
    for (let at = 0; !isEnded() && at < ENDED_MS; at += POLL_MS) await new Promise((done) => setTimeout(done, POLL_MS));
    return isEnded() && this.tour === tour;
  }

  countersOf(game) {
    return Object.fromEntries(game.groups.map((each) => [each.design, { ...each.counters }]));
  }

  // Ticks what the step expects to be seen, as it happens.
  update(game) {
    this.game = game;
    if (this.isAwaited) this.choose();
    const wanted = this.tour?.steps[this.number].seen;
    if (!wanted || !this.done || this.root.hidden) return;
    wanted.forEach((each, place) => {
      const now = game.groups.find((group) => group.design === each.design)?.counters[each.counter] ?? 0;
      if (!this.found.has(place) && now - this.done.counters[each.design][each.counter] >= each.by)
        this.found.set(place, game.at_ms - this.done.at_ms);
      const item = this.seen.children[place] ?? this.seen.appendChild(html("li"));
      const after = this.found.get(place);
      say(item, after === undefined ? `… waiting: ${each.say}` : `✓ ${each.say} (after ${seconds(after)})`);
    });
  }

  point(part) {
    for (const each of document.querySelectorAll("[data-part]")) each.classList.toggle("looked-at", each.dataset.part === part);
  }
}

// Commands stand in backquotes.
const marked = (text) => text.split("`").map((each, place) => (place % 2 ? html("code", {}, each) : each));
export const commandLine = (tour) => printable(`rebalance-lab playground --design ${tour.designs.join(",")}`);
