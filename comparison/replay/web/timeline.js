// The place in a replay: how many of its steps are over. The state there is made by going on from a state that was kept,
// or from the first one, never by undoing: it is the same however the place was reached.

import { apply } from "./model.js";

const KEPT_EVERY = 200;
const AT = 0, SAYS = 2, MARK = 3, CHANGES = 4;

// The members, partitions and so on of a state never change, only the lists of them.
const copied = (state) => ({ ...state, groups: state.groups.map((group) => ({ ...group, members: [...group.members],
  partitions: [...group.partitions], znodes: [...group.znodes], feed: [...group.feed] })) });

export class Timeline {
  constructor({ first, steps }) {
    this.steps = steps;
    this.kept = [first];
    this.state = copied(first);
    this.done = 0;
  }

  goTo(done) {
    const near = Math.min(Math.floor(done / KEPT_EVERY), this.kept.length - 1);
    if (done < this.done || near * KEPT_EVERY > this.done) {
      this.state = copied(this.kept[near]);
      this.done = near * KEPT_EVERY;
    }
    while (this.done < done) {
      const step = this.steps[this.done];
      apply(this.state, { seq: this.done + 1, at_ms: step[AT], changes: step[CHANGES] });
      this.done += 1;
      if (this.done === this.kept.length * KEPT_EVERY) this.kept.push(copied(this.state));
    }
  }

  // How many steps are over at a time.
  doneAt(ms) {
    let low = 0, high = this.steps.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.steps[middle][AT] <= ms) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // The number of the next step that is an event, or has this mark; -1 without one.
  next(mark = "", from = this.done) {
    return this.steps.findIndex((step, number) => number >= from && (mark ? step[MARK] === mark : step[SAYS]));
  }

  // The number of the last one before.
  last(mark = "", before = this.done) {
    return this.steps.findLastIndex((step, number) => number < before && (mark ? step[MARK] === mark : step[SAYS]));
  }

  at(number) {
    return this.steps[number][AT];
  }
}
