// All lanes of a scenario share one window of time, in milliseconds from the left end of their axis.
const NARROWEST_MS = 20;

class Lanes {
  constructor(element) {
    this.element = element;
    this.section = element.closest('.scenario');
    this.anchor = this.section.dataset.scenario;
    this.length = Number(element.dataset.length);
    this.zero = Number(element.dataset.from);
    this.from = 0;
    this.until = this.length;
    this.runs = all('.run', element);
    choosing(this);
    this.partition = element.querySelector('select.partition');
    this.member = element.querySelector('select.member');
    element.addEventListener('change', () => { this.filter(); this.show(); remember(this); });
    for (const button of all('[data-do]', element)) button.addEventListener('click', () => this.do(button.dataset.do));
    for (const figure of all('.figure', element)) listen(this, figure);
  }

  get blocks() { return (this.made ??= all('.block', this.element).map((each) => new Block(each, this.length))); }

  zoom(from, until) {
    const width = Math.min(this.length, Math.max(NARROWEST_MS, until - from));
    this.from = Math.min(Math.max(0, from + (until - from - width) / 2), this.length - width);
    this.until = this.from + width;
    this.show();
    remember(this);
  }

  show() {
    this.paint();
    tellFilter(this);
  }

  paint() {
    const hidden = this.element.querySelector('.of-members').checked ? 'partitions' : 'members', { widths } = this;
    for (const block of this.blocks) {
      const width = widths.get(block.run);
      if (width && !block.element.classList.contains(hidden)) block.show(this.from, this.until, width);
    }
  }

  crowd() {
    const { widths } = this;
    for (const block of this.blocks) {
      if (widths.get(block.run)) block.crowd((this.until - this.from) / widths.get(block.run));
    }
  }

  // Of each run's plots, 0 of one that is folded. Asked before anything is changed, so that the page is laid out once.
  get widths() {
    return new Map(this.runs.map((run) => [run, run.querySelector('.axis .plot')?.getBoundingClientRect().width]));
  }

  get whole() { return this.from <= 0 && this.until >= this.length; }

  filter() {
    for (const block of this.blocks) {
      const kind = block.element.classList;
      if (kind.contains('partitions')) { block.dim(this.member.value); block.only(block.span(this.partition.value)); }
      if (kind.contains('members') || kind.contains('phases')) block.only(block.span(this.member.value));
    }
  }

  scale(factor, at = (this.from + this.until) / 2) {
    this.zoom(at - (at - this.from) * factor, at + (this.until - at) * factor);
  }

  pan(by) {
    const moved = Math.min(Math.max(-this.from, by * (this.until - this.from)), this.length - this.until);
    this.zoom(this.from + moved, this.until + moved);
  }

  go(moments, step) { // to the next or previous of some stretches, seen from the last one gone to
    const sorted = [];
    for (const each of moments.sort((one, other) => one.from - other.from)) { // those of several designs at once are one
      const last = sorted.at(-1);
      if (last && each.from - last.from <= 1) last.until = Math.max(last.until, each.until);
      else sorted.push({ from: each.from, until: each.until });
    }
    const here = this.gone ?? (step > 0 ? -1 : Infinity);
    const next = step > 0 ? sorted.find((each) => each.from > here + 1) : sorted.findLast((each) => each.from < here - 1);
    const found = next || (step > 0 ? sorted[0] : sorted.at(-1));
    if (!found) return null;
    const margin = Math.max(150, (found.until - found.from) * 0.3);
    this.zoom(found.from - margin, found.until + margin);
    this.gone = found.from;
    return found;
  }

  do(what) {
    const rounds = () => this.blocks.filter(({ run }) => this.isShown(run)).flatMap((block) => block.rebalances);
    const overlaps = () => this.blocks.filter(({ run }) => this.isShown(run)).flatMap((block) => block.overlaps);
    const actions = {
      in: () => this.scale(0.5), out: () => this.scale(2), left: () => this.pan(-0.25), right: () => this.pan(0.25),
      fit: () => { this.gone = undefined; this.zoom(0, this.length); },
      next: () => this.go(rounds(), 1), previous: () => this.go(rounds(), -1),
      overlap: () => nextOverlap(this, overlaps()),
      why: () => nextWhy(this),
      clear: () => { this.gone = undefined; see(this, {}); remember(this); },
      sequence: () => showSequence(this),
      help,
    };
    actions[what]();
  }
}

const scenarios = all('.lanes').map((element) => new Lanes(element));
const ofScenario = (anchor) => scenarios.find((each) => each.anchor === anchor);
