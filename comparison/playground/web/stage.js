// Which designs are shown in full: one or two are. Of more, a choice of two side by side (of one, where there is room for
// one), and each other one as a strip.

import { html, keyed } from "./elements.js";
import { Strip } from "./strip.js";

const ABREAST = 2;

export class Stage {
  // `columnOf` makes a design's column; `said` is told which one was taken, in whose place.
  constructor(columns, strips, jump, columnOf, said) {
    Object.assign(this, { columns, strips, jump, columnOf, said });
    this.narrow = matchMedia("(max-width: 700px)");
    this.clear();
  }

  // Nothing of what was shown stays.
  clear() {
    this.all = new Map();
    this.strip = new Map();
    this.shown = [];
    this.turns = new Map();  // when each was taken
    for (const root of [this.columns, this.strips, this.jump]) {
      root.replaceChildren();
      root.byKey?.clear();
    }
  }

  get visible() {
    return this.shown.map((design) => this.all.get(design));
  }

  turnOf(design) {
    return this.turns.get(design) ?? 0;
  }

  update(game, windowMs) {
    this.game = game;
    this.windowMs = windowMs;
    const designs = game.groups.map((each) => each.design), isCrowded = designs.length > ABREAST;
    const places = isCrowded && this.narrow.matches ? 1 : Math.min(ABREAST, designs.length);
    while (this.shown.length > places) this.shown.splice(this.oldest(), 1);
    for (const design of designs) if (this.shown.length < places && !this.shown.includes(design)) this.shown.push(design);
    const groups = new Map(game.groups.map((each) => [each.design, each]));
    keyed(this.columns, this.shown, String, (design) => this.column(groups.get(design)).root);
    keyed(this.jump, isCrowded ? [] : designs, String, (design) => html("a", { href: `#design-${design}` }, design));
    for (const design of this.shown) this.all.get(design).update(groups.get(design), game);
    keyed(this.strips, game.groups.filter((each) => !this.shown.includes(each.design)), (each) => each.design, (group) => this.stripOf(group).root,
      (_, group) => this.strip.get(group.design).update(group, game, windowMs));
    this.strips.hidden = !isCrowded;
  }

  column(group) {
    if (!this.all.has(group.design)) this.all.set(group.design, this.columnOf(group));
    return this.all.get(group.design);
  }

  stripOf(group) {
    this.strip.set(group.design, new Strip(group, (design) => this.take(design)));
    return this.strip.get(group.design);
  }

  // The place of the one that was taken longest ago.
  oldest() {
    return this.shown.reduce((best, design, place) => (this.turnOf(design) < this.turnOf(this.shown[best]) ? place : best), 0);
  }

  // Shows a design in the place of the one that was taken longest ago.
  take(design) {
    const place = this.oldest(), before = this.shown[place];
    this.show([design], place);
    this.said(`${design} is shown, in the place of ${before}`);
    this.columns.querySelector(`#design-${design}`)?.focus({ preventScroll: true });
  }

  // Shows designs of the game in full, as many as there is room for.
  show(designs, place = 0) {
    const wanted = designs.filter((each) => this.game.groups.some((group) => group.design === each));
    const kept = this.shown.filter((each) => !wanted.includes(each));
    wanted.slice(0, this.shown.length).forEach((design, number) => {
      this.turns.set(design, Math.max(0, ...this.turns.values()) + 1);
      if (this.shown.includes(design)) return;
      const at = wanted.length > 1 ? this.shown.findIndex((each) => kept.includes(each)) : place + number;
      kept.splice(kept.indexOf(this.shown[at]), 1);
      this.shown[at] = design;
    });
    this.update(this.game, this.windowMs);
  }
}
