// Two runs of a scenario stand opposite each other on one axis, which two is chosen; the others are folded below them.
const SIDES = ['left', 'right'];

function choosing(lanes) { // what is chosen, by the columns' anchors
  const shown = all('.run.chosen', lanes.element);
  lanes.chosen = { left: shown[0]?.dataset.column, right: shown[1]?.dataset.column };
  const first = { ...lanes.chosen }, runs = all('.run[data-path]', lanes.element);
  const selects = SIDES.map((side) => lanes.element.querySelector(`select.${side}`));
  const order = selects[0] ? [...selects[0].options].map(({ value }) => value) : runs.map((run) => run.dataset.column);
  const place = (column) => runs.find((run) => run.dataset.column === column);
  lanes.isShown = (run) => !('open' in run) || run.open;
  lanes.choose = (left = first.left, right = first.right) => { // of what is not there, or there already, nothing changes
    if (!selects[0] || !place(left) || !place(right) || left === right) return;
    lanes.chosen = { left, right };
    SIDES.forEach((side, n) => { selects[n].value = lanes.chosen[side]; });
    for (const column of [left, right, ...order.filter((each) => each !== left && each !== right)]) {
      const run = place(column), isChosen = column === left || column === right;
      run.classList.toggle('chosen', isChosen);
      run.open = isChosen;
      run.parentElement.append(run);
    }
    lanes.isAtFirst = left === first.left && right === first.right;
    lanes.show();
  };
  lanes.isAtFirst = true;
  lanes.unfold = (run) => { // opposite the one on the right, or on the left if it stands there
    if (run.classList.contains('chosen') || !runs.includes(run) || !selects[0]) return;
    lanes.choose(run.dataset.column, lanes.chosen.right);
  };
  selects.forEach((select, n) => select?.addEventListener('change', (event) => {
    event.stopPropagation(); // it filters nothing
    const other = lanes.chosen[SIDES[1 - n]];
    const [one, two] = [select.value, other === select.value ? lanes.chosen[SIDES[n]] : other]; // or they change places
    lanes.choose(...(n ? [two, one] : [one, two]));
    remember(lanes);
  }));
  for (const run of lanes.runs) { // also told of each that is open from the beginning: then nothing has been painted anew yet
    if ('open' in run) run.addEventListener('toggle', () => { if (run.open && lanes.made) lanes.paint(); });
  }
}

function nextOverlap(lanes, overlaps) { // of those that are shown, with all of them in sight
  if (lanes.go(overlaps, 1)) {
    lanes.element.querySelector('.runs').scrollIntoView({ block: 'nearest' });
    return;
  }
  const folded = lanes.runs.filter((run) => !lanes.isShown(run) && lanes.blocks.some((block) => block.run === run && block.overlaps.length));
  const others = folded.map((run) => run.dataset.name).join(', ');
  say(lanes, `no overlap here${others ? `; there are some in ${others}` : ''}`);
}

function say(lanes, text) {
  lanes.element.querySelector('.said').textContent = text;
}

function tellFilter(lanes) { // what is shown of the run, if it is not all of it
  const { partition, member } = lanes, seconds = (ms) => ((ms + lanes.zero) / 1000).toFixed(2);
  const named = partition.selectedOptions[0].textContent;
  const owners = partition.value.startsWith('*') ? '' : ownersOf(lanes, partition.value);
  const words = [partition.value.startsWith('*') ? `${named} partitions` : partition.value + owners, member.value].filter(Boolean);
  lanes.element.querySelector('.filtered').hidden = lanes.whole && !words.length;
  lanes.element.querySelector('.what').textContent = `showing ${words.join(', ')}`;
  lanes.element.querySelector('.window').textContent = lanes.whole ? '' : `${seconds(lanes.from)} to ${seconds(lanes.until)} s`;
  say(lanes, '');
}

function ownersOf(lanes, partition) { // whose a partition was at 0 in each of the runs opposite each other, if not the same one's
  const shown = partition ? all('.run.chosen', lanes.element) : [];
  const owners = shown.map((run) => lanes.blocks.find((block) => block.run === run && block.lanes().has(partition))?.ownerAt(partition, -lanes.zero));
  if (new Set(owners).size < 2) return '';
  return ` (at 0 s owned ${shown.map((run, n) => `by ${owners[n] ?? 'nobody'} in ${run.dataset.name}`).join(', ')})`;
}
