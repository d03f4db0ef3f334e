// How much of a group's partitions somebody delivered, as time went on: from its intervals, on whatever page they are.

// The stretches, cut to the window, in which partitions had somebody: [{from, until, count}] without gaps.
export function shares(intervals, fromMs, toMs) {
  const changes = new Map([[fromMs, 0]]);
  const change = (at, by) => changes.set(at, (changes.get(at) ?? 0) + by);
  const byPartition = Map.groupBy(intervals.filter((each) => each.kind === "delivering"), (each) => each.partition);
  for (const own of byPartition.values()) {
    let covered = fromMs;
    for (const { from_ms, to_ms } of own.sort((one, other) => one.from_ms - other.from_ms)) {
      const from = Math.max(from_ms, covered), until = Math.min(to_ms ?? toMs, toMs);
      if (until <= from) continue;
      change(from, 1);
      change(until, -1);
      covered = until;
    }
  }
  const times = [...changes.keys()].sort((one, other) => one - other);
  let count = 0;
  return times.filter((at) => at < toMs).map((from, place) => ({ from, until: Math.min(times[place + 1] ?? toMs, toMs), count: count += changes.get(from) }));
}
