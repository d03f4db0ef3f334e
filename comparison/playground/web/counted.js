// A design's counters: the same ones at the same places in every column. One that the design has nothing of shows a
// dash, and says why.

import { COUNTERS } from "./counters.js";
import { html, keyed, light, put, say } from "./elements.js";

// Those that a strip has room for.
const MAIN = ["unowned_partition_s", "two_delivering_partition_s", "rebalances", "refused"];

export class Counters {
  constructor({ design }, isShort = false) {
    this.design = design;
    this.isShort = isShort;
    this.all = COUNTERS.filter(({ name }) => !isShort || MAIN.includes(name));
    this.root = html("dl", { class: "counters", "data-part": "counters" });
    this.meanings = html("dl", { class: "meanings" });
    this.about = html("details", {}, html("summary", {}, "What is counted"),
      html("p", {}, "Each figure is the report's of the same name."), this.meanings);
  }

  update(group, { groups }) {
    const shown = this.all.filter((each) => groups.some(({ design }) => each.designs.includes(design)));
    keyed(this.root, shown, (each) => each.name, ({ name, label }) => html("div", { "data-counter": name },
      html("dt", {}, this.isShort ? label.split(",")[0] : label), html("dd")), (box, each) => this.show(box, each, group.counters[each.name]));
    keyed(this.meanings, shown, (each) => each.name, ({ label, meaning }) => html("div", {}, html("dt", {}, label), html("dd", {}, meaning)));
  }

  show(box, { name, unit, is_alarm, designs, meaning, only }, value) {
    const number = box.lastChild, before = number.textContent, isThere = designs.includes(this.design) || value > 0;
    put(box, "title", isThere ? meaning : only);
    if (!isThere) {
      if (!number.firstElementChild) number.replaceChildren(html("span", { "aria-hidden": "true" }, "–"), html("span", { class: "spoken" }, `none: ${only}`));
      return;
    }
    say(number, unit === "s" ? value.toFixed(1) : value.toLocaleString("en"));
    box.classList.toggle("alarm", is_alarm && value > 0);
    if (before && before !== number.textContent && name !== "delivered") light(box);
  }
}
