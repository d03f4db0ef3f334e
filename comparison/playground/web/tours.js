// Guided tours: a few steps that do something, and say what to look at. What they say is in tours.json: {m} is a member
// that owns partitions in both designs. A tour makes the state that it begins with, so that it can follow any other.

import { CONDITIONS, delivers, isWhole, present, remembered } from "./conditions.js";
import { coded, html, printable, say, seconds } from "./elements.js";
import { isOpen, roomIn, takesCommands } from "./model.js";

const WHOLE_MS = 20_000, LONG_MS = 45_000;
const MEMBERS_MIN = 3;
const tours = fetch("tours.json").then((answer) => answer.json());

export class Tours {
  // `give` sends a command to the designs that it names; `anew` begins a simulated game again in some designs.
  constructor(root, give, anew) {
    Object.assign(this, { root, give, anew });
    this.tour = null;
    this.isAwaited = false;
    this.waits = [];
    tours.then((all) => {
      this.all = all;
      if (this.isAwaited) this.choose();
    });
  }

  // Opens the list, in the place of a tour that is shown, too; or closes it.
  toggle() {
    if (!this.root.hidden && !this.tour) this.close();
    else if (["starting", "running", undefined].includes(this.game?.status)) this.choose();
  }

  close() {
    this.leave();
    this.root.hidden = true;
  }

  // Nothing goes on of the tour that was shown.
  leave() {
    this.tour = null;
    this.waits = [];
    this.point(null);
  }

  // All tours, with what to start for those whose designs are not here; as soon as tours and game have arrived.
  choose() {
    this.isAwaited = !this.all || !this.game;
    if (this.isAwaited) return;
    this.leave();
    const how = this.game.simulation ? "Each tour begins again from the start, in its own designs."
      : "Each tour first brings its groups back to how they began: faults are healed, and members that were added leave.";
    const list = html("ul", { class: "tour-list" }, ...this.all.map((tour) => this.offer(tour)));
    this.fill("Guided tours", html("p", {}, how), list, html("div", { class: "tools" }, this.button("Close", () => this.close())));
  }

  offer(tour) {
    const running = this.game.groups.map((each) => each.design);
    const item = html("li", {}, html("strong", {}, tour.title), ` ${tour.about} `);
    const faint = (...text) => item.append(html("span", { class: "faint" }, ...text));
    const wanted = added(tour.steps.flatMap((each) => each.do ?? [])), first = this.first;
    const room = this.game.limits.members - first;
    if (!this.game.simulation && !tour.designs.every((each) => running.includes(each)))
      faint("It needs other designs: ", html("code", {}, commandLine(tour)));
    else if (this.game.status !== "running") faint("The game has to run.");
    else if (wanted && room < 1) faint(`It adds members, and ${first} are the most that a group can have here: begin with fewer (`, html("code", {}, "--members"), ").");
    else {
      item.append(html("button", { type: "button", onclick: () => this.begin(tour) }, `Begin: ${tour.title}`));
      if (wanted > room) faint(` It adds ${wanted} members, and there is room for ${room}: it does with these.`);
    }
    return item;
  }

  async begin(chosen) {
    const tour = { ...chosen };  // so that nothing goes on that has begun before
    this.leave();
    this.tour = tour;
    this.number = -1;
    this.steps = tour.steps.map(() => ({}));
    this.fill(tour.title, html("p", { role: "status" }, "The groups are being brought back to how they began …"),
      html("div", { class: "tools" }, this.button("All tours", () => this.choose()), this.button("Close", () => this.close())));
    const since = this.game.at_ms;
    const hasBegun = (!this.game.simulation || await this.beginAgain(tour))
      && ((this.game.simulation && this.game.begun.members >= MEMBERS_MIN) || await this.restore(tour.designs));
    if (this.tour !== tour) return;
    if (!hasBegun) this.choose();
    else if (await this.whole(tour, Math.min(since, this.game.at_ms))) this.go(0);
  }

  async beginAgain(tour) {
    const { take } = this.game.simulation;
    return (await this.anew(tour.designs)) && this.until(tour, () => this.game.simulation.take > take && this.game.simulation.time === "running");
  }

