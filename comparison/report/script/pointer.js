// Wheel and pointer over a scenario's lanes: zoom, move, mark a window, and ask for details.
const DRAGGED_PX = 4;

function listen(lanes, figure) {
  const plot = figure.querySelector('.plot');
  const at = (event) => {
    const box = plot.getBoundingClientRect();
    return lanes.from + ((event.clientX - box.left) / box.width) * (lanes.until - lanes.from);
  };
  figure.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== figure) return;
    event.preventDefault();
    if (event.shiftKey) lanes.pan(Math.sign(event.deltaY || event.deltaX) * 0.1);
    else lanes.scale(event.deltaY > 0 ? 1.25 : 0.8, at(event));
  }, { passive: false });
  figure.addEventListener('dblclick', () => lanes.do('fit'));
  figure.addEventListener('pointerdown', (event) => drag(lanes, figure, event, at));
  figure.addEventListener('pointermove', (event) => {
    hairline(lanes, at(event));
    if (!pinned) point(lanes, event, at(event));
  });
  figure.addEventListener('pointerleave', () => {
    for (const line of all('.cursor', lanes.element)) line.remove();
    if (!pinned) unpin();
  });
}

function hairline(lanes, ms) { // the same moment in the runs that are opposite each other
  const share = (ms - lanes.from) / (lanes.until - lanes.from);
  for (const figure of all('.run.chosen > .figure', lanes.element)) {
    const box = figure.querySelector('.axis .plot').getBoundingClientRect();
    const line = figure.querySelector('.cursor') ?? figure.appendChild(made('div', { class: 'cursor' }));
    line.hidden = share < 0 || share > 1;
    line.style.left = `${box.left - figure.getBoundingClientRect().left + share * box.width}px`;
  }
}

function drag(lanes, figure, event, at) {
  if (event.button || event.clientX < figure.querySelector('.plot').getBoundingClientRect().left) return;
  const start = at(event), brush = made('div', { class: 'brush' });
  const left = figure.getBoundingClientRect().left;
  let last = event.clientX;
  const move = (moved) => {
    if (event.shiftKey) {
      lanes.pan((last - moved.clientX) / figure.querySelector('.plot').clientWidth);
      last = moved.clientX;
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
      lanes.zoom(Math.min(start, stop), Math.max(start, stop));
    } else if (!chooseRebalance(lanes, figure, ended, start)) {
      keep(lanes, figure, ended, start);
      pin(lanes, figure, ended.target.closest('.block'), ended.clientY, start);
    }
  };
  document.addEventListener('pointermove', move);
  document.addEventListener('pointerup', end);
  document.addEventListener('pointercancel', end);
}
