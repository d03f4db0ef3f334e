// One design's column: what is to be seen at a glance, its counters, and its feed; the other parts have files of their
// own.

import { COUNTERS } from "./counters.js";
import { clock, html, keyed, light, say, several } from "./elements.js";
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
    this.glance = html("p", { class: "glance", "data-part": "glance" });
    this.counters = html("dl", { class: "counters", "data-part": "counters" });
    this.meanings = html("dl", { class: "meanings" });
    const counted = html("div", {}, this.counters, html("details", {}, html("summary", {}, "What is counted"),
      html("p", {}, "Each figure is the report's of the same name."), this.meanings));
    this.feed = html("div", { class: "feed", role: "log", "aria-live": give ? "polite" : "off", tabindex: 0, "aria-label": `What happens in ${group.design}` });
    this.parts = [new Lanes(group), new Members(group, give, toWhom)];
    if (group.coordinated) this.parts.push(new Machine(group));
    if (!group.coordinated || group.znodes.length) this.parts.push(new Tree(group));
    if (group.table.length) this.parts.push(new Steps(group, give));
    [this.lanes, this.members] = this.parts;
    this.steps = this.parts.find((each) => each instanceof Steps);
    this.same = turn ? new SameAgain(group.design, turn) : null;
    const title = html("div", { class: "head" }, html("h2", { id: `design-${group.design}`, tabindex: -1 }, group.design),
      ...(this.same ? [this.same.root] : []));
    this.root = html("section", { class: "group", "data-design": group.design, "aria-label": group.design }, title,
      this.glance, counted, this.lanes.root, html("div", {}, this.members.root, ...(this.steps ? [this.steps.root] : [])),
      html("section", { class: "feed-part", "data-part": "feed" }, html("h3", {}, "What happens"), this.feed),
      html("div", {}, ...this.parts.slice(2).filter((each) => each !== this.steps).map((each) => each.root)));
  }

  update(group, now, rowsOf) {
    this.showGlance(group);
    this.count(group, now);
    this.tell(group);
    this.lanes.update(group, now, rowsOf);
    this.members.update(group, now);
    this.same?.update(now);
    for (const each of this.parts.slice(2)) each.update(group, now);
  }

  showGlance(group) {
    const seen = glance(group), named = (each) => `${each.name} (${each.deliverers.join(" + ")})`;
    this.glance.dataset.kind = seen.kind;
    const list = (all, text) => all.slice(0, 4).map(text).join(", ") + (all.length > 4 ? " …" : "");
    const texts = {
      alarm: () => `⚠ Split brain: ${several(seen.twice.length, "partition")} delivered by two members: ${list(seen.twice, named)}`,
      notice: () => `▨ ${several(seen.unowned.length, "partition")} delivered by nobody: ${list(seen.unowned, (each) => each.name)}`,
      good: () => `✓ Each of ${several(group.partitions.length, "partition")} is delivered by one member`,
      idle: () => "The group is forming",
    };
    say(this.glance, texts[seen.kind]());
  }

  // The same counters in every column, at the same places; a design has nothing of some of them.
  count(group, { groups }) {
    const shown = COUNTERS.filter((each) => groups.some(({ design }) => each.designs.includes(design)));
    keyed(this.counters, shown, (each) => each.name, ({ name, label, meaning }) => html("div", { "data-counter": name, title: meaning },
      html("dt", {}, label), html("dd", {}, "")), (node, { name, unit, is_alarm, designs }) => {
      const value = group.counters[name], number = node.lastChild, before = number.textContent;
      const isThere = designs.includes(group.design) || value > 0;
      say(number, !isThere ? "–" : unit === "s" ? value.toFixed(1) : value.toLocaleString("en"));
      node.classList.toggle("alarm", is_alarm && value > 0);
      if (before && before !== number.textContent && name !== "delivered") light(node);
    });
    keyed(this.meanings, shown, (each) => each.name, ({ label, meaning }) => html("div", {}, html("dt", {}, label), html("dd", {}, meaning)));
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
