'use strict';
// The page is whole without this script. It adds zoom, filters, keys, links that keep what one sees, and tables that sort.
//
// All lanes of a scenario share one window of time, in milliseconds from the left end of their axis. Each block of lanes
// has an inner `svg.win` as wide as the whole run: to zoom is to set its place and width. Bars are found in the paths of
// `svg.bars` (m right down h length ..., see drawing/blocks.py), their lanes in `data-rows` (y, height, meaning, lane).
(() => {
  const SVG = 'http://www.w3.org/2000/svg';
  const LETTER = 6.4, NARROWEST_MS = 20, DRAGGED_PX = 4;
  const KEYS = [
    ['+ and −', 'zoom in and out (or the wheel, with Ctrl, or after a click on the lanes)'],
    ['← and →', 'earlier and later (or drag with Shift)'],
    ['drag', 'zoom to what is marked'],
    ['0 or double click', 'the whole run'],
    ['j and k', 'next and previous rebalance'],
    ['o', 'next overlap'],
    ['click', 'keep the details of what is under the pointer; Escape closes them'],
    ['?', 'these keys'],
  ];
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const made = (name, attributes = {}, text = '') => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  };
  const shape = (name, attributes, text = '') => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text) element.textContent = text;
    return element;
  };
  const share = (element, name) => parseFloat(element.getAttribute(name)) / 100;
  document.documentElement.classList.add('scripted');
  const tip = document.getElementById('tip');
  let pinned = false;

  // -- one block of lanes ------------------------------------------------------------------------------------------
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
      const meanings = { n: `named by ${authority}`, d: 'delivers', c: 'commits', r: 'rebalances', p: 'phase' };
      this.rows = element.dataset.rows.split('\n').filter(Boolean).map((line) => {
        const [y, height, what, lane] = line.split('\t');
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
      for (const { from: low, until: high_, who, rect } of this.overlaps()) {
        const left = Math.max(low, from), right = Math.min(high_, until);
        if (right <= left) continue;
        const room = (right - left) / pixel - 6;
        const text = [`two deliver: ${who}`, who].find((each) => LETTER * each.length <= room);
        const y = Number(rect.getAttribute('y')) + Number(rect.getAttribute('height')) - 3;
        this.over.append(shape('text', { class: text ? 'bl' : 'bo', x: at(text ? left : right), y }, text || who));
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

  // -- all lanes of a scenario -------------------------------------------------------------------------------------
  class Lanes {
    constructor(element) {
      this.element = element;
      this.section = element.closest('.scenario');
      this.anchor = this.section.dataset.scenario;
      this.length = Number(element.dataset.length);
      this.zero = Number(element.dataset.from);
      this.from = 0;
      this.until = this.length;
      this.blocks = all('.block', element).map((each) => new Block(each, this.length));
      this.partition = element.querySelector('select.partition');
      this.member = element.querySelector('select.member');
      element.addEventListener('change', () => { this.filter(); this.show(); remember(this); });
      for (const button of all('[data-do]', element)) button.addEventListener('click', () => this.do(button.dataset.do));
      for (const figure of all('.figure', element)) this.listen(figure);
    }

    zoom(from, until) {
      const width = Math.min(this.length, Math.max(NARROWEST_MS, until - from));
      this.from = Math.min(Math.max(0, from + (until - from - width) / 2), this.length - width);
      this.until = this.from + width;
      this.show();
      remember(this);
    }

    show() {
      // Measured before anything is changed, so that the page is laid out once.
      const width = this.element.querySelector('.axis .plot').getBoundingClientRect().width || 900;
      const hidden = this.element.querySelector('.of-members').checked ? 'partitions' : 'members';
      for (const block of this.blocks) {
        if (!block.element.classList.contains(hidden)) block.show(this.from, this.until, width);
      }
      const [from, until] = [this.from, this.until].map((ms) => ((ms + this.zero) / 1000).toFixed(2));
      this.element.querySelector('.window').textContent = this.whole ? '' : `${from} to ${until} s`;
    }

    get whole() { return this.from <= 0 && this.until >= this.length; }

    filter() {
      for (const block of this.blocks) {
        const kind = block.element.classList;
        if (kind.contains('partitions')) { block.dim(this.member.value); block.only(this.partition.value); }
        if (kind.contains('members') || kind.contains('phases')) block.only(this.member.value);
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
      if (!found) return;
      const margin = Math.max(150, (found.until - found.from) * 0.3);
      this.zoom(found.from - margin, found.until + margin);
      this.gone = found.from;
    }

    do(what) {
      const rounds = () => this.blocks.flatMap((block) => block.bars.filter((bar) => bar.name === 'rebalance'));
      const overlaps = () => this.blocks.flatMap((block) => block.overlaps());
      const actions = {
        in: () => this.scale(0.5), out: () => this.scale(2), left: () => this.pan(-0.25), right: () => this.pan(0.25),
        fit: () => { this.gone = undefined; this.zoom(0, this.length); },
        next: () => this.go(rounds(), 1), previous: () => this.go(rounds(), -1), overlap: () => this.go(overlaps(), 1),
        help,
      };
      actions[what]();
    }

    listen(figure) {
      const plot = figure.querySelector('.plot');
      const at = (event) => {
        const box = plot.getBoundingClientRect();
        return this.from + ((event.clientX - box.left) / box.width) * (this.until - this.from);
      };
      figure.addEventListener('wheel', (event) => {
        if (!event.ctrlKey && !event.metaKey && document.activeElement !== figure) return;
        event.preventDefault();
        if (event.shiftKey) this.pan(Math.sign(event.deltaY || event.deltaX) * 0.1);
        else this.scale(event.deltaY > 0 ? 1.25 : 0.8, at(event));
      }, { passive: false });
      figure.addEventListener('dblclick', () => this.do('fit'));
      figure.addEventListener('pointerdown', (event) => this.drag(figure, event, at));
      figure.addEventListener('pointermove', (event) => { if (!pinned) this.point(event, at(event)); });
      figure.addEventListener('pointerleave', () => { if (!pinned) tip.hidden = true; });
    }

    drag(figure, event, at) {
      if (event.button || event.clientX < figure.querySelector('.plot').getBoundingClientRect().left) return;
      const start = at(event), window_ = [this.from, this.until], brush = made('div', { class: 'brush' });
      const left = figure.getBoundingClientRect().left;
      const move = (moved) => {
        if (event.shiftKey) {
          const by = ((event.clientX - moved.clientX) / figure.querySelector('.plot').clientWidth) * (window_[1] - window_[0]);
          const held = Math.min(Math.max(-window_[0], by), this.length - window_[1]);
          this.zoom(window_[0] + held, window_[1] + held);
        } else if (Math.abs(moved.clientX - event.clientX) > DRAGGED_PX) {
          figure.append(brush);
          brush.style.left = `${Math.min(event.clientX, moved.clientX) - left}px`;
          brush.style.width = `${Math.abs(moved.clientX - event.clientX)}px`;
        }
      };
      const end = (ended) => {
        document.removeEventListener('pointermove', move);
        document.removeEventListener('pointerup', end);
        document.removeEventListener('pointercancel', end);
        brush.remove();
        if (ended.type === 'pointercancel' || event.shiftKey) return;
        if (Math.abs(ended.clientX - event.clientX) > DRAGGED_PX) {
          const stop = at(ended);
          this.zoom(Math.min(start, stop), Math.max(start, stop));
        } else {
          pinned = false;
          pinned = this.point(ended, start);
          this.pin(figure, ended.target.closest('.block'), ended.clientY, start);
        }
      };
      document.addEventListener('pointermove', move);
      document.addEventListener('pointerup', end);
      document.addEventListener('pointercancel', end);
    }

    pin(figure, element, y, ms) { // remember whose details are kept, for links
      const block = pinned && this.blocks.find((each) => each.element === element);
      this.pinned = block && {
        design: figure.closest('.run').dataset.design,
        block: this.blocks.filter((each) => figure.contains(each.element)).indexOf(block),
        y: Math.round(y - block.plot.getBoundingClientRect().top + block.top), ms: Math.round(ms),
      };
      remember(this);
    }

    showPinned({ design, block, y, ms }) {
      const run = all('.run', this.element).find((each) => each.dataset.design === design);
      const element = run && all('.block', run)[block];
      const shown = this.blocks.find((each) => each.element === element);
      if (!shown) return;
      run.scrollIntoView();
      const box = shown.plot.getBoundingClientRect();
      const clientX = box.left + ((ms - this.from) / (this.until - this.from)) * box.width;
      pinned = this.point({ target: element, clientX, clientY: box.top + y - shown.top }, ms);
      if (pinned) this.pinned = { design, block, y, ms };
    }

    point(event, ms) { // the details of what is under the pointer; whether there is anything
      const element = event.target.closest?.('.block');
      const block = this.blocks.find((each) => each.element === element);
      tip.hidden = true;
      if (!block) return false;
      const y = event.clientY - block.plot.getBoundingClientRect().top + block.top;
      const row = block.rows.find((each) => y >= each.y && y < each.y + each.height + 1);
      const seconds = (at) => ((at + this.zero) / 1000).toFixed(3);
      const bar = row && block.bars.filter((each) => each.y === row.y && each.from <= ms && each.until >= ms)
        .sort((one, other) => one.until - one.from - (other.until - other.from))[0];
      const hint = event.target.querySelector?.(':scope > title')?.textContent;
      const lines = [`${seconds(ms)} s`];
      if (bar) {
        lines.unshift(`${row.lane}: ${bar.name}`, `${row.what} from ${seconds(bar.from)} to ${seconds(bar.until)} s`,
          `for ${(bar.until - bar.from).toLocaleString('en')} ms`);
      } else if (hint) lines.unshift(hint);
      else if (row) lines.unshift(`${row.lane}: ${row.what === 'commits' ? 'commits' : 'nobody'}`);
      else return false;
      tip.textContent = lines.join('\n');
      tip.hidden = false;
      const box = tip.getBoundingClientRect();
      tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
      tip.style.top = `${Math.max(4, Math.min(event.clientY + 16, innerHeight - box.height - 8))}px`;
      return true;
    }
  }

  // -- links that keep what one sees -------------------------------------------------------------------------------
  const found = all('.lanes').map((element) => new Lanes(element));
  const ofScenario = (anchor) => found.find((each) => each.anchor === anchor);
  let timer = 0;

  function remember(lanes) {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const kept = new URLSearchParams();
      if (!lanes.whole) {
        kept.set('from', ((lanes.from + lanes.zero) / 1000).toFixed(3));
        kept.set('until', ((lanes.until + lanes.zero) / 1000).toFixed(3));
      }
      if (lanes.partition.value) kept.set('partition', lanes.partition.value);
      if (lanes.member.value) kept.set('member', lanes.member.value);
      if (lanes.element.querySelector('.of-members').checked) kept.set('by', 'member');
      if (pinned && lanes.pinned) kept.set('pin', ['block', 'y', 'ms', 'design'].map((each) => lanes.pinned[each]).join(' '));
      history.replaceState(null, '', `#${encodeURIComponent(lanes.anchor)}${kept.size ? `?${kept}` : ''}`);
    }, 150);
  }

  function restore() {
    const [anchor, query] = location.hash.slice(1).split('?');
    const lanes = query && ofScenario(decodeURIComponent(anchor));
    if (!lanes) return;
    const kept = new URLSearchParams(query);
    see(lanes, { from: kept.get('from'), until: kept.get('until'), partition: kept.get('partition'),
      member: kept.get('member'), by: kept.get('by') });
    lanes.element.scrollIntoView();
    const [block, y, ms, ...design] = (kept.get('pin') || '').split(' ');
    if (design.length) lanes.showPinned({ block: Number(block), y: Number(y), ms: Number(ms), design: design.join(' ') });
  }

  function see(lanes, { from, until, partition, member, by }) {
    const chosen = (select, value) => {
      select.value = [...select.options].some((each) => each.value === value) ? value : '';
    };
    chosen(lanes.partition, partition || '');
    chosen(lanes.member, member || '');
    lanes.element.querySelector(by === 'member' ? '.of-members' : '.by').checked = true;
    lanes.filter();
    const [low, high] = [from, until].map((each) => Number(each) * 1000 - lanes.zero);
    if (from && until && low < high) lanes.zoom(low, high);
    else lanes.zoom(0, lanes.length);
  }

  for (const link of all('a.see')) {
    link.addEventListener('click', (event) => {
      const lanes = ofScenario(link.dataset.scenario);
      if (!lanes) return;
      event.preventDefault();
      see(lanes, link.dataset);
      document.getElementById(decodeURIComponent(link.hash.slice(1)))?.scrollIntoView();
    });
  }
  addEventListener('hashchange', restore);
  addEventListener('resize', () => found.forEach((each) => { if (!each.whole) each.show(); }));

  // -- keys --------------------------------------------------------------------------------------------------------
  function current() {
    const focused = document.activeElement?.closest('.scenario');
    const middle = innerHeight / 2;
    const distance = (each) => {
      const box = each.section.getBoundingClientRect(); // the lanes themselves may not have been laid out yet
      return box.top <= middle && box.bottom >= middle ? 0 : Math.min(Math.abs(box.top - middle), Math.abs(box.bottom - middle));
    };
    return (focused && ofScenario(focused.dataset.scenario)) ||
      found.reduce((best, each) => (!best || distance(each) < distance(best) ? each : best), null);
  }

  function help() {
    let dialog = document.querySelector('dialog');
    if (!dialog) {
      dialog = made('dialog', { 'aria-labelledby': 'keys' });
      const list = made('dl');
      for (const [key, what] of KEYS) list.append(made('dt', {}, key), made('dd', {}, what));
      const close = made('button', { type: 'button' }, 'Close');
      close.addEventListener('click', () => dialog.close());
      dialog.append(made('h2', { id: 'keys' }, 'Keys'), list, close);
      document.body.append(dialog);
    }
    dialog.showModal();
  }

  const BY_KEY = { '+': 'in', '=': 'in', '-': 'out', '0': 'fit', j: 'next', k: 'previous', o: 'overlap', '?': 'help' };
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.('input[type=text], select, textarea')) return;
    if (event.key === 'Escape') {
      pinned = false;
      tip.hidden = true;
      for (const lanes of found) if (lanes.pinned) { lanes.pinned = null; remember(lanes); }
      return;
    }
    const arrows = document.activeElement?.classList.contains('figure');
    const what = BY_KEY[event.key] || (arrows && { ArrowLeft: 'left', ArrowRight: 'right' }[event.key]);
    const lanes = what && !document.querySelector('dialog[open]') && current();
    if (!lanes) return;
    event.preventDefault();
    lanes.do(what);
  });

  // -- tables that sort and can be copied ----------------------------------------------------------------------------
  const cells = (row) => [...row.cells].map((cell) => {
    const below = all('.ratio', cell).map((each) => each.textContent);
    const first = [...cell.childNodes].filter((each) => !each.classList?.contains('ratio')).map((each) => each.textContent);
    return [first.join('').trim().replace(/\s+/g, ' '), ...below].join(' ').trim();
  });

  function copy(text, button) {
    const said = button.textContent;
    const done = () => { button.textContent = 'Copied'; setTimeout(() => { button.textContent = said; }, 1200); };
    const byHand = () => {
      const area = made('textarea', { 'aria-hidden': 'true' });
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand('copy');
      area.remove();
      done();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, byHand);
    else byHand();
  }

  const markdown = (rows) => {
    const line = (row) => `| ${row.map((cell) => cell.replace(/[\\|]/g, '\\$&')).join(' | ')} |`;
    return [line(rows[0]), `|${' --- |'.repeat(rows[0].length)}`, ...rows.slice(1).map(line)].join('\n');
  };

  for (const table of all('table.data')) {
    const bar = made('div', { class: 'tools js', role: 'group', 'aria-label': `Copy ${table.caption.textContent}` });
    const forms = { 'Copy as TSV': (rows) => rows.map((row) => row.join('\t')).join('\n'), 'Copy as Markdown': markdown };
    for (const [label, form] of Object.entries(forms)) {
      const button = made('button', { type: 'button' }, label);
      button.addEventListener('click', () => copy(form([...table.rows].map(cells)), button));
      bar.append(button);
    }
    table.closest('.scroll').before(bar);
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = made('button', { type: 'button', class: 'sort' }, heading.textContent);
      heading.replaceChildren(button);
      button.addEventListener('click', () => sort(table, column, heading));
    });
  }

  function sort(table, column, heading) {
    const down = heading.getAttribute('aria-sort') === 'ascending';
    for (const each of table.tHead.rows[0].cells) each.removeAttribute('aria-sort');
    heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    const body = table.tBodies[0];
    let name = '';
    for (const row of body.rows) { // rows that share a name have it only once
      name = row.cells[0].textContent.trim() || name;
      if (!row.cells[0].textContent.trim()) row.cells[0].textContent = name;
    }
    const value = (row) => {
      const text = cells(row)[column];
      const number = parseFloat(text.replace(/,/g, ''));
      return Number.isNaN(number) ? text : number;
    };
    const compared = (one, other) => (typeof one === typeof other
      ? (typeof one === 'number' ? one - other : one.localeCompare(other)) : typeof one === 'number' ? -1 : 1);
    const rows = [...body.rows].sort((one, other) => compared(value(one), value(other)) * (down ? -1 : 1));
    body.append(...rows);
  }

  for (const button of all('[data-copies]')) {
    button.addEventListener('click', () => copy(document.getElementById(button.dataset.copies).textContent, button));
  }
  restore();
})();
