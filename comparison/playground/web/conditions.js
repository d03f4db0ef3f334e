// What a step of a tour waits for: conditions on how a group is now, beside how it was before the step. Pure.

// How a group is, for later; what is shown of it changes in place.
export const remembered = (group, at_ms) => structuredClone({
  at_ms, members: group.members, partitions: group.partitions, counters: group.counters, coordinator: group.coordinator,
});

export const present = (group) => group.members.filter((each) => each.state !== "ended");
export const delivers = (group, name) => group.partitions.some((each) => each.owner === name && each.deliverers.includes(name));

// Every partition is delivered by its owner alone, every member is undisturbed, and nobody is without a share.
export function isWhole(group) {
  const members = present(group);
  return group.partitions.length > 0 && group.partitions.every((each) => each.owner && each.deliverers.join() === each.owner)
    && members.every((each) => each.state === "running" && !each.rebalancing)
    && (members.length > group.partitions.length || members.every((each) => delivers(group, each.name)));
}

const ownedBefore = (before, member) => before.partitions.filter((each) => each.owner === member).map((each) => each.name);
const partition = (group, name) => group.partitions.find((each) => each.name === name);

// The partitions that nobody delivered for a while since then, and for at least so long.
function stoodStill(group, before, atLeast = 0) {
  const gaps = group.intervals.filter((each) => each.kind === "nobody" && each.from_ms >= before.at_ms && each.to_ms !== null
    && each.to_ms - each.from_ms >= atLeast);
  return new Set(gaps.map((each) => each.partition));
}

const moved = (now, before) => before.partitions.filter((each) => partition(now, each.name).owner !== each.owner).map((each) => each.name);

// Each gets the group as it is now, as it was before the step, and what the step says, with a memo for it alone.
export const CONDITIONS = {
  "new owners": (now, before, { member }) => ownedBefore(before, member).map((name) => partition(now, name))
    .every((each) => each.owner && each.owner !== member && each.deliverers.includes(each.owner)),
  "new owners have committed": (now, before, about) => {
    const own = ownedBefore(before, about.member).map((name) => partition(now, name));
    if (CONDITIONS["new owners"](now, before, about)) about.memo.delivered ??= own.map((each) => each.delivered);
    return own.some((each, place) => each.committed > about.memo.delivered?.[place]);
  },
  "two deliver": (now) => now.partitions.some((each) => each.deliverers.length > 1),
  "delivers nothing": (now, before, { member }) => now.partitions.every((each) => !each.deliverers.includes(member)),
  "back": (now, before, { member }) => isWhole(now) && delivers(now, member),
  "back and nothing moved back": (now, before, about) => CONDITIONS.back(now, before, about)
    && now.counters.moved_back === before.counters.moved_back,
  "whole": (now, before, { added }) => isWhole(now) && present(now).length === present(before).length + (added ?? 0),
  "all stood still": (now, before, { ms }) => {
    const still = stoodStill(now, before, ms);
    return before.partitions.every((each) => still.has(each.name));
  },
  "only moved ones stood still": (now, before) => {
    const still = stoodStill(now, before), those = moved(now, before);
    return isWhole(now) && those.length > 0 && [...still].every((name) => those.includes(name));
  },
  "only its own stood still": (now, before, { member }) => {
    const still = stoodStill(now, before), own = ownedBefore(before, member);
    return isWhole(now) && still.size > 0 && [...still].every((name) => own.includes(name));
  },
  "generation": (now, before, { later }) => isWhole(now) && now.coordinator.generation - before.coordinator.generation === later,
  "newer generation": (now, before) => isWhole(now) && now.coordinator.generation > before.coordinator.generation,
  "each was notified": (now, before) => now.counters.notifications - before.counters.notifications >= present(before).length,
  "happened": (now, before, { counters }) => counters.some((each) => now.counters[each] > before.counters[each]),
};
