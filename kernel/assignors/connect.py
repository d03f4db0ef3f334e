"""Connect's incremental cooperative assignor: units of a lost worker wait for its return (KIP-415, Connect 4.1).

The leading worker runs it once in each round, on the units that every worker reports. Units that no worker runs any
more are lost. They stay unassigned for up to scheduled.rebalance.max.delay.ms, in case their worker returns; then they
go to workers that joined empty meanwhile, or to the least loaded. New units are assigned at once, units that no longer
exist or run twice are revoked at once, and all others keep running. Without a pending delay, workers with more than
their share give up the surplus, which the next round assigns; after consecutive rounds of that, with a growing pause
(KAFKA-12495).

The leader's state is a `Memory`, which each round takes and returns. A new leader starts with an empty one and so
considers lost units new: they are assigned at once.

Source: IncrementalCooperativeAssignor of connect-runtime 4.1.1 (KAFKA-9848, KAFKA-10413, KAFKA-15693).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kernel.assignors.connect_units import Unit, Workers, in_order
from kernel.assignors.hash_order import texts_in_hash_order

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from collections.abc import Set as AbstractSet

#: The pauses between rounds of revocations grow by this factor, from 1 ms (so the first is 40).
BACKOFF_FACTOR = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The leader's state between rounds. Times are milliseconds of its clock."""

    assigned: frozenset[Unit] = frozenset()  #: units that have or had an owner
    revoked: frozenset[Unit] = frozenset()  #: by the last round
    workers: frozenset[str] = frozenset()  #: of the last round
    generation: int = -1  #: of the last round
    scheduled_ms: int = 0  #: when lost units are reassigned; 0: not scheduled
    delay_ms: int = 0
    candidates: tuple[str, ...] = ()  #: workers that joined empty while lost units waited, in order of arrival
    has_revoked: bool = False  #: the last round revoked units to balance loads
    revocations: int = 0  #: consecutive rounds since then that wanted to revoke more


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """The input of a round: the configured connectors and tasks, and the units that each worker runs."""

    now_ms: int
    max_delay_ms: int  #: scheduled.rebalance.max.delay.ms
    completed_generation: int  #: the last one that was synced
    generation: int  #: the generation of this round
    configured: frozenset[Unit]
    running: Mapping[str, Collection[Unit]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The result of a round, for every worker. Units that are not mentioned keep running.

    After a delay, each worker rejoins on its own. A worker with revoked units stops them and rejoins at once.
    """

    delay_ms: int
    assigned: Mapping[str, tuple[Unit, ...]]
    revoked: Mapping[str, tuple[Unit, ...]]


def assign_incrementally(memory: Memory, given: Circumstances) -> tuple[Memory, Round]:
    """Decide a round for at least one worker."""
    assert given.running, "a leader is a worker"
    running = Workers(given.running)
    active = running.every()
    assigned = _remembered(memory, given, active)
    deleted = assigned - given.configured
    lost = in_order(assigned - active - deleted)
    created = in_order(given.configured - assigned - active)
    counts = Counter(unit for worker in running for unit in running.of(worker))
    unwanted = deleted | {unit for unit, count in counts.items() if count > 1}
    revoked = {worker: {unit for unit in running.of(worker) if unit in unwanted} for worker in running}
    after = Workers(given.running)
    after.take(revoked)
    memory, lost_now = _lost_handled(memory, given, lost, after)
    if memory.delay_ms == 0:
        memory, surplus = _balanced(memory, given, after)
        after.take(surplus)
        for worker, units in surplus.items():
            revoked[worker] |= units
    else:
        memory = replace(memory, has_revoked=False)
    new = list(dict.fromkeys([*created, *lost_now]))
    after.fill(new, tasks=False)
    after.fill(new, tasks=True)
    everything_revoked = frozenset(unit for units in revoked.values() for unit in units)
    memory = replace(
        memory,
        assigned=frozenset(after.every() - everything_revoked).union(lost),
        revoked=everything_revoked,
        workers=frozenset(running),
        generation=given.generation,
    )
    assigned_now = {w: tuple(unit for unit in after.of(w) if unit not in running.of(w)) for w in running}
    taken = {worker: tuple(in_order(units)) for worker, units in revoked.items()}
    return memory, Round(delay_ms=memory.delay_ms, assigned=assigned_now, revoked=taken)


def _remembered(memory: Memory, given: Circumstances, active: set[Unit]) -> AbstractSet[Unit]:
    """The units that had an owner, unless the last round did not reach all workers."""
    if memory.revoked & active:
        return active
    return memory.assigned if memory.generation == given.completed_generation else frozenset()


def _lost_handled(memory: Memory, given: Circumstances, lost: list[Unit], after: Workers) -> tuple[Memory, list[Unit]]:
    """The lost units to assign like new ones; candidates get theirs here."""
    quiet = replace(memory, candidates=(), scheduled_ms=0, delay_ms=0)
    if not lost and not memory.has_revoked:
        return quiet, []
    message_lost = memory.scheduled_ms <= 0 and memory.workers <= set(after)
    if message_lost or given.max_delay_ms == 0:
        return memory, lost
    if 0 < memory.scheduled_ms <= given.now_ms:
        back = [worker for worker in memory.candidates if worker in set(after)]
        for tasks in (False, True):
            units = [unit for unit in lost if (unit.task is not None) is tasks]
            for position, unit in enumerate(units if back else ()):
                after.give(back[position % len(back)], unit)
        return replace(quiet, has_revoked=False), [] if back else lost
    empty = texts_in_hash_order([worker for worker in after if not after.of(worker)])
    waiting_ms = memory.scheduled_ms - given.now_ms
    delay_ms = min(waiting_ms, given.max_delay_ms) if waiting_ms > 0 else given.max_delay_ms
    waited_for = replace(
        memory,
        candidates=tuple(dict.fromkeys([*memory.candidates, *empty])),
        delay_ms=delay_ms,
        scheduled_ms=given.now_ms + delay_ms,
    )
    return waited_for, []


def _balanced(memory: Memory, given: Circumstances, after: Workers) -> tuple[Memory, dict[str, set[Unit]]]:
    """The units to revoke to balance loads, or the pause before that if the last round revoked some."""
    surplus = _surplus(given.configured, after)
    if not surplus:
        return replace(memory, has_revoked=False, revocations=0) if memory.has_revoked else memory, {}
    if not memory.has_revoked:
        return replace(memory, has_revoked=True), surplus
    memory = replace(memory, revocations=memory.revocations + 1)
    delay_ms = revocation_backoff(memory.revocations, given.max_delay_ms)
    if delay_ms == 0:
        return replace(memory, delay_ms=0), surplus
    return replace(memory, delay_ms=delay_ms, scheduled_ms=given.now_ms + delay_ms), {}


def revocation_backoff(attempt: int, max_delay_ms: int) -> int:
    """40, 1600, 64000, ... ms, at most `max_delay_ms`, computed in doubles as by Kafka's ExponentialBackoff."""
    if max_delay_ms <= 1:
        return max_delay_ms
    exponent = min(attempt, math.log(max_delay_ms) / math.log(BACKOFF_FACTOR))
    return min(int(math.pow(BACKOFF_FACTOR, exponent)), max_delay_ms)


def _surplus(configured: frozenset[Unit], after: Workers) -> dict[str, set[Unit]]:
    """The surplus of each worker, separately for connectors and tasks, oldest first."""
    surplus: dict[str, set[Unit]] = {}
    if not configured or not after.every():
        return surplus
    for tasks in (False, True):
        total = sum((unit.task is not None) is tasks for unit in configured)
        hands = {worker: after.of_kind(worker, tasks=tasks) for worker in after}
        least, extras = divmod(total, len(hands))
        loads = Counter(len(hand) for hand in hands.values())
        if loads[least + 1] == extras and loads[least] + extras == len(hands):
            continue
        for worker, hand in hands.items():
            if len(hand) <= least:
                continue
            keeps = least + (extras > 0)
            extras -= extras > 0
            if len(hand) > keeps:
                surplus.setdefault(worker, set()).update(hand[: len(hand) - keeps])
    return surplus
