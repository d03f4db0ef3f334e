// The coordinator's state machine, drawn from the product's own table of moves, with the present state lit.

import { clock, html, put, say, svg } from "./elements.js";
import { machines } from "./machines.js";

const WIDTH = 480, HEIGHT = 178, BOX = { width: 150, height: 34 };
const PLACES = {
  Empty: [80, 32], PreparingRebalance: [80, 104], CompletingRebalance: [395, 104], Stable: [240, 32], Dead: [395, 32],
  Assigning: [80, 104], Reconciling: [395, 104],
};
// How a move is drawn; one that is not here is a straight line. All states can end in Dead: only some lines are drawn.
const LINES = {
  "Empty PreparingRebalance": "M70 49V87", "PreparingRebalance Empty": "M100 87V49",
  "PreparingRebalance CompletingRebalance": "M155 97H320", "CompletingRebalance PreparingRebalance": "M320 113H155",
  "CompletingRebalance Stable": "M350 87L290 49", "Stable PreparingRebalance": "M190 49L130 87",
  "Empty Assigning": "M70 49V87", "Assigning Empty": "M100 87V49",
  "Assigning Reconciling": "M155 97H320", "Reconciling Assigning": "M320 113H155",
  "Reconciling Stable": "M345 87L285 49", "Stable Reconciling": "M303 49L363 87",
  "Assigning Stable": "M145 87L205 49", "Stable Assigning": "M185 49L125 87",
  "Stable Empty": "M165 32H156", "Reconciling Empty": "M395 121V126H2V32H4",
};

let made = 0;

export class Machine {
  constructor(group) {
    this.states = new Map();
    this.moves = new Map();
    this.drawing = svg("svg", { class: "machine", viewBox: `0 0 ${WIDTH} 130`, role: "img" });
    this.facts = html("dl", { class: "facts" });
    this.root = html("section", { class: "coordinator", "data-part": "coordinator" }, html("h3", {}, "Its coordinator"), this.drawing, this.facts);
    this.values = ["state", "generation", "leader", "members", "last change"].map((name) => {
      const value = html("dd");
      this.facts.append(html("div", {}, html("dt", {}, name), value));
      return value;
    });
    this.draw(group);
  }

  draw(group) {
    const arrow = `arrow-${made += 1}`;
    this.drawing.append(svg("defs", {}, svg("marker", { id: arrow, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7,
      markerHeight: 7, orient: "auto" }, svg("path", { class: "head", d: "M0 0L8 4L0 8z" }))));
    group.states.forEach((name, number) => {
      const [x, y] = PLACES[name] ?? [80 + 155 * (number % 3), HEIGHT - 20];
      const box = svg("g", { class: "box", transform: `translate(${x - BOX.width / 2} ${y - BOX.height / 2})` },
        svg("rect", { ...BOX, rx: 6 }), svg("text", { x: BOX.width / 2, y: 21.5, "text-anchor": "middle" }, name));
      this.states.set(name, box);
      this.drawing.append(box);
    });
    machines.then((all) => {
      for (const [from, to, reasons] of all[group.design] ?? []) {
        const line = LINES[`${from} ${to}`];
        if (!line) continue;
        const move = svg("path", { class: "move", d: line, "marker-end": `url(#${arrow})` }, svg("title", {}, reasons.join("; ")));
        this.moves.set(`${from} ${to}`, move);
        this.drawing.append(move);
      }
      if (this.said) this.mark(this.said);
    });
  }

  mark({ state, came_from }) {
    for (const [name, box] of this.states) box.classList.toggle("now", name === state);
    for (const [name, move] of this.moves) move.classList.toggle("taken", name === `${came_from} ${state}`);
    put(this.drawing, "aria-label", `The state machine of the group; its state is ${state || "not known yet"}`);
  }

  update(group) {
    const said = group.coordinator;
    if (!said) return;
    if (this.said?.state !== said.state || this.said.came_from !== said.came_from) this.mark(said);
    this.said = said;
    const texts = [said.state || "–", said.generation, said.leader || "–", said.members.join(", ") || "–",
      said.reason ? `${said.reason} (${clock(said.since_ms)})` : "–"];
    texts.forEach((text, place) => say(this.values[place], String(text)));
  }
}
