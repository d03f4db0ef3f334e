"""A rolling restart of five members with twelve partitions: what it costs in each design, counted exactly.

The counts are those of librdkafka's members on Kafka 4.1.1, where the designs of KIP-848 run as well. `make bench
ARGS="--only rolling"` prints them with the times, which are not tested.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import uuid
from collections.abc import Iterable
from pathlib import Path

import pytest

from bench.rolling import Broker, Course, courses
from bench.rolling_designs import CLASSIC, DESIGNS, JOIN, LEAVE, RECONCILING, ROLLING, Counts, Design, Known, Plan
from bench.rolling_members import KINDS
from bench.sides import our_side
from kernel.assignors.registry import assignor
from kernel.assignors.sticky_data import encode_cooperative
from kernel.assignors.subscription import MemberSubscription
from kernel.values import TopicPartition
from tests.support.groups.targets import answer, runs
from tests.support.java.originals import real_broker

MEMBERS, PARTITIONS = 5, 12
BY_LABEL = {design.label: design for design in DESIGNS}
COOPERATIVE, UNIFORM, RANGE = (BY_LABEL[name] for name in ("cooperative-sticky", "KIP-848 uniform", "KIP-848 range"))


@pytest.mark.long
@pytest.mark.parametrize("designs", [CLASSIC, RECONCILING], ids=["classic", "KIP-848"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_change_costs_as_much_as_in_kafka(tmp_path: Path, kind: str, designs: tuple[Design, ...]) -> None:
    trace = tmp_path / "broker.jsonl"
    with our_side(tmp_path / "broker", Plan().broker_settings, trace=trace) as side:
        broker = Broker("ours", side.port, trace)
        made = asyncio.run(courses(kind, designs, Plan(), broker))
    assert [course.design for course in made] == list(designs)
    check_costs(kind, made)


@pytest.mark.long
@pytest.mark.originals
@pytest.mark.parametrize("kind", KINDS)
def test_every_change_in_kip_848_costs_as_much_on_a_real_broker(tmp_path: Path, kind: str) -> None:
    with real_broker("4.1.1", tmp_path / "broker", settings=Plan().broker_settings) as broker:
        made = asyncio.run(courses(kind, RECONCILING, Plan(), Broker("Kafka 4.1.1", broker.port)))
    assert [course.design for course in made] == list(RECONCILING)
    check_costs(kind, made)


def check_costs(kind: str, made: list[Course]) -> None:
    for course in made:
        assert course.formed == course.design.forming, course.design.label
        assert course.costs.keys() == course.design.known.keys(), course.design.label
        for change, cost in course.costs.items():
            assert course.design.expects(kind, change, cost.counts), (course.design.label, change, cost)
            assert cost.doubly_owned_s == 0, (course.design.label, change)


def test_known_cost_allows_its_own_counts_and_no_others() -> None:
    rolling, joined = UNIFORM.known[ROLLING], UNIFORM.known[JOIN]
    assert joined.allows(Counts(1, 2, 2))
    assert not any(joined.allows(counts) for counts in (Counts(2, 2, 2), Counts(1, 1, 2), Counts(1, 2, 3)))
    assert all(rolling.allows(Counts(10, 10, moved)) for moved in range(20, 26))
    assert not any(
        rolling.allows(counts)
        for counts in (Counts(9, 10, 22), Counts(10, 11, 22), Counts(10, 10, 19), Counts(10, 10, 26))
    )
    assert COOPERATIVE.expects("ours", ROLLING, Counts(15, 10, 21))
    assert not COOPERATIVE.expects("librdkafka", ROLLING, Counts(15, 10, 21))


class CooperativeGroup:
    """What the strategy alone gives: members own what it assigns, and rejoin when something was taken."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._ids: dict[str, str] = {}
        self._owned: dict[str, frozenset[TopicPartition]] = {}
        self._since: dict[str, int] = {}  #: {member: the generation of what it owns}
        self._last: dict[TopicPartition, str] = {}
        self.generations = self.stopped = self.moved = 0

    def start(self, *names: str) -> None:
        for name in names:
            self._ids[name] = f"{name}-{uuid.UUID(int=self._chance.getrandbits(128), version=4)}"
            self._owned[name], self._since[name] = frozenset(), -1
        self._rebalance(sorted(self._ids))

    def stop(self, name: str) -> None:
        del self._ids[name]
        self._rebalance(sorted(self._ids))

    def _rebalance(self, names: Iterable[str]) -> None:
        taken = 1
        while taken:
            self.generations += 1
            claims = {self._ids[name]: self._claim(name) for name in names}
            assignment = assignor("cooperative-sticky")({"t": PARTITIONS}, claims)
            taken = sum(self._take_over(name, frozenset(assignment[self._ids[name]])) for name in names)
            self.stopped += taken

    def _claim(self, name: str) -> MemberSubscription:
        owned, since = tuple(sorted(self._owned[name])), self._since[name]
        generation = None if since < 0 else since
        return MemberSubscription(
            topics=("t",), owned=owned, generation=generation, user_data=encode_cooperative(since)
        )

    def _take_over(self, name: str, assigned: frozenset[TopicPartition]) -> int:
        """How many partitions were taken from the member."""
        taken = self._owned[name] - assigned
        for partition in assigned - self._owned[name]:
            self.moved += self._last.get(partition, name) != name
            self._last[partition] = name
        self._owned[name], self._since[name] = assigned, self.generations
        return len(taken)


