// Tables that sort and can be copied.
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

for (const table of all('table.data')) whenNear(table.closest('.scenario') ?? table, () => equip(table));

function equip(table) {
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
