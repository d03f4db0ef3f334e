"""A rolling restart of five members with twelve partitions: what it costs in each design, counted exactly.

The counts are those of librdkafka's members on Kafka 4.1.1. `make bench ARGS="--only rolling"` prints them with the
times, which are not tested.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from typing import TYPE_CHECKING

import pytest

from bench import lab
from bench.rolling import DESIGNS, KINDS, ROLLING, Counts, Plan, courses
from kernel.assignors.registry import assignor
from kernel.assignors.sticky_data import encode_cooperative
from kernel.assignors.subscription import MemberSubscription

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from kernel.values import TopicPartition

MEMBERS, PARTITIONS = 5, 12
COOPERATIVE = next(design for design in DESIGNS if design.label == "cooperative-sticky")


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_every_change_costs_as_much_as_in_kafka(tmp_path: Path, kind: str) -> None:
    with lab.our_broker(tmp_path / "broker", {}) as server:
        made = asyncio.run(courses(kind, DESIGNS, Plan(), server.port, tmp_path / "broker" / "broker-1.jsonl"))
    assert [course.costs.keys() for course in made] == [design.known.keys() for design in DESIGNS]
    for course in made:
        for change, cost in course.costs.items():
            assert course.design.expects(kind, change, cost.counts), (course.design.label, change, cost)
            assert cost.doubly_owned_s == 0, (course.design.label, change)


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
    assert seen <= set(COOPERATIVE.moved_by_chance)
