"""A group and its changes, gone through with several strategies: how even each is and what it moved.

The figures have the words of the metrics of runs (`comparison.results.metrics`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from comparison.assigning.group import Group, Restart, changed
from comparison.assigning.minimum import fewest_moves
from comparison.assigning.strategies import THREADS, Held, is_incremental, owners_of, rebalance
from kernel.errors import RebalanceLabError
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.assigning.group import Change, Plan
    from comparison.assigning.strategies import Owned, Round


#: What is shown of `Figures`, in order.
FIGURES = ("fewest", "most", "balance", "moved", "forced", "minimum", "unnecessary", "stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One moment of a group with one strategy. The last four count partitions; `stopped` counts each time."""

    fewest: int  #: partitions of the member with the fewest; members without any count
    most: int
    moved: int  #: partitions with another owner than before; those that had none are not counted
    forced: int  #: of these, those whose former owner has left or unsubscribed
    minimum: int | None  #: the fewest that had to move to balance the group; None if that is not known
    stopped: int  #: taken from members that stayed

    @property
    def balance(self) -> int:
        """The most partitions of a member less the fewest."""
        return self.most - self.fewest

    @property
    def unnecessary(self) -> int | None:
        """How many more moved than had to."""
        return None if self.minimum is None else max(0, self.moved - self.minimum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A group after a change; no rounds if the change causes no rebalance."""

    step: str  #: '' at the start
    group: Group
    owned: Owned
    came_from: Mapping[TopicPartition, str]  #: the former owners of what has moved, restarted ones by their new names
    new: frozenset[TopicPartition]  #: had no owner before
    unowned: tuple[TopicPartition, ...]
    was: Mapping[str, str]  #: {owner: its former name}, of those that restarted
    rounds: tuple[Round, ...]
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What one strategy makes of a plan; `failed` says why it has no more moments."""

    strategy: str
    moments: tuple[Moment, ...]
    failed: str = ""


def rehearse(plan: Plan) -> list[Rehearsal]:
    """All strategies of a plan. Raises `ConfigurationError` if a change makes the group too large."""
    groups = [plan.group]
    for step in plan.steps:
        groups.append(changed(groups[-1], step.change))
    return [_with(strategy, plan, groups) for strategy in plan.strategies]


@dataclass(frozen=True, slots=True)
class _At:
    """A strategy's group at one step of the plan."""

    strategy: str
    group: Group
    step: str = ""
    new_names: Mapping[str, str] = field(default_factory=dict)  #: of those that restarted


def _with(strategy: str, plan: Plan, groups: list[Group]) -> Rehearsal:
    moments: list[Moment] = []
    failed = ""
    try:
        held, rounds = rebalance(strategy, plan.group, Held())
        moments.append(_moment(_At(strategy, plan.group), Held(), held, rounds))
        for step, before, after in zip(plan.steps, groups, groups[1:], strict=False):
            moment, held = _after(strategy, step.text, step.change, (before, after), held)
            moments.append(moment)
    except RebalanceLabError as error:  # a strategy that refuses the group, or that is plugged in and wrong
        failed = str(error)
    return Rehearsal(strategy=strategy, moments=tuple(moments), failed=failed)


def _after(strategy: str, text: str, change: Change, groups: tuple[Group, Group], held: Held) -> tuple[Moment, Held]:
    before, after = groups
    new_names = _new_owners(strategy, before, change)
    renamed = held.renamed(new_names)
    at = _At(strategy, after, text, new_names)
    if _seen(strategy, before) == _seen(strategy, after):
        return _moment(at, renamed, renamed), renamed
    remembered = renamed.without(new_names.values())
    now, rounds = rebalance(strategy, after, remembered)
    if is_incremental(strategy):
        stopped = sum(len(tps) for each in rounds for tps in each.revoked.values())
    else:
        stopped = sum(len(tps) for owner, tps in remembered.owned.items() if owner in now.owned)
    return _moment(at, renamed, now, rounds, stopped), now


def _new_owners(strategy: str, group: Group, change: Change) -> dict[str, str]:
    """{former name: new name} of all members or threads that restart."""
    if not isinstance(change, Restart):
        return {}
    before = owners_of(group, strategy)
    return dict(
        pair
        for old, new in change.new_names.items()
        for pair in zip(_of(group, old, strategy), _of(changed(group, change), new, strategy), strict=True)
        if pair[0] in before
    )


def _of(group: Group, name: str, strategy: str) -> list[str]:
    return list(owners_of(Group(group.sizes, (group.by_name[name],)), strategy))


def _seen(strategy: str, group: Group) -> object:
    """What the group has to agree on again when it changes. A static member keeps its place when it restarts."""
    wanted = {topic for member in group.members for topic in member.topics}
    members = [
        (member.name if strategy in THREADS else member.instance_id or member.name, member.topics)
        for member in group.members
    ]
    return members, {topic: size for topic, size in group.sizes.items() if topic in wanted}


def _moment(at: _At, before: Held, after: Held, rounds: tuple[Round, ...] = (), stopped: int = 0) -> Moment:
    """`before` names owners as `after` does: a restarted one by its new name."""
    had, has = _owner_of(before.owned), _owner_of(after.owned)
    sizes, topics_of = at.group.sizes, owners_of(at.group, at.strategy)
    came_from = {tp: had[tp] for tp, owner in has.items() if had.get(tp, owner) != owner}
    every = (TopicPartition(topic, number) for topic in sorted(sizes) for number in range(sizes[topic]))
    loads = [len(tps) for tps in after.owned.values()]
    return Moment(
        step=at.step,
        group=at.group,
        owned=after.owned,
        came_from=came_from,
        new=frozenset(has.keys() - had.keys()) if at.step else frozenset(),
        unowned=tuple(tp for tp in every if tp not in has),
        was={new: old for old, new in at.new_names.items()},
        rounds=rounds,
        figures=Figures(
            fewest=min(loads, default=0),
            most=max(loads, default=0),
            moved=len(came_from),
            forced=sum(tp.topic not in topics_of.get(owner, ()) for tp, owner in came_from.items()),
            minimum=fewest_moves(sizes, topics_of, had) if had else 0,
            stopped=stopped,
        ),
    )


def _owner_of(owned: Owned) -> dict[TopicPartition, str]:
    return {tp: owner for owner, tps in owned.items() for tp in tps}
