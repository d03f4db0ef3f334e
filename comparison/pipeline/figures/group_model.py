"""The exact counts that a change must cost under a coordinator, by design; pure arithmetic.

Checked against librdkafka on Kafka 4.1.1, where the counts were the same in every repeat: four members with twelve
partitions joined by one, left or lost by one, and a rolling restart of five. With N members after the change, P
partitions in all, k of which the departed member had owned:

- A round: every member joins once and syncs once. A new member sends JoinGroup twice, because the first response only
  carries its member id (KIP-394); in `static` it brings an instance id and sends it once.
- `eager`, `static`, `server`: one round per change, and everything stops: P at a join, P - k when a member goes. What
  moves depends on the assignor: `range` and `roundrobin` reassign all partitions to the members in the order of their
  ids.
- `server`: members ask for commands and are never notified; only the coordinator watches.
- `cooperative`: a joining member gets floor(P/N) partitions, which stop and move in a second round; if no member has to
  revoke any, one round is enough. Nothing stops when a member goes. A member that has revoked partitions rejoins at
  once. If its JoinGroup arrives before another member's SyncGroup, the other is sent back to join, still holding what
  it had to revoke, and a further round follows: rounds and requests then depend on timing.
- `delayed`: joins as in `cooperative`. When a member goes, there is a round without moves and, after the delay, another
  one in which the others get its partitions. If the leader goes, they get them in the first round, because its memory
  of the assignment goes with it.
- A topic that grows: one round, for which the leader rejoins by itself. What stops and moves is as at a join, except
  that nothing moves in `cooperative` and `delayed`: the new partitions have no owner to take them from.
- `consumer`: no JoinGroup and no SyncGroup. A change is one epoch of the group. A joining member gets floor(P/N)
  partitions, and only those stop; when a member goes, its k partitions move and nothing stops.
- A restart is a leave and a join, in `static` neither: its one JoinGroup and one SyncGroup are answered at once.
  In `delayed` the counts depend on which comes first, the member or the end of the delay, and are not predicted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.pipeline.figures.model import CRASH, JOIN, LEAVE, RESTART, Prediction
from kernel.designs import DESIGNS, INCREMENTAL, RECONCILING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MODELLED = (JOIN, LEAVE, CRASH, RESTART)
RANGE, ROUNDROBIN = "range", "roundrobin"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSetting:
    """What the counts depend on; `members` after the change, `partitions` over all topics."""

    members: int
    partitions: int
    released: int | None = None  #: partitions of the departed member; None: not known
    moved: int | None = None  #: by the assignor, if it reassigns everything; None: not known
    leader_went: bool = False
    synced_late: bool = False  #: a SyncGroup was answered REBALANCE_IN_PROGRESS


def predict(design: str, change: str, at: GroupSetting) -> Mapping[str, Prediction]:
    """Requests, generations, and partitions stopped and moved, without counts that depend on something unknown."""
    if DESIGNS[design].delays_reassignment and change == RESTART:
        return {}
    if design in RECONCILING:
        return _one_by_one(change, at)
    predicted = _incrementally(design, change, at) if design in INCREMENTAL else _all_at_once(design, change, at)
    if design in INCREMENTAL and at.synced_late:
        return {name: count for name, count in predicted.items() if name in ("stopped", "moved")}
    if not DESIGNS[design].classic:
        predicted = {name: count for name, count in predicted.items() if name not in ("JoinGroup", "SyncGroup")}
        # One child watch wakes the coordinator, which reads the list and a new member's registration.
        came, times = int(change in (JOIN, RESTART)), 2 if change == RESTART else 1
        predicted["notifications"] = Prediction(0, "0")
        predicted["coordinator notifications"] = Prediction(times, str(times))
        predicted["coordinator reads"] = Prediction(times + came, f"{times}+{came}" if came else str(times))
    return predicted


def predict_growth(design: str, members: int, before: int, moved: int | None) -> Mapping[str, Prediction]:
    """The same for a topic that grows, with `before` partitions of all topics until then."""
    n, stays = Prediction(members, "N"), design in INCREMENTAL
    requests = {"JoinGroup": n, "SyncGroup": n} if DESIGNS[design].classic else {}
    return {
        **requests,
        "generations": Prediction(1, "1"),
        "stopped": Prediction(0, "0") if stays else Prediction(before, "P"),
        **_known(
            moved=Prediction(0, "0") if stays else Prediction(moved, "as assigned") if moved is not None else None
        ),
    }


def _all_at_once(design: str, change: str, at: GroupSetting) -> dict[str, Prediction]:
    """Everything is revoked and reassigned."""
    n, p, k = at.members, at.partitions, at.released
    if change == RESTART and DESIGNS[design].static_membership:
        one, none = Prediction(1, "1"), Prediction(0, "0")
        return {"JoinGroup": one, "SyncGroup": one, "generations": none, "stopped": none, "moved": none}
    once_more, more = (0, "") if DESIGNS[design].static_membership else (1, "+1")
    if change == JOIN:
        predicted = {"JoinGroup": Prediction(n + once_more, f"N{more}"), "SyncGroup": Prediction(n, "N")}
        stopped: Prediction | None = Prediction(p, "P")
    elif change == RESTART:
        predicted = {"JoinGroup": Prediction(2 * n, "(N-1)+(N+1)"), "SyncGroup": Prediction(2 * n - 1, "(N-1)+N")}
        stopped = Prediction(2 * p - k, "(P-k)+P") if k is not None else None
    else:
        predicted = {"JoinGroup": Prediction(n, "N"), "SyncGroup": Prediction(n, "N")}
        stopped = Prediction(p - k, "P-k") if k is not None else None
    predicted["generations"] = Prediction(2, "2") if change == RESTART else Prediction(1, "1")
    return predicted | _known(
        stopped=stopped, moved=Prediction(at.moved, "as assigned") if at.moved is not None else None
    )


def _incrementally(design: str, change: str, at: GroupSetting) -> dict[str, Prediction]:
    """Partitions stay with their owners where possible."""
    n, k = at.members, at.released
    given = at.partitions // n
    shown = "P/N" if given else "0"
    rounds = 2 if given else 1
    joining = {
        "JoinGroup": Prediction(rounds * n + 1, "2N+1" if given else "N+1"),
        "SyncGroup": Prediction(rounds * n, "2N" if given else "N"),
    }
    if change == JOIN:
        moved = Prediction(given, shown)
        return {**joining, "generations": Prediction(rounds, str(rounds)), "stopped": moved, "moved": moved}
    if change == RESTART:
        return {
            "JoinGroup": Prediction(n - 1 + joining["JoinGroup"].count, f"(N-1)+({joining['JoinGroup'].formula})"),
            "SyncGroup": Prediction(n - 1 + joining["SyncGroup"].count, f"(N-1)+{joining['SyncGroup'].formula}"),
            "generations": Prediction(1 + rounds, f"1+{rounds}"),
            "stopped": Prediction(given, shown),
            **_known(moved=Prediction(k + given, f"k+{shown}") if k is not None else None),
        }
    # Only partitions that the member had can be delayed.
    rounds = 2 if DESIGNS[design].delays_reassignment and k and not at.leader_went else 1
    requests = Prediction(rounds * n, "2N" if rounds == 2 else "N")
    return {
        "JoinGroup": requests,
        "SyncGroup": requests,
        "generations": Prediction(rounds, str(rounds)),
        "stopped": Prediction(0, "0"),
        **_known(moved=Prediction(k, "k") if k is not None else None),
    }


def _one_by_one(change: str, at: GroupSetting) -> dict[str, Prediction]:
    """Heartbeats carry the assignment, and only what moves stops."""
    k, none = at.released, Prediction(0, "0")
    given = Prediction(at.partitions // at.members, "P/N") if at.partitions >= at.members else none
    predicted = {"JoinGroup": none, "SyncGroup": none, "generations": Prediction(1, "1")}
    if change == JOIN:
        return {**predicted, "stopped": given, "moved": given}
    gone = Prediction(k, "k") if k is not None else None
    if change == RESTART:
        both = Prediction(k + given.count, f"k+{given.formula}") if k is not None else None
        return {**predicted, "generations": Prediction(2, "2"), "stopped": given, **_known(moved=both)}
    return {**predicted, "stopped": none, **_known(moved=gone)}


def _known(**counts: Prediction | None) -> dict[str, Prediction]:
    return {name: count for name, count in counts.items() if count is not None}


def moved_by_strategy(
    strategy: str,
    partitions: Sequence[tuple[str, int]],
    before: Sequence[str],
    after: Sequence[str],
    more: Sequence[tuple[str, int]] = (),
) -> int | None:
    """How many partitions change members when `strategy` assigns them, and `more`, to `after` instead of `before`.

    Members are in the assignor's order. None for a strategy that considers more than that.
    """
    assign = {RANGE: _range, ROUNDROBIN: _roundrobin}.get(strategy)
    if assign is None or not before or not after:
        return None
    old, new = assign(partitions, before), assign([*partitions, *more], after)
    return sum(1 for each in partitions if old[each] != new[each])


def _range(partitions: Sequence[tuple[str, int]], members: Sequence[str]) -> dict[tuple[str, int], str]:
    """Consecutive partitions of each topic per member; the first members get one more (Kafka's RangeAssignor)."""
    owners = {}
    for topic in {topic for topic, _ in partitions}:
        of_topic = sorted(each for each in partitions if each[0] == topic)
        share, larger = divmod(len(of_topic), len(members))
        start = 0
        for place, member in enumerate(members):
            end = start + share + (1 if place < larger else 0)
            owners.update(dict.fromkeys(of_topic[start:end], member))
            start = end
    return owners


def _roundrobin(partitions: Sequence[tuple[str, int]], members: Sequence[str]) -> dict[tuple[str, int], str]:
    """All partitions of all topics, to one member after the other (Kafka's RoundRobinAssignor)."""
    return {each: members[number % len(members)] for number, each in enumerate(sorted(partitions))}
