// One rebalance as a sequence of messages, chosen by a click on it in the lanes, by a key, or from the list below them.
function openSequence(run, bar) { // the one that is most nearly at the time of a rebalance's bar; whether there is any
  const found = run ? all('.sequence', run) : [];
  const alike = (each) => { // the share of both times together that they have in common
    const from = Number(each.dataset.from), until = Number(each.dataset.until);
    const common = Math.min(until, bar.until) - Math.max(from, bar.from) + 1;
    return common / (Math.max(until, bar.until) - Math.min(from, bar.from) + 1);
  };
  const chosen = found.reduce((best, each) => (!best || alike(each) > alike(best) ? each : best), null);
  if (!chosen || alike(chosen) <= 0) return false;
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
      if (each.open) lanes.rebalance = each.id;
      else if (lanes.rebalance === each.id) lanes.rebalance = null;
      remember(lanes);
    });
  }
}

const rebalancesOf = (lanes, run) => lanes.blocks.filter((each) => run.contains(each.element))
  .flatMap((block) => block.rebalances);

function showSequence(lanes) { // of the rebalance that was gone to, else of the first one in the window
  const focused = document.activeElement?.closest('.run');
  const runs = [...(focused && lanes.element.contains(focused) ? [focused] : []), ...all('.run', lanes.element)];
  const isInWindow = (bar) => bar.until >= lanes.from && bar.from <= lanes.until;
  const isGoneTo = (bar) => lanes.gone === undefined || Math.abs(bar.from - lanes.gone) <= 1;
  for (const wanted of [(bar) => isInWindow(bar) && isGoneTo(bar), isInWindow]) {
    for (const run of runs) {
      const bar = rebalancesOf(lanes, run).find(wanted);
      if (bar && openSequence(run, bar)) return;
    }
  }
}

function chooseRebalance(lanes, figure, event, ms) { // whether a rebalance of the group that has messages is there
  const block = lanes.blocks.find((each) => each.element === event.target.closest('.block'));
  if (!block) return false;
  const box = block.plot.getBoundingClientRect(), y = event.clientY - box.top + block.top;
  const row = block.rows.find((each) => each.what === 'rebalances' && y >= each.y && y < each.y + each.height + 1);
  const near = (3 * (lanes.until - lanes.from)) / box.width; // a short one is a few pixels wide
  const bar = row && block.bars.find((each) => each.row === row && each.from - near <= ms && each.until + near >= ms);
  return Boolean(bar) && openSequence(figure.closest('.run'), bar);
}
