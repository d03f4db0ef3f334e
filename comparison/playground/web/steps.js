// Step by step: a member that waits before each ZooKeeper operation, and its row in the table of a rebalance. While a
// member is stepped, this stays in sight at the bottom of its column.

import { html, keyed, put, say, several } from "./elements.js";
import { takesCommands } from "./model.js";

export class Steps {
  constructor(group, give) {
    this.design = group.design;
    this.give = give;
    this.waiting = html("ul", { class: "waiting" });
    this.empty = html("p", { class: "faint" }, "No operation waits: a member that is stepped waits before its next one.");
    this.rows = html("tbody");
    this.root = html("section", { class: "steps", "data-part": "steps", hidden: true }, html("h3", {}, "Step by step"), this.empty, this.waiting,
      html("details", {}, html("summary", {}, "The table of a rebalance"), html("div", { class: "scroll", tabindex: 0, role: "region",
        "aria-label": "The table of a rebalance" }, html("table", {}, html("thead", {}, html("tr", {},
        ...["step", "phase", "what it does", "requests", "here"].map((name) => html("th", { scope: "col" }, name)))), this.rows))));
    this.details = this.root.querySelector("details");
  }

  update(group, game) {
    this.isOpen = takesCommands(game);
    const order = [...group.waiting].sort((one, other) => one.since_ms - other.since_ms);
    const first = order[0]?.member;
    this.empty.hidden = order.length > 0;
    this.root.hidden = !order.length && !group.members.some((each) => each.stepping);
    const before = this.waiting.children.length;
    keyed(this.waiting, order, (each) => each.member, (each) => this.item(each), (node, each) => {
      say(node.querySelector(".operation"), `${each.operation} ${each.path}`);
      say(node.querySelector(".row-of"), (each.step ? ` (${each.step})` : "") + (each.behind ? `, ${several(each.behind, "more operation")} queued` : ""));
      say(node.querySelector("kbd"), each.member === first ? "n" : "");
      put(node.querySelector("button"), "aria-disabled", String(!this.isOpen));
    });
    if (!before && order.length) this.details.open = true;
    const here = new Map();
    for (const each of order) for (const row of each.rows) here.set(row, [...(here.get(row) ?? []), each.member]);
    keyed(this.rows, group.table.map((row, place) => ({ ...row, place })), (each) => String(each.place), (each) => html("tr", {},
      html("th", { scope: "row" }, each.step), html("td", {}, each.phase), html("td", { class: "wrap" }, each.does),
      html("td", { class: "wrap" }, each.requests), html("td", { class: "here" })), (row, each) => {
      const who = here.get(each.place) ?? [];
      say(row.lastChild, who.join(", "));
      row.classList.toggle("now", who.length > 0);
      if (who.length) row.setAttribute("aria-current", "step");
      else row.removeAttribute("aria-current");
    });
    if (order.length) this.show(this.rows.children[order[0].rows[0]], `${order[0].member} ${order[0].since_ms}`);
  }

  // Brings the row of what waits longest into sight, once, without moving the page or the focus.
  show(row, what) {
    if (!row || what === this.shown) return;
    this.shown = what;
    const box = row.closest(".scroll");
    box.scrollTop = row.offsetTop - box.clientHeight / 2;
  }

  item({ member }) {
    return html("li", {}, html("span", {}, `${member} waits before `, html("code", { class: "operation" }), html("span", { class: "row-of" })), " ",
      html("button", { type: "button", onclick: () => this.letGo(member) }, `Let ${member} go`), " ", html("kbd"));
  }

  letGo(member) {
    if (this.isOpen) this.give({ type: "let-go", member }, `let ${member} go`, true);
  }
}
