// Raw events around a moment whose details are kept: those of its member and its partition that are nearest to it.
const RAW_SHOWN = 8;
const OF_CHAINS = /^(fault_|process_ended|group_|authority_|partitions_|rebalance_started|fetch_refused|leader_changed)/;

async function eventsOf(run) { // [milliseconds from the left end, who, partitions, text], see sections/raw_events.py
  if (!run.unpacked) {
    const bytes = Uint8Array.from(atob(run.dataset.events), (letter) => letter.charCodeAt(0));
    const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    run.unpacked = JSON.parse(await new Response(text).text());
  }
  return run.unpacked;
}

async function addRaw(run, lanes, ms, about, event) {
  if (!run?.dataset.events || !globalThis.DecompressionStream) return;
  const isMember = (who) => !about.member || ['several', 'the group'].includes(about.member)
    || who.split('.')[0] === about.member.split('.')[0]; // m1.2 is m1 restarted
  const isAbout = ([, who, partitions]) => (about.partition && partitions.length
    ? partitions.some((each) => `/${about.partition}`.endsWith(`/${each}`)) : isMember(who));
  const isOfChain = ([, , , text]) => !about.moments?.length || OF_CHAINS.test(text);
  const found = (await eventsOf(run)).filter((each) => isAbout(each) && isOfChain(each));
  if (pinned !== about) return; // closed meanwhile
  const moments = about.moments?.length ? about.moments : [ms]; // of a chain of causes, those of its events
  const distance = ([at]) => Math.min(...moments.map((each) => Math.abs(at - each)));
  const near = [...found].sort((one, other) => distance(one) - distance(other)).slice(0, RAW_SHOWN);
  const list = made('ol', { class: 'raw' });
  for (const [at, who, , text] of near.sort((one, other) => one[0] - other[0])) {
    const item = made('li');
    item.append(made('span', { class: 'at' }, `${((at + lanes.zero) / 1000).toFixed(3)} ${who} `), text);
    list.append(item);
  }
  list.append(made('li', { class: 'faint' }, `every event: rebalance-lab trace ${run.dataset.path} --to jsonl`));
  tip.append(list);
  dock(event);
}
