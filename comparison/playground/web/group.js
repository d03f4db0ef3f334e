// One design's column: what is to be seen at a glance, and its feed; the other parts have files of their own.

import { Counters } from "./counted.js";
import { clock, html, keyed, put, say, several } from "./elements.js";
import { glance } from "./model.js";
import { Lanes } from "./lanes.js";
import { Machine } from "./machine.js";
import { Members } from "./members.js";
import { Steps } from "./steps.js";
import { SameAgain } from "./time.js";
import { Tree } from "./tree.js";

const SIGNS = { info: ["·", ""], act: ["▶", "played: "], notice: ["!", "notice: "], alarm: ["⚠", "alarm: "] };

export class GroupColumn {
  // `turn` sends a command to the game as a whole, if it is simulated. A replay has nobody to give a command to: its feed
  // changes with every move of the cursor, and is not announced.
  constructor(group, give, toWhom, turn) {
    this.isPlayed = Boolean(give);
    this.glance = html("p", { class: "glance", "data-part": "glance" });
    this.counters = new Counters(group);
    this.feed = html("div", { class: "feed", role: "log", "aria-live": give ? "polite" : "off", tabindex: 0, "aria-label": `What happens in ${group.design}` });
    this.parts = [new Lanes(group), new Members(group, give, toWhom)];
    if (group.coordinated) this.parts.push(new Machine(group));
    if (!group.coordinated || group.sessions || group.znodes.length) this.parts.push(new Tree(group));
    if (group.table.length) this.parts.push(new Steps(group, give));
    [this.lanes, this.members] = this.parts;
    this.lanes.lists.append(this.counters.about);
    this.steps = this.parts.find((each) => each instanceof Steps);
    this.same = turn ? new SameAgain(group.design, turn) : null;
    const title = html("div", { class: "head" }, html("h2", { id: `design-${group.design}`, tabindex: -1 }, group.design),
      ...(this.same ? [this.same.root] : []));
    this.root = html("section", { class: "group", "data-design": group.design, "aria-label": group.design }, title,
      this.glance, this.counters.root, this.lanes.root, this.members.root,
      html("section", { class: "feed-part", "data-part": "feed" }, html("h3", {}, "What happens"), this.feed),
      html("div", {}, ...this.parts.slice(2).filter((each) => each !== this.steps).map((each) => each.root)),
      ...(this.steps ? [this.steps.root] : []));
  }

  update(group, now) {
    this.showGlance(group, now);
    this.counters.update(group, now);
    this.tell(group);
    this.lanes.update(group, now);
    this.members.update(group, now);
    this.same?.update(now);
    for (const each of this.parts.slice(2)) each.update(group, now);
  }

  showGlance(group, { status }) {
    const seen = glance(group), named = (each) => `${each.name} (${each.deliverers.join(" + ")})`;
    this.glance.dataset.kind = seen.kind;
    const list = (all, text) => all.slice(0, 4).map(text).join(", ") + (all.length > 4 ? " …" : "");
    const texts = {
      alarm: () => `⚠ Split brain: ${several(seen.twice.length, "partition")} delivered by two members: ${list(seen.twice, named)}`,
      notice: () => `▨ ${several(seen.unowned.length, "partition")} delivered by nobody: ${list(seen.unowned, (each) => each.name + (each.frozen ? ` (${each.frozen} is frozen)` : ""))}`,
      good: () => `✓ Each of ${several(group.partitions.length, "partition")} is delivered by one member`,
      idle: () => "The group is forming",
    };
    const last = { analysing: "At the end: ", ended: "At the end: ", failed: "At the end: ", lost: "Last seen: " }[status];
    say(this.glance, (this.isPlayed && last ? last : "") + texts[seen.kind]());
    put(this.glance, "title", this.glance.textContent);
  }

  // The newest first. Some are only known to have happened when others were said already.
  tell(group) {
    const newest = [...group.feed].sort((one, other) => other.at_ms - one.at_ms || other.id - one.id);
    keyed(this.feed, newest, (each) => each.id, (each) => {
      const [sign, word] = SIGNS[each.severity] ?? SIGNS.info;
      return html("p", { class: each.severity },
        html("span", { class: "when" }, clock(each.at_ms)), html("span", { class: "sign", "aria-hidden": "true" }, sign),
        html("span", {}, html("span", { class: "spoken" }, word), each.text));
    });
  }
}
