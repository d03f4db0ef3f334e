// One block of lanes. Its inner `svg.win` is as wide as the whole run: to zoom is to set its place and width, and to write
// its texts anew. What it has is in `data-layout` (drawing/layout.py); the paths of bars have the order that it has.
class Block {
  constructor(element, length) {
    this.element = element;
    this.length = length;
    this.run = element.closest('.run');
    this.win = element.querySelector('.win');
    this.plot = element.querySelector('.plot');
    this.names = element.querySelector('.names');
    this.over = element.querySelector('.over');
    this.height = Number(this.plot.getAttribute('height'));
    this.top = 0;
    const authority = this.run.dataset.authority;
    const meanings = { n: `named by ${authority}`, d: 'delivers', c: 'commits', r: 'rebalances', p: 'phase',
      w: 'at the barrier', i: 'the whole group' };
    this.layout = JSON.parse(element.dataset.layout);
    this.rows = [];
    for (const [y, height, what, lane = this.rows.at(-1)?.lane] of this.layout.rows)
      this.rows.push({ y, height, what: meanings[what], lane });
    this.overlaps = this.layout.overlaps.map(([from, until, y, height, lane, who]) => ({ from, until, y, height, lane, who }));
    this.curves = this.layout.curves.map(([name, above, below, steps]) => ({ name, above, below, steps }));
  }

  get bars() {
    if (!this.found) {
      const paths = all('.bars > path:not(.sep, .tick, .ok, .stale)', this.win);
      this.found = this.layout.bars.flatMap(([names, numbers], place) => numbers.flatMap((from, n) => (n % 3 ? [] : [{
        from, until: from + numbers[n + 1], row: this.rows[numbers[n + 2] < 0 ? ~numbers[n + 2] : numbers[n + 2]],
        isNamedOnce: numbers[n + 2] < 0, name: typeof names === 'string' ? names : names[n / 3], path: paths[place],
      }]))).filter(({ name }) => name);
    }
    return this.found;
  }

  get rebalances() { return this.bars.filter((bar) => bar.row.what === 'rebalances'); }

  values(ms, at) { // what the curves at a height say at a moment
    return this.curves.filter(({ above, below }) => above <= at && at <= below).flatMap(({ name, steps }) => {
      const step = steps.findIndex((from, n) => n % 3 === 0 && from <= ms && ms < steps[n + 1]);
      return step < 0 ? [] : [`${name} ${steps[step + 2].toLocaleString('en')}`];
    });
  }

  show(from, until, width) {
    this.win.setAttribute('x', `${(-100 * from) / (until - from)}%`);
    this.win.setAttribute('width', `${(100 * this.length) / (until - from)}%`);
    if (this.element.classList.contains('axis')) this.axis(from, until, width);
    else this.label(from, until, (until - from) / width);
  }

  label(from, until, pixel) {
    for (const old of all('.lb, .bl, .bo', this.win)) old.remove();
    const at = (ms) => `${(100 * ms) / this.length}%`;
    const labels = shape('g', { class: 'lb' }), isWhole = until - from >= this.length;
    for (const bar of this.bars) {
      const { y, height, what } = bar.row, seen = inSight(bar, from, until);
      // In the whole run a name is written once. Zoomed in, the bar that has it may be out of sight.
      if (height < 8 || what === 'rebalances' || (isWhole && bar.isNamedOnce)) continue;
      if (fitting([bar.name], (seen.until - seen.from) / pixel - 4) === undefined) continue;
      const text = shape('text', { x: at(seen.from), y: y + Math.floor((height + 7) / 2) }, bar.name);
      if (bar.path.classList.contains('dim')) text.classList.add('dim');
      labels.append(text);
    }
    this.over.before(labels);
    this.crowd(pixel);
    const free = new Map();
    for (const { y, height, who, ...stretch } of this.overlaps) {
      const seen = inSight(stretch, from, until);
      if (seen.until <= seen.from) continue;
      const { text, isInside } = overlapText([`two deliver: ${who}`, who], seen, pixel);
      const beside = LETTER * (who.length + 2) * pixel;
      if (!isInside && (seen.until < (free.get(y) ?? 0) || seen.until + beside >= until)) continue;
      if (!isInside) free.set(y, seen.until + beside);
      const place = { x: at(isInside ? seen.from : seen.until), y: y + height + OVERLAP - 3 };
      this.over.append(shape('text', { class: isInside ? 'bl' : 'bo', ...place }, text));
    }
  }

