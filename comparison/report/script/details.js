// Details of what is under the pointer, kept after a click.
const tip = document.getElementById('tip');
let pinned = null;

function pin(lanes, figure, element, y, ms) { // remember whose details are kept, for links
  const block = pinned && lanes.blocks.find((each) => each.element === element);
  lanes.pinned = block && {
    column: figure.closest('.run').dataset.column,
    block: lanes.blocks.filter((each) => figure.contains(each.element)).indexOf(block),
    y: Math.round(y - block.plot.getBoundingClientRect().top + block.top), ms: Math.round(ms),
  };
  remember(lanes);
}

function showPinned(lanes, { column, block, y, ms }) {
  const run = all('.run', lanes.element).find((each) => each.dataset.column === column);
  const element = run && all('.block', run)[block];
  const shown = lanes.blocks.find((each) => each.element === element);
  if (!shown) return;
  if ('open' in run) run.open = true;
  run.scrollIntoView();
  const box = shown.plot.getBoundingClientRect();
  const clientX = box.left + ((ms - lanes.from) / (lanes.until - lanes.from)) * box.width;
  keep(lanes, element, { target: element, clientX, clientY: box.top + y - shown.top }, ms);
  if (pinned) lanes.pinned = { column, block, y, ms };
}

function point(lanes, event, ms) { // the details of what is under the pointer; what that is, or null
  const element = event.target.closest?.('.block');
  const block = lanes.blocks.find((each) => each.element === element);
  unpin();
  if (!block) return null;
  const y = event.clientY - block.plot.getBoundingClientRect().top + block.top;
  const row = block.rows.find((each) => y >= each.y && y < each.y + each.height + 1);
  const seconds = (at) => ((at + lanes.zero) / 1000).toFixed(3);
  const bar = row && block.bars.filter((each) => each.row === row && each.from <= ms && each.until >= ms)
    .sort((one, other) => one.until - one.from - (other.until - other.from))[0];
  const sign = block.signAt(event);
  const hint = (sign ?? event.target).querySelector?.(':scope > title')?.textContent;
  const values = block.values(ms, y);
  const text = [...values, `${seconds(ms)} s`];
  if (sign) text.unshift(row ? `${row.lane}: ${hint}` : hint);
  else if (bar) {
    text.unshift(`${row.lane}: ${bar.name}`, `${row.what} from ${seconds(bar.from)} to ${seconds(bar.until)} s`,
      `for ${(bar.until - bar.from).toLocaleString('en')} ms`);
  } else if (hint) text.unshift(hint);
  else if (row && !values.length) text.unshift(`${row.lane}: ${row.what === 'commits' ? 'commits' : 'nobody'}`);
  else if (!values.length) return null;
  tip.append(made('p', {}, text.join('\n')));
  tip.hidden = false;
  place(event);
  const isPartition = block.element.classList.contains('partitions');
  return { member: isPartition ? !sign && bar?.name : row?.lane, partition: isPartition ? row?.lane : '', isCommit: Boolean(sign) };
}

function place({ clientX, clientY }) { // above the pointer, so that what follows is seen; below it where there is no room
  const box = tip.getBoundingClientRect(), above = clientY - box.height - 14;
  tip.style.left = `${Math.max(4, Math.min(clientX + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${above > 4 ? above : clientY + 20}px`;
}

function dock({ clientY }) { // kept details are at the foot of the screen; the page has room for them behind its end
  const box = tip.getBoundingClientRect(), room = 40;
  document.body.style.paddingBottom = `${box.height + 24}px`;
  if (clientY > innerHeight - box.height - room) scrollBy(0, clientY - (innerHeight - box.height - room));
}

function unpin() {
  tip.hidden = true;
  tip.classList.remove('pinned');
  document.body.style.paddingBottom = '';
  tip.replaceChildren();
}

function keep(lanes, figure, event, ms) { // the details under the pointer, with the raw events around them
  pinned = null;
  pinned = point(lanes, event, ms);
  if (!pinned) return;
  openPinned();
  const block = lanes.blocks.find(({ element }) => element === event.target.closest('.block'));
  const y = event.clientY - block.plot.getBoundingClientRect().top + block.top;
  if (block.element.classList.contains('partitions')) pinned.partition ||= block.laneAt(y);
  const drawn = figure.closest('.run'), run = runBehind(lanes, drawn, block, y);
  if (run && run !== drawn) pinned.member = ''; // a chart is of the whole group
  const whys = run ? whysAt(lanes, run, pinned, ms) : [];
  if (whys.length) {
    if (!pinned.member && !pinned.isCommit) pinned.moments = whys.flatMap(({ at }) => at); // else the events around what was clicked
    tellWhy(lanes, whys);
  } else if (event.target.matches?.('.gap, .gapped, .both')) {
    tip.append(made('p', { class: 'told' }, 'Why is not told here: the stretch is one of the shortest.'));
  }
  dock(event);
  addRaw(run, lanes, ms, pinned, event);
}

function openPinned() {
  tip.hidden = false;
  tip.classList.add('pinned');
  const close = made('button', { type: 'button', class: 'close', 'aria-label': 'Close the details' }, '×');
  close.addEventListener('click', release);
  tip.prepend(close);
}

function release() { // close the details, and forget them in the address
  pinned = null;
  unpin();
  for (const lanes of scenarios) if (lanes.pinned) { lanes.pinned = null; remember(lanes); }
}

function keepMiddle(lanes, figure) { // for the keyboard: at the middle of the window, in the first lane that is shown
  const block = lanes.blocks.find((each) => figure.contains(each.element) && each.lanes().size && each.plot.clientWidth
    && (each.element.classList.contains('partitions') || each.element.classList.contains('members')));
  const row = block?.rows.find((each) => each.y >= block.top);
  if (!row) return;
  const box = block.plot.getBoundingClientRect(), ms = (lanes.from + lanes.until) / 2;
  const place = { target: block.element, clientX: box.left + box.width / 2, clientY: box.top + row.y - block.top + 1 };
  keep(lanes, figure, place, ms);
  pin(lanes, figure, block.element, place.clientY, ms);
}
