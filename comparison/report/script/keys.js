// Keys, and the list of them.
const KEYS = [
  ['+ and −', 'zoom in and out (or the wheel, with Ctrl, or after a click on the lanes)'],
  ['← and →', 'earlier and later (or drag with Shift)'],
  ['drag', 'zoom to what is marked'],
  ['0 or double click', 'the whole run'],
  ['j and k', 'next and previous rebalance'],
  ['s', 'the messages of that rebalance (or a click on it)'],
  ['o', 'next overlap in the designs that are shown'],
  ['w', 'why: the stretch at the middle of the window that is hatched, red or idle, then the next one in it, with its causes'],
  ['x', 'clear what is filtered and zoomed'],
  ['click', 'keep the details of what is under the pointer, and why it is so; Escape closes them'],
  ['Enter', 'the details at the middle of the first lane shown (choose it by its partition or member)'],
  ['?', 'these keys'],
];

function current() {
  const focused = document.activeElement?.closest('.scenario');
  const middle = innerHeight / 2;
  const distance = (each) => {
    const box = each.section.getBoundingClientRect(); // the lanes themselves may not have been laid out yet
    return box.top <= middle && box.bottom >= middle ? 0 : Math.min(Math.abs(box.top - middle), Math.abs(box.bottom - middle));
  };
  return (focused && ofScenario(focused.dataset.scenario)) ||
    scenarios.reduce((best, each) => (!best || distance(each) < distance(best) ? each : best), null);
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

const BY_KEY = { '+': 'in', '=': 'in', '-': 'out', '0': 'fit', j: 'next', k: 'previous', o: 'overlap', s: 'sequence', w: 'why', x: 'clear', '?': 'help' };
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.('input[type=text], select, textarea')) return;
  if (event.key === 'Escape') {
    release();
    return;
  }
  const arrows = document.activeElement?.classList.contains('figure');
  if (event.key === 'Enter' && arrows) {
    keepMiddle(ofScenario(document.activeElement.closest('.scenario').dataset.scenario), document.activeElement);
    return;
  }
  const what = BY_KEY[event.key] || (arrows && { ArrowLeft: 'left', ArrowRight: 'right' }[event.key]);
  const lanes = what && !document.querySelector('dialog[open]') && current();
  if (!lanes) return;
  event.preventDefault();
  lanes.do(what);
});
