"""Check an assignor's answer: whether it is valid and fair, and how much it moved.

Fair is what Kafka's own tests require: no member has two or more partitions more than another one that subscribes to
the topic of one of them. With equal subscriptions this means that loads differ by at most one.

Moves are compared with the fewest possible with equal subscriptions, and otherwise with a lower bound for every
algorithm (`tests.kernel.assignors.moves_bound`). That bound says little, and is often 0, when members have a handful of
partitions each; then the fewest moves that lead to the loads of the answer count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench.assign_cases import NOBODY
from tests.kernel.assignors.moves_bound import moves_lower_bound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bench.assign_cases import Answer, Case


@dataclass(frozen=True)
class Findings:
    """Findings about one answer; `faults` make it invalid."""

    owner: NDArray[np.int32]  #: by partition; NOBODY: withheld
    faults: tuple[str, ...]
    load_min: int
    load_max: int
    unfair: str  #: two members that show it; empty: fair
    withheld: int
    handed_out: int  #: partitions that no present member owned before
    moved_for_loads: int  #: the fewest moves of any answer with these loads
    moved: int  #: partitions taken from members that stay, withheld ones included

    @property
    def loads(self) -> str:
        return f"{self.load_min}-{self.load_max}"


def looked_at(case: Case, step: str, before: NDArray[np.int32], answer: Answer, *, may_withhold: bool) -> Findings:
    """Check one answer. With `may_withhold`, owned partitions that are about to move may be left out (KIP-429)."""
    present = case.present(step)
    faults = list(answer.faults)
    n = case.shape.partitions
    ids = np.clip(answer.ids, 0, n - 1)
    times = np.bincount(ids, minlength=n)
    if (times > 1).any():
        faults.append(f"{(times > 1).sum()} partitions given twice, {_named(case, int(times.argmax()))} for one")
    if not np.isin(answer.takers, present).all():
        faults.append("partitions given to a member that is not there")
    topics = ids // case.shape.partitions_each
    strangers = ~case.subscribed[answer.takers, topics]
    if strangers.any():
        first = int(strangers.argmax())
        taker = case.members[int(answer.takers[first])]
        faults.append(
            f"{strangers.sum()} given to members that do not subscribe: {_named(case, ids[first])} to {taker}"
        )
    owner = np.full(n, NOBODY, np.int32)
    owner[ids] = answer.takers
    wanted = np.repeat(case.subscribed[present].any(axis=0), case.shape.partitions_each)
    missing = wanted & (times == 0)
    withheld = missing & (before != NOBODY) if may_withhold else np.zeros(n, np.bool_)
    if (missing & ~withheld).any():
        lost = int((missing & ~withheld).argmax())
        faults.append(f"{(missing & ~withheld).sum()} partitions given to nobody, {_named(case, lost)} for one")
    loads = np.bincount(answer.takers, minlength=len(case.members))
    return Findings(
        owner=owner,
        faults=tuple(faults),
        load_min=int(loads[present].min()),
        load_max=int(loads[present].max()),
        unfair=_unfair(case, present, owner, loads),
        withheld=int(withheld.sum()),
        handed_out=int(((before == NOBODY) & (owner != NOBODY)).sum()),
        moved_for_loads=moved_for_loads(before, loads),
        moved=int(((before != NOBODY) & (owner != before)).sum()),
    )


def moved_for_loads(before: NDArray[np.int32], loads: NDArray[np.int64]) -> int:
    """The fewest moves that lead from `before` to these loads."""
    had = np.bincount(before[before != NOBODY], minlength=len(loads))
    return int(np.maximum(had - loads, 0).sum())


def _unfair(case: Case, present: NDArray[np.int64], owner: NDArray[np.int32], loads: NDArray[np.int64]) -> str:
    """Compare, topic by topic, the fullest owner of a partition with the emptiest subscriber."""
    each = case.shape.partitions_each
    of_owner = np.where(owner == NOBODY, -1, loads[owner]).reshape(case.shape.topics, each)
    could = np.where(case.subscribed[present], loads[present][:, None], np.iinfo(np.int64).max)
    gap = np.where(of_owner.max(axis=1) >= 0, of_owner.max(axis=1) - could.min(axis=0), 0)
    if gap.max() < 2:
        return ""
    worst = int(gap.argmax())
    fullest = int(owner[worst * each + int(of_owner[worst].argmax())])
    emptiest = int(present[int(could[:, worst].argmin())])
    return (
        f"{case.members[fullest]} has {loads[fullest]}, {case.members[emptiest]} only {loads[emptiest]}, "
        f"and {case.topics[worst]} could go from one to the other"
    )


def _named(case: Case, partition: int) -> str:
    return f"{case.topics[partition // case.shape.partitions_each]}-{partition % case.shape.partitions_each}"


def moves_least(case: Case, step: str, before: NDArray[np.int32]) -> int:
    """Fewest moves of partitions whose owner stays: exact with equal subscriptions, else a lower bound."""
    if case.is_equal:
        return moves_least_of_equal(case, step, before)
    present = case.present(step)
    place = np.full(len(case.members) + 1, NOBODY, np.int32)  # the last entry is NOBODY's
    place[present] = np.arange(len(present))
    starts = np.arange(case.shape.topics + 1) * case.shape.partitions_each
    return int(moves_lower_bound(starts, case.subscribed[present], place[before]).taken)


def moves_least_of_equal(case: Case, step: str, before: NDArray[np.int32]) -> int:
    """The minimum with equal subscriptions: what members owned beyond their share; larger shares go to the fullest."""
    present = case.present(step)
    had = np.bincount(before[before != NOBODY], minlength=len(case.members))[present]
    least, extras = divmod(case.shape.partitions, len(present))
    kept = np.minimum(had, least).sum() + min(extras, int((had > least).sum()))
    return int(had.sum() - kept)
