// One rebalance as a sequence of messages, chosen by a click on it in the lanes, by a key, or from the list below them.
function openSequence(run, ms) { // the one that lasts at that moment, else the next one before it; whether there is any
  const found = all('.sequence', run);
  const lasting = found.filter((each) => Number(each.dataset.from) <= ms && Number(each.dataset.until) >= ms);
  const chosen = lasting.at(-1) || found.findLast((each) => Number(each.dataset.from) <= ms);
  if (!chosen) return false;
  for (const each of found) each.open = each === chosen;
  tell(chosen);
  chosen.querySelector('summary').focus({ preventScroll: true });
  return true;
}

function tell(sequence) {
  if (!sequence?.matches('.sequence')) return;
  sequence.open = true;
  sequence.closest('.sequences').open = true;
  sequence.scrollIntoView();
}

for (const lanes of scenarios) { // a link keeps which one is open
  for (const each of all('.sequence', lanes.element)) {
    each.addEventListener('toggle', () => {
      if (each.open) lanes.told = each.id;
      else if (lanes.told === each.id) lanes.told = null;
      remember(lanes);
    });
  }
}

function showSequence(lanes) { // of the rebalance that was gone to, else of the first one in the window
  const runs = all('.run', lanes.element);
  const focused = document.activeElement?.closest('.run');
  const inWindow = (run) => lanes.gone ?? all('.sequence', run).map((each) => Number(each.dataset.from))
    .find((from) => from >= lanes.from && from < lanes.until);
  const at = (run) => inWindow(run) ?? Infinity;
  const lasts = (run) => all('.sequence', run)
    .some((each) => Number(each.dataset.from) <= at(run) + 1 && Number(each.dataset.until) >= at(run) - 1);
  const run = [focused, ...runs].find((each) => each && lanes.element.contains(each) && lasts(each));
  if (run) openSequence(run, at(run) + 1);
}

function chooseRebalance(lanes, figure, event, ms) { // whether a rebalance of the group that has messages is there
  const block = lanes.blocks.find((each) => each.element === event.target.closest('.block'));
  if (!block) return false;
  const box = block.plot.getBoundingClientRect(), y = event.clientY - box.top + block.top;
  const row = block.rows.find((each) => each.what === 'rebalances' && y >= each.y && y < each.y + each.height + 1);
  const near = (3 * (lanes.until - lanes.from)) / box.width; // a short one is a few pixels wide
  const bar = row && block.bars.find((each) => each.y === row.y && each.from - near <= ms && each.until + near >= ms);
  return Boolean(bar) && openSequence(figure.closest('.run'), Math.min(Math.max(ms, bar.from), bar.until));
}