  async restore(designs) {
    return (await this.give({ type: "restore", designs, members_min: MEMBERS_MIN }, "as at the beginning")).accepted;
  }

  // Waits until each member of the tour's groups has its share, and chooses one. A member of zookeeper that has given up
  // rebalances only with the next change: so one is restarted, long after they were told to be as at the beginning.
  async whole(tour, since) {
    const areWhole = () => this.groups.length === tour.designs.length && this.groups.every((each) => this.isAsAtFirst(each));
    for (let begun = since; !areWhole();) {
      const isLate = () => this.game.at_ms - begun > WHOLE_MS || this.game.at_ms < begun;
      if (!(await this.until(tour, () => areWhole() || isLate()))) return false;
      if (areWhole()) break;
      for (const { design, members } of this.groups.filter((each) => !this.isAsAtFirst(each))) {
        const last = present({ members }).filter((each) => each.state === "running").at(-1);
        if (last) await this.give({ type: "member", action: "restart", member: last.name, designs: [design] }, `restart ${last.name} of ${design}`);
      }
      begun = this.game.at_ms;
    }
    const candidates = [...present(this.groups[0])].sort((one, other) => (other.name === "m2") - (one.name === "m2"));
    this.member = candidates.find((each) => this.groups.every((group) => delivers(group, each.name)))?.name;
    if (this.member) return this.tour === tour;
    this.fill(tour.title, html("p", {}, "It needs a member that owns a partition in both designs: add partitions first."),
      html("div", { class: "tools" }, this.button("All tours", () => this.choose())));
    return false;
  }

  get first() {
    return Math.max(this.game.begun.members, MEMBERS_MIN);
  }

  isAsAtFirst(group) {
    return isWhole(group) && present(group).length === this.first && present(group).every((each) => !each.delay_ms && !each.stepping);
  }

  get groups() {
    return this.game.groups.filter((each) => this.tour?.designs.includes(each.design));
  }

  go(number) {
    const step = this.tour.steps[number], isLast = number === this.tour.steps.length - 1, tour = this.tour;
    this.number = number;
    this.seen = html("ul", { class: "seen" });
    const tools = html("div", { class: "tools" });
    const room = this.room(step), isPossible = !added(step.do ?? []) || room > 0;
    const doButton = step.do && isPossible
      ? this.button(this.words(added(step.do) > room ? `Add ${room} more` : step.label), () => this.perform(number)) : null;
    const nextButton = isLast ? null : this.button("Next", () => this.isOver(number) && this.go(number + 1));
    if (doButton) tools.append(doButton);
    else if (step.do) {
      tools.append(html("span", {}, `There is no room for another member: ${this.game.limits.members} are the most.`));
      this.steps[number].isOver = true;
    }
    if (number > 0) tools.append(this.button("Back", () => this.go(number - 1)));
    if (nextButton) tools.append(nextButton);
    tools.append(this.button("Begin again", () => this.begin(tour)), this.button("All tours", () => this.choose()), this.button("Close", () => this.close()));
    this.fill(`${tour.title}: ${number + 1} of ${tour.steps.length}`, html("p", {}, ...coded(this.words(step.say))),
      html("p", { class: "look" }, html("strong", {}, "Look: "), ...coded(this.words(step.look))), this.seen, tools);
    Object.assign(this, { doButton, nextButton });
    this.update(this.game);
  }

  // How many members there is room for, in all of the tour's groups.
  room(step) {
    return step.do ? Math.min(...this.groups.map((each) => roomIn(each, this.game).members)) : 0;
  }

  // Whether a step has been done, and what it waits for has been seen.
  isOver(number) {
    const step = this.tour.steps[number], { before, found, isOver } = this.steps[number];
    return isOver || !step.do || Boolean(before && (found.size >= (step.seen ?? []).length || this.game.at_ms - before.at_ms > LONG_MS));
  }

  words(text) {
    return text.replaceAll("{m}", this.member);
  }