  crowd(pixel) { // of names of faults, changes and generations that are too close; the others keep their line and hint
    const texts = all('.over > text:not(.bl, .bo)', this.win), rows = new Map();
    this.layout.labels.forEach(([kind, at, y, endsThere], place) => {
      if (kind !== 'ev' && kind !== 'step') return;
      const node = texts[place], text = node.textContent;
      if (!rows.has(y)) rows.set(y, []);
      rows.get(y).push({ node, text, x: at / pixel - (endsThere ? LETTER * text.length : 0), room: kind === 'ev' ? 6 : 4 });
    });
    for (const row of rows.values()) crowded(row).forEach((is, place) => row[place].node.classList.toggle('crowded', is));
  }

  axis(from, until, width) {
    const zero = Number(this.element.closest('.lanes').dataset.from);
    for (const old of all('.tick, .at', this.win)) old.remove();
    const { found, digits } = ticks(from + zero, until + zero, Math.max(3, Math.min(12, width / 60)));
    for (const at of found) {
      const x = `${(100 * (at - zero)) / this.length}%`, place = (at - zero - from) / (until - from);
      this.over.append(shape('line', { class: 'tick', x1: x, x2: x, y2: 4 }));
      const classes = place < 0.02 ? 'at first' : place > 0.98 ? 'at last' : 'at';
      this.over.append(shape('text', { class: classes, x, y: 14 }, (at / 1000).toFixed(digits)));
    }
  }

  lanes() {
    const found = new Map();
    for (const row of this.rows) if (!found.has(row.lane)) found.set(row.lane, Math.max(0, row.y - 2));
    return found;
  }

  signAt({ clientX, clientY }) { // of a commit that was refused or moved the offset back; a fault's band may lie above it
    return all('.over > .no, .over > .back', this.win).find((each) => {
      const { left, right, top, bottom } = each.getBoundingClientRect();
      return left <= clientX && clientX <= right && top <= clientY && clientY <= bottom;
    });
  }

  get groups() { return this.layout.groups ?? []; }

  ownerAt(lane, ms) { // whom the authority names at a moment
    return this.bars.find(({ row, from, until }) => row.lane === lane && row.what.startsWith('named') && from <= ms && ms < until)?.name;
  }

  laneAt(y) { // the lane at a height
    return [...this.lanes()].findLast(([, top]) => top <= y)?.[0];
  }

  span(name) { // the top and the foot of a lane, of the lanes of the n-th group (`*n`), or of all
    if (name.startsWith('*')) {
      const [top, foot] = [0, 1].map((n) => this.groups[Number(name.slice(1)) + n]?.[1]);
      return top === undefined ? [0, 0] : [top, foot ?? this.height];
    }
    const top = name ? this.lanes().get(name) : 0;
    if (top === undefined) return [0, 0];
    const tops = [...this.lanes().values(), ...this.groups.map(([, y]) => y), this.height].sort((one, other) => one - other);
    return [top, name ? tops.find((each) => each > top) : this.height];
  }

  only([top, foot]) { // show what is between two heights
    this.top = top;
    this.win.setAttribute('y', -top);
    this.plot.setAttribute('height', foot - top);
    this.names.setAttribute('height', foot - top);
    for (const text of all('text', this.names)) text.setAttribute('dy', -top);
  }

  dim(member) {
    for (const { path } of this.bars) path.classList.toggle('dim', Boolean(member));
    for (const { path, name } of this.bars) if (name.split('.')[0] === member) path.classList.remove('dim'); // m1.2 is m1 restarted
  }
}
