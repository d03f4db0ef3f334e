// One block of lanes. Its inner `svg.win` is as wide as the whole run: to zoom is to set its place and width. Bars are found
// in the paths of `svg.bars` (m right down h length ..., see drawing/blocks.py), their lanes in `data-rows` (y, height,
// meaning, lane).
const LETTER = 6.4;

class Block {
  constructor(element, length) {
    this.element = element;
    this.length = length;
    this.win = element.querySelector('.win');
    this.plot = element.querySelector('.plot');
    this.names = element.querySelector('.names');
    this.over = element.querySelector('.over');
    this.height = Number(this.plot.getAttribute('height'));
    const authority = element.closest('.run').dataset.authority;
    const meanings = { n: `named by ${authority}`, d: 'delivers', c: 'commits', r: 'rebalances', p: 'phase',
      w: 'at the barrier', i: 'the whole group' };
    let name = '';
    this.rows = element.dataset.rows.split('\n').filter(Boolean).map((line) => {
      const [y, height, what, lane = name] = line.split('\t');
      name = lane;
      return { y: Number(y), height: Number(height), what: meanings[what], lane };
    });
    this.top = 0;
  }

  get bars() {
    if (!this.found) {
      this.found = [];
      for (const path of all('path[data-n]', this.win)) {
        const names = path.dataset.n.split('|');
        const isStroke = !path.getAttribute('d').includes('z');
        let [from, y] = [0, 0];
        for (const [, right, down, width] of path.getAttribute('d').matchAll(/m(-?\d+) (-?\d+)h(\d+)/g)) {
          from += +right;
          y += +down;
          this.found.push({ from, until: from + +width, y, name: names[0], path });
          if (isStroke) from += +width;
          if (names.length > 1) names.shift();
        }
      }
    }
    return this.found;
  }

  get curves() { // of each its place, its name and its steps, from the path's moves: in milliseconds and in values
    this.steps ??= all('.curves path[data-v]', this.win).map((path) => {
      const box = path.closest('svg');
      const top = box.viewBox.baseVal.height + Number(path.dataset.base || 0);
      const steps = [];
      let [x, y] = [0, 0];
      for (const [, command, one, other] of path.getAttribute('d').matchAll(/([Mvh])(-?\d+)(?: (-?\d+))?/g)) {
        if (command === 'M') [x, y] = [+one, +other];
        else if (command === 'v') y += +one;
        else {
          steps.push({ from: x, until: x + +one, value: top - y });
          x += +one;
        }
      }
      const [above, height] = ['y', 'height'].map((each) => Number(box.getAttribute(each)));
      return { name: `${box.dataset.l}: ${path.dataset.v}`, steps, above, below: above + height };
    });
    return this.steps;
  }

  values(ms, at) { // what the curves at a height say at a moment
    return this.curves.filter(({ above, below }) => above <= at && at <= below).flatMap(({ name, steps }) => {
      const step = steps.find((each) => each.from <= ms && ms < each.until);
      return step ? [`${name} ${step.value.toLocaleString('en')}`] : [];
    });
  }

  overlaps() {
    return all('.both', this.win).map((rect) => ({
      from: share(rect, 'x') * this.length,
      until: (share(rect, 'x') + share(rect, 'width')) * this.length,
      lane: rect.dataset.l, who: rect.dataset.w, rect,
    }));
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
    const labels = shape('g', { class: 'lb' });
    const high = new Map(this.rows.map((row) => [row.y, row.height]));
    for (const bar of this.bars) {
      const height = high.get(bar.y) || 0;
      const left = Math.max(bar.from, from), right = Math.min(bar.until, until);
      if (height < 8 || bar.name === 'rebalance' || (right - left) / pixel < LETTER * bar.name.length + 4) continue;
      const y = bar.y + Math.floor((height + 7) / 2);
      const text = shape('text', { x: at(left), y }, bar.name);
      if (bar.path.classList.contains('dim')) text.classList.add('dim');
      labels.append(text);
    }
    this.over.before(labels);
    let free = -Infinity;
    for (const step of all('.step', this.over)) { // of those that are too close, the first
      const x = (share(step, 'x') * this.length) / pixel;
      step.classList.toggle('crowded', x < free);
      if (x >= free) free = x + LETTER * step.textContent.length + 4;
    }
    this.crowd(pixel);
    for (const { from: low, until: high_, who, rect } of this.overlaps()) {
      const left = Math.max(low, from), right = Math.min(high_, until);
      if (right <= left) continue;
      const room = (right - left) / pixel - 6;
      const text = [`two deliver: ${who}`, who].find((each) => LETTER * each.length <= room);
      const y = Number(rect.getAttribute('y')) + Number(rect.getAttribute('height')) - 3;
      this.over.append(shape('text', { class: text ? 'bl' : 'bo', x: at(text ? left : right), y }, text || who));
    }
  }

  crowd(pixel) { // of names of faults and changes that are too close, the first; the others keep their line and hint
    const ends = new Map();
    for (const name of all('.ev', this.over)) {
      const long = LETTER * name.textContent.length, y = name.getAttribute('y');
      const x = (share(name, 'x') * this.length) / pixel - (name.getAttribute('text-anchor') === 'end' ? long : 0);
      name.classList.toggle('crowded', ends.has(y) && x < ends.get(y));
      if (!name.classList.contains('crowded')) ends.set(y, x + long + 6);
    }
  }

  axis(from, until, width) {
    const zero = Number(this.element.closest('.lanes').dataset.from);
    const most = Math.max(3, Math.min(12, width / 60));
    let step = 1;
    for (let n = 0; (until - from) / step > most; n += 1) step *= n % 3 === 1 ? 2.5 : 2;
    for (const old of all('.tick, .at', this.win)) old.remove();
    const digits = Math.max(0, 3 - Math.floor(Math.log10(step)));
    for (let at = Math.ceil((from + zero) / step) * step; at <= until + zero + 1e-6; at += step) {
      const x = `${(100 * (at - zero)) / this.length}%`;
      this.over.append(shape('line', { class: 'tick', x1: x, x2: x, y2: 4 }));
      const place = (at - zero - from) / (until - from);
      const classes = place < 0.02 ? 'at first' : place > 0.98 ? 'at last' : 'at';
      this.over.append(shape('text', { class: classes, x, y: 14 }, (at / 1000).toFixed(digits)));
    }
  }

  lanes() {
    const found = new Map();
    for (const row of this.rows) if (!found.has(row.lane)) found.set(row.lane, Math.max(0, row.y - 2));
    return found;
  }

  only(lane) { // show one lane, or all
    const tops = [...this.lanes().values(), this.height];
    const top = lane ? this.lanes().get(lane) : 0;
    const shown = top === undefined ? 0 : lane ? tops[tops.indexOf(top) + 1] - top : this.height;
    this.top = top || 0;
    this.win.setAttribute('y', -this.top);
    this.plot.setAttribute('height', shown);
    this.names.setAttribute('height', shown);
    for (const text of all('text', this.names)) text.setAttribute('dy', -this.top);
  }

  dim(member) {
    for (const path of all('path[data-n]', this.win)) {
      const names = path.dataset.n.split('|').map((name) => name.split('.')[0]); // m1.2 is m1 restarted
      path.classList.toggle('dim', Boolean(member) && !names.includes(member));
    }
  }
}
