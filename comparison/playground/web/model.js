// The game as the page knows it: a snapshot, and each increment applied to it. The same in Python, and compared with
// it by a test: comparison/playground/applying.py.

export const natural = new Intl.Collator("en", { numeric: true }).compare;

function replaced(list, item, key, order) {
  const at = list.findIndex((each) => each[key] === item[key]);
  if (at >= 0) list[at] = item;
  else {
    const before = list.findLastIndex((each) => order(each[key], item[key]) < 0);  // mostly the last one
    list.splice(before + 1, 0, item);
  }
}

const bySize = (one, other) => one - other;
const byText = (one, other) => (one < other ? -1 : Number(one > other));

const CHANGES = {
  member: (group, change) => replaced(group.members, change.member, "name", natural),
  partition: (group, change) => replaced(group.partitions, change.partition, "name", natural),
  counters: (group, change) => { group.counters = change.counters; },
  znodes: (group, change) => {
    for (const each of change.put) replaced(group.znodes, each, "path", byText);
    const gone = new Set(change.gone);
    if (gone.size) group.znodes = group.znodes.filter((each) => !gone.has(each.path));
  },
  coordinator: (group, change) => { group.coordinator = change.coordinator; },
  waiting: (group, change) => { group.waiting = change.waiting; },
  said: (group, change, limits) => {
    group.feed.push(change.sentence);
    group.feed.splice(0, group.feed.length - limits.feed);
  },
  interval: (group, change) => replaced(group.intervals, change.interval, "id", bySize),
  rate: (group, change) => { group.rate = change.rate; },
};

// Changes the snapshot. False if increments are missing between the two.
export function apply(now, increment) {
  if (increment.seq !== now.seq + 1) return false;
  for (const change of increment.changes) {
    if (change.type === "status") {
      for (const name of ["status", "reason", "run_folder", "report", "scenarios"]) now[name] = change[name];
      continue;
    }
    if (change.type === "simulation") {
      now.simulation = change.simulation;
      continue;
    }
    const group = now.groups.find((each) => each.design === change.design);
    if (group) CHANGES[change.type]?.(group, change, now.limits);
  }
  now.seq = increment.seq;
  now.at_ms = increment.at_ms;
  const oldest = now.at_ms - now.limits.lanes_ms;
  for (const group of oldest > 0 ? now.groups : []) {
    if (group.intervals.some((each) => each.to_ms !== null && each.to_ms < oldest))
      group.intervals = group.intervals.filter((each) => each.to_ms === null || each.to_ms >= oldest);
  }
  return true;
}

// Whether anything can be done; whether time can go on by an event: not while groups run again to where they are to be;
// and whether groups take commands: one can also go back to before their first members were started.
export const isOpen = ({ status }) => status === "running";
export const isPresent = (game) => isOpen(game) && (!game.simulation || ["running", "paused"].includes(game.simulation.time));
export const takesCommands = (game) => isPresent(game)
  && (!game.simulation || game.groups.every(({ members }) => members.length >= game.begun.members));

// How many more a group takes. The place of a member that was added is free again when it has ended.
export function roomIn({ members, partitions }, { begun, limits }) {
  const isTaken = ({ name, state }) => state !== "ended" || Number(name.slice(1)) <= begun.members;
  return { members: limits.members - members.filter(isTaken).length, partitions: limits.partitions - partitions.length };
}

// What is to be seen at a glance: the worst first.
export function glance(group) {
  const started = group.partitions.filter((each) => each.delivered > 0 || each.deliverers.length || each.owner);
  const twice = started.filter((each) => each.deliverers.length > 1);
  const unowned = started.filter((each) => !each.deliverers.length);
  if (twice.length) return { kind: "alarm", twice, unowned };
  if (unowned.length) return { kind: "notice", twice, unowned };
  // A group that forms has partitions that nobody has had yet.
  const isWhole = started.length > 0 && started.length === group.partitions.length;
  return { kind: isWhole ? "good" : "idle", twice, unowned };
}
