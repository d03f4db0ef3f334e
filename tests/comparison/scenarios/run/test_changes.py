"""When a change is over: not before everybody who rebalances by itself has begun to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from comparison.scenarios.plan.catalogue import CATALOGUE
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.run.changes import Changes
from comparison.scenarios.testbed.group_members import GroupMembers
from comparison.scenarios.testbed.group_view import QUIET_MS
from kernel.runtime import REAL
from kernel.values import TopicPartition
from tests.support.trace.tracers import ListTracer

PARTITIONS = [TopicPartition("orders", number) for number in range(3)]
#: The length of a session: a tenth of the shortest one of a run, since nothing here waits for ZooKeeper.
SESSION_MS = 300


class Group:
    """Members m1 and m2, to which m3 is added; the test says what they trace."""

    def __init__(self, design: str, *, session_ms: int = SESSION_MS) -> None:
        parameters = Parameters(members=2, partitions=3)
        made: Any = SimpleNamespace(
            session_ms=session_ms, delay_ms=0, heartbeat_ms=configuration(design, parameters).heartbeat_ms
        )
        request: Any = SimpleNamespace(
            design=design,
            parameters=parameters,
            scenario=CATALOGUE["join"],
            configuration=made,
            split_brain=False,
            wants=lambda _: True,
        )
        self.tracer = ListTracer(process="runner")
        testbed: Any = SimpleNamespace(
            request=request, tracer=self.tracer, partitions=PARTITIONS, check=lambda: None, runtime=REAL
        )
        self.members = GroupMembers(testbed, 3)
        self.members.present = 2
        self.changes = Changes(testbed, self.members, lambda _: None)
        self.rebalance("m1", 0, 2)
        self.rebalance("m2", 1)

    def apply(self, kind: str, process: str, **fields: Any) -> None:
        event = {"ns": 0, "kind": kind, "process": process, "member": f"{process}-id", "stream": 0, **fields}
        self.members.view.apply(event)

    def rebalance(self, process: str, *partitions: int) -> None:
        self.apply("rebalance_started", process)
        self.own(process, *partitions)
        self.apply("rebalance_ended", process, outcome="ok")

    def own(self, process: str, *partitions: int) -> None:
        """The process gives up whatever it had, and gets these."""
        self.apply("partitions_revoked", process, partitions=rows(range(len(PARTITIONS))))
        self.apply("partitions_assigned", process, partitions=rows(partitions))

    def join(self) -> None:
        """m3 gets what m1 had, but m2 has not heard of it, and keeps what it has."""
        self.members.present = 3
        self.rebalance("m1", 0)
        self.rebalance("m3", 2)

    @property
    def has_settled(self) -> bool:
        return any(event["kind"] == "change_settled" for event in self.tracer.events)


def rows(partitions: Iterable[int]) -> list[dict[str, Any]]:
    return [{"topic": "orders", "partition": each} for each in partitions]


async def joined(group: Group) -> asyncio.Task[None]:
    """The change, when the runner has looked at the group some times."""
    looks, looked = 0, asyncio.Event()
    begun = group.members.view.begun

    def counted() -> dict[str, int]:
        nonlocal looks
        looks += 1
        if looks == 3:
            looked.set()
        return begun()

    group.members.view.begun = counted  # type: ignore[method-assign]
    task = asyncio.create_task(group.changes.make("join", group.join, members=3))
    await looked.wait()
    return task


async def test_a_join_of_zookeeper_has_not_settled_before_the_last_member_has_begun_to_rebalance() -> None:
    group = Group("zookeeper", session_ms=60_000)
    task = await joined(group)
    assert group.members.view.settled(3, 3), "every partition has one owner, and everybody owns one"
    assert not group.has_settled
    group.rebalance("m2", 1)
    await task
    assert group.has_settled


async def test_a_member_that_never_hears_of_a_join_is_waited_for_as_long_as_sessions_last() -> None:
    group = Group("zookeeper")
    begun = time.monotonic()
    await group.changes.make("join", group.join, members=3)
    assert group.has_settled
    assert time.monotonic() - begun >= 2 * SESSION_MS / 1000, "two sessions, as `Changes.make` waits"


@pytest.mark.parametrize("design", ["eager", "server"])
async def test_under_a_coordinator_nobody_has_to_begin_by_itself(design: str) -> None:
    group = Group(design)
    await group.changes.make("join", group.join, members=3)
    assert group.has_settled


async def test_a_group_that_is_disturbed_right_after_a_heal_has_to_settle_again() -> None:
    """Its members hear of what has happened when the runner has seen a settled group, in which nothing moved."""
    group = Group("eager")
    assert group.members.view.settled(2, 2)
    settling = asyncio.create_task(group.changes.settle())
    await asyncio.sleep(0)
    assert not settling.done()
    group.apply("partitions_lost", "m2", partitions=rows([1]))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(settling), 2 * QUIET_MS / 1000)
    group.rebalance("m2", 1)
    await settling


async def test_a_settled_group_is_watched_for_a_while() -> None:
    group, begun = Group("eager"), time.monotonic()
    await group.changes.settle()
    assert time.monotonic() - begun >= QUIET_MS / 1000
