// Why a stretch is hatched, red or idle: the sentences of the table below the lanes that are about it.
const WHYS_SHOWN = 2, AROUND_MS = 100;

const whysOf = (run) => all('tr[data-why]', run).map((row) => (
  { ...JSON.parse(row.dataset.why), run, text: row.cells[2].textContent }));

function whysAt(lanes, run, about, ms) { // of a partition, or of a member that they speak of, or of all
  const isAbout = ({ lanes: partitions, text }) => (about.partition ? partitions.includes(about.partition)
    : !about.member || text.includes(`${about.member} `));
  const found = whysOf(run).filter((each) => each.from <= ms && ms <= each.until && isAbout(each));
  return found.sort((one, other) => one.until - one.from - (other.until - other.from)).slice(0, WHYS_SHOWN);
}

function runBehind(lanes, run, block, y) { // of a chart of all designs, the run whose strip or curves are at a height
  if (run.dataset.path !== undefined) return run;
  const row = block.rows.find((each) => y >= each.y && y < each.y + each.height + 1);
  const curve = block.curves.find(({ above, below }) => above <= y && y <= below);
  const isOf = ({ dataset }) => row?.lane === dataset.name || curve?.name.startsWith(`${dataset.name}: `);
  return all('.run[data-path]', lanes.element).find(isOf);
}

function tellWhy(lanes, whys) { // their sentences, with buttons that lead to their events
  for (const { text, at } of whys) {
    const told = made('p', { class: 'told' }, text), row = made('p', { class: 'moments' }, 'Its events: ');
    for (const ms of at) {
      const button = made('button', { type: 'button' }, `${((ms + lanes.zero) / 1000).toFixed(3)} s`);
      button.addEventListener('click', () => lanes.zoom(ms - AROUND_MS, ms + AROUND_MS));
      row.append(button, ' ');
    }
    tip.append(told, ...(at.length ? [row] : []));
  }
}

function shownWhys(lanes, { from, until }) { // of the partitions that are shown, in a window, in the order of time
  const partitions = lanes.blocks.filter(({ run, element }) => lanes.isShown(run) && element.classList.contains('partitions'));
  const found = partitions.flatMap((block) => {
    const [top, foot] = block.span(lanes.partition.value), tops = block.lanes();
    const isShown = (name) => top <= tops.get(name) && tops.get(name) < foot;
    return whysOf(block.run).map((why) => ({ ...why, block, lanes: why.lanes.filter(isShown) }));
  });
  return found.filter((each) => each.lanes.length && each.from < until && from < each.until)
    .sort((one, other) => one.from - other.from);
}

function nextWhy(lanes) { // the next stretch in the window that was chosen before the first, which is at its middle
  const { from, until } = lanes, { went } = lanes;
  const isNext = went && went.from === from && went.until === until && went.filter === lanes.partition.value;
  const within = isNext ? went.within : { from, until }, whys = shownWhys(lanes, within);
  if (!whys.length) return say(lanes, 'nothing here that is hatched, red or idle for long');
  const middle = (from + until) / 2, away = (each) => Math.max(each.from - middle, middle - each.until, 0);
  const nearest = () => whys.reduce((best, each, n) => (away(each) < away(whys[best]) ? n : best), 0);
  const at = isNext ? (went.at + 1) % whys.length : nearest(), why = whys[at];
  lanes.go([why], 1);
  lanes.went = { from: lanes.from, until: lanes.until, filter: lanes.partition.value, within, at };
  release();
  pinned = { member: '', partition: why.lanes[0], moments: why.at };
  tip.append(made('p', {}, `${why.run.dataset.name}: ${why.lanes.join(', ')}`));
  openPinned();
  tellWhy(lanes, [why]);
  why.run.querySelector('.figure').scrollIntoView({ block: 'nearest' });
  const { block } = why;
  const clientY = block.plot.getBoundingClientRect().top + (block.lanes().get(why.lanes[0]) ?? 0) - block.top;
  dock({ clientY });
  return addRaw(why.run, lanes, (why.from + why.until) / 2, pinned, { clientY });
}