def test_moves_of_a_cooperative_rolling_restart_depend_on_random_ids_and_nothing_else_does() -> None:
    seen: set[int] = set()
    for seed in range(60):
        group = CooperativeGroup(random.Random(seed))
        names = [f"m{n}" for n in range(MEMBERS)]
        group.start(*names)
        before = Counts(group.generations, group.stopped, group.moved)
        for name in names:
            group.stop(name)
            group.start(name)
        assert group.generations - before.generations == COOPERATIVE.known[ROLLING].generations
        assert group.stopped - before.stopped == COOPERATIVE.known[ROLLING].stopped
        seen.add(group.moved - before.moved)
    assert COOPERATIVE.known[ROLLING].moved in seen
    assert seen == set(COOPERATIVE.of_ours[ROLLING].moved)


class ReconciledGroup:
    """What an assignor of KIP-848 alone gives: each change has one epoch, and members own what its target says."""

    def __init__(self, strategy: str, chance: random.Random) -> None:
        self._strategy, self._chance = strategy, chance
        self._topic_id = self._drawn().hex
        self._ids: dict[str, str] = {}
        self._owned: dict[str, set[tuple[str, int]]] = {}
        self._last: dict[tuple[str, int], str] = {}
        self.epochs = self.stopped = self.moved = 0

    def start(self, name: str) -> None:
        self._ids[name], self._owned[name] = str(self._drawn()), set()
        self._reconcile()

    def stop(self, name: str) -> None:
        del self._ids[name], self._owned[name]
        self._reconcile()

    @property
    def counts(self) -> Counts:
        return Counts(self.epochs, self.stopped, self.moved)

    def _drawn(self) -> uuid.UUID:
        return uuid.UUID(int=self._chance.getrandbits(128), version=4)

    def _reconcile(self) -> None:
        self.epochs += 1
        members = [[member, ["t"], None, runs(self._owned[name]), None] for name, member in self._ids.items()]
        step = {"partitions": {"t": PARTITIONS}, "topic_ids": {"t": self._topic_id}, "members": members}
        target = answer(step, self._strategy)
        for name, member in self._ids.items():
            self.stopped += len(self._owned[name] - target[member])
            for partition in target[member] - self._owned[name]:
                self.moved += self._last.get(partition, name) != name
                self._last[partition] = name
            self._owned[name] = target[member]


