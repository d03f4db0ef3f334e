// Links that keep what one sees.
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
    if (!lanes.isAtFirst) for (const side of SIDES) kept.set(side, lanes.chosen[side]);
    if (lanes.rebalance) kept.set('rebalance', lanes.rebalance);
    if (pinned && lanes.pinned) kept.set('pin', ['block', 'y', 'ms', 'column'].map((each) => lanes.pinned[each]).join(' '));
    history.replaceState(null, '', `#${encodeURIComponent(lanes.anchor)}${kept.size ? `?${kept}` : ''}`);
  }, 150);
}

function restore() {
  const [anchor, query] = location.hash.slice(1).split('?');
  const lanes = query && ofScenario(decodeURIComponent(anchor));
  if (!lanes) return;
  const kept = new URLSearchParams(query);
  lanes.choose(kept.get('left'), kept.get('right'));
  see(lanes, { from: kept.get('from'), until: kept.get('until'), partition: kept.get('partition'),
    member: kept.get('member'), by: kept.get('by') });
  lanes.element.scrollIntoView();
  tell(document.getElementById(kept.get('rebalance') || ''));
  const [block, y, ms, column] = (kept.get('pin') || '').split(' ');
  if (column) showPinned(lanes, { block: Number(block), y: Number(y), ms: Number(ms), column });
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

document.addEventListener('click', (event) => { // one for all of them: there may be thousands
  const link = event.target.closest?.('a.see');
  const lanes = link && ofScenario(link.dataset.scenario);
  if (!lanes || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const run = document.getElementById(decodeURIComponent(link.hash.slice(1)));
  if (run) lanes.unfold(run);
  see(lanes, link.dataset);
  run?.scrollIntoView();
});
addEventListener('hashchange', restore);
addEventListener('resize', () => scenarios.filter((each) => each.made).forEach((each) => { each.whole ? each.crowd() : each.show(); }));
