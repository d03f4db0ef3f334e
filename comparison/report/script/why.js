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

function nextWhy(lanes) { // the next stretch of the runs that are shown
  const whys = all('.run[data-path]', lanes.element).filter(lanes.isShown).flatMap(whysOf);
  const found = lanes.go(whys.map(({ from, until }) => ({ from, until })), 1);
  if (!found) return say(lanes, 'nothing here that is hatched, red or idle for long');
  const why = whys.find(({ from }) => Math.abs(from - found.from) <= 1);
  release();
  pinned = { member: '', partition: why.lanes[0], moments: why.at };
  tip.append(made('p', {}, `${why.run.dataset.name}: ${why.lanes.join(', ')}`));
  openPinned();
  tellWhy(lanes, [why]);
  why.run.querySelector('.figure').scrollIntoView({ block: 'nearest' });
  const block = lanes.blocks.find(({ run, element }) => run === why.run && element.classList.contains('partitions'));
  const clientY = block.plot.getBoundingClientRect().top + (block.lanes().get(why.lanes[0]) ?? 0) - block.top;
  dock({ clientY });
  return addRaw(why.run, lanes, (why.from + why.until) / 2, pinned, { clientY });
}