def drawn_costs(strategy: str, seed: int) -> dict[str, Counts]:
    """The costs of all changes in a group whose ids are drawn from the seed."""
    group = ReconciledGroup(strategy, random.Random(seed))
    names = [f"m{n}" for n in range(MEMBERS)]
    for name in names:
        group.start(name)
    before = [group.counts]
    for name in names:
        group.stop(name)
        group.start(name)
    before.append(group.counts)
    group.start("m99")
    before.append(group.counts)
    group.stop("m99")
    before.append(group.counts)
    return {
        change: Counts(after.generations - at.generations, after.stopped - at.stopped, after.moved - at.moved)
        for change, (at, after) in zip((ROLLING, JOIN, LEAVE), itertools.pairwise(before), strict=True)
    }


def test_moves_of_a_uniform_rolling_restart_depend_on_random_ids_and_nothing_else_does() -> None:
    costs = [drawn_costs("uniform", seed) for seed in range(400)]
    assert {cost[JOIN] for cost in costs} == {Counts(1, 2, 2)}
    assert {cost[LEAVE] for cost in costs} == {Counts(1, 0, 2)}
    assert {(cost[ROLLING].generations, cost[ROLLING].stopped) for cost in costs} == {(10, 10)}
    assert {cost[ROLLING].moved for cost in costs} == {20, 21, 22, 23, 24, 25}
    assert all(UNIFORM.known[change].allows(counts) for cost in costs for change, counts in cost.items())


def test_everything_but_the_epochs_of_range_depends_on_random_ids() -> None:
    """Ranges of the known costs are as wide as chance, and no wider; those of restarts are seldom reached."""
    costs = [drawn_costs("range", seed) for seed in range(200)]
    for change in (ROLLING, JOIN, LEAVE):
        assert all(RANGE.known[change].allows(cost[change]) for cost in costs)
    for change in (JOIN, LEAVE):
        assert least_and_most(RANGE.known[change]) == (
            (min(cost[change].stopped for cost in costs), max(cost[change].stopped for cost in costs)),
            (min(cost[change].moved for cost in costs), max(cost[change].moved for cost in costs)),
        )


def least_and_most(known: Known) -> tuple[tuple[int, int], tuple[int, int]]:
    assert isinstance(known.stopped, range)
    assert isinstance(known.moved, range)
    return (known.stopped[0], known.stopped[-1]), (known.moved[0], known.moved[-1])


def test_range_costs_at_most_the_known_counts_whatever_the_ids_are() -> None:
    """All orders of five ids, and all places of the new id of each restarted member."""
    costs: dict[tuple[int, ...], set[tuple[int, int]]]
    costs = {order: {(0, 0)} for order in itertools.permutations(range(MEMBERS))}
    for name in range(MEMBERS):
        after: dict[tuple[int, ...], set[tuple[int, int]]] = {}
        for order, sums in costs.items():
            others = tuple(member for member in order if member != name)
            for place in range(MEMBERS):
                again = (*others[:place], name, *others[place:])
                stopped, moved = restart_cost(dealt(order), dealt(others), dealt(again), name)
                after.setdefault(again, set()).update((one + stopped, other + moved) for one, other in sums)
        costs = after
    every = {each for sums in costs.values() for each in sums}
    (_, most_stopped), (_, most_moved) = least_and_most(RANGE.known[ROLLING])
    assert max(stopped for stopped, _ in every) == most_stopped
    assert max(moved for _, moved in every) == most_moved


def dealt(order: tuple[int, ...]) -> list[int]:
    """The owner of each partition: RangeAssignor's for one topic and members in this order."""
    least, extras = divmod(PARTITIONS, len(order))
    return [member for at, member in enumerate(order) for _ in range(least + (at < extras))]


def restart_cost(before: list[int], without: list[int], after: list[int], name: int) -> tuple[int, int]:
    """Stopped and moved in a leave and a join of this member."""
    left = sum(old not in (new, name) for old, new in zip(before, without, strict=True))
    joined = sum(old != new for old, new in zip(without, after, strict=True))
    return left + joined, joined + sum(old != new for old, new in zip(before, without, strict=True))