  fill(title, ...content) {
    const hadFocus = this.root.contains(document.activeElement) || this.root.hidden;
    this.title = html("h2", { tabindex: -1 }, title);
    this.doButton = this.nextButton = null;
    this.root.replaceChildren(this.title, ...content);
    this.root.hidden = false;
    if (hadFocus) this.title.focus();
  }

  button(label, does) {
    return html("button", { type: "button", onclick: does }, label);
  }

  async perform(number) {
    const tour = this.tour, step = tour.steps[number], done = this.steps[number];
    if (done.before || done.isUnderWay || !takesCommands(this.game)) return;
    done.isUnderWay = true;
    const { at_ms } = this.game, before = Object.fromEntries(this.groups.map((each) => [each.design, remembered(each, at_ms)]));
    const room = this.room(step), label = this.words(step.label);
    for (const each of step.do) {
      const command = { ...each, designs: tour.designs };
      if (each.member) command.member = this.words(each.member);
      if (each.type === "add-members") command.count = done.added = Math.min(each.count, room);
      const { accepted } = await this.give(command, label);
      if (!accepted || this.tour !== tour) break;
      if (each === step.do.at(-1)) Object.assign(done, { before: { at_ms, of: before }, found: new Map(), memos: (step.seen ?? []).map(() => ({})) });
    }
    done.isUnderWay = false;
    if (this.tour === tour) this.update(this.game);
  }

  // Resolves when the game is so, with true; or with false, when the tour has been left or the game is over.
  until(tour, condition) {
    return new Promise((resolve) => {
      this.waits.push({ tour, condition, resolve });
      this.look();
    });
  }

  look() {
    const isOver = !isOpen(this.game);
    this.waits = this.waits.filter(({ tour, condition, resolve }) => {
      const isLeft = this.tour !== tour || isOver, isSo = !isLeft && condition();
      if (isLeft || isSo) resolve(isSo);
      return !isLeft && !isSo;
    });
  }

  // Ticks what the step expects to be seen, as it happens.
  update(game) {
    this.game = game;
    if (this.isAwaited) this.choose();
    if (!isOpen(game)) {
      if (game.status !== "starting" && !this.root.hidden) this.close();
      return;
    }
    this.look();
    if (!this.tour || this.number < 0 || this.root.hidden) return;
    this.undo(game);
    const step = this.tour.steps[this.number], done = this.steps[this.number];
    this.point(step.part);  // there may be other columns now
    if (this.doButton) this.doButton.setAttribute("aria-disabled", String(Boolean(done.before || done.isUnderWay || !takesCommands(game))));
    if (done.before) this.tick(step, done);
    this.nextButton?.setAttribute("aria-disabled", String(!this.isOver(this.number)));
  }

  // Whoever goes back in time has not yet done what was done later.
  undo({ at_ms, simulation }) {
    const reached = simulation?.time === "replaying" ? simulation.until_ms : at_ms;
    const isUndone = ({ before }) => before?.at_ms > reached;
    if (isUndone(this.steps[this.number])) this.seen.replaceChildren();
    this.steps = this.steps.map((each) => (isUndone(each) ? {} : each));
  }

  tick(step, { before, found, memos, added: count }) {
    (step.seen ?? []).forEach((each, place) => {
      const group = this.groups.find((one) => one.design === each.design), was = before.of[each.design];
      const about = { ...each, member: this.member, memo: memos[place], added: each.added === "all" ? count : each.added };
      if (!found.has(place) && group && CONDITIONS[each.is](group, was, about)) found.set(place, this.game.at_ms - before.at_ms);
      const item = this.seen.children[place] ?? this.seen.appendChild(html("li"));
      const after = found.get(place), text = this.words(each.say);
      say(item, after === undefined ? `… waiting: ${text}` : `✓ ${text} (after ${seconds(Math.max(0, after))})`);
    });
  }

  point(part) {
    for (const each of document.querySelectorAll("[data-part]")) each.classList.toggle("looked-at", each.dataset.part === part);
  }
}

const added = (commands) => commands.reduce((sum, each) => sum + (each.type === "add-members" ? each.count : 0), 0);
export const commandLine = (tour) => printable(`rebalance-lab playground --design ${tour.designs.join(",")}`);
