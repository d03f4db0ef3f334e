"""When a restarted process returns, and how the restart is traced."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from comparison.scenarios.plan.membership_vocabulary import RestartEach, Resubscribe
from comparison.scenarios.plan.topic_vocabulary import SubscribePattern
from comparison.scenarios.run.restart_steps import Restarts
from comparison.scenarios.testbed.group_view import GroupView
from kernel.values import TopicPartition
from tests.support.trace.tracers import ListTracer

PARTITIONS = [TopicPartition(topic, number) for topic in ("orders-0", "orders-1") for number in range(2)]


class Group:
    """Two places; `noticing` is set whenever a process is away."""

    def __init__(self, design: str) -> None:
        self.view = GroupView([])
        self.places = self.present_places = ["m1", "m2"]
        self.present = 2
        self.done: list[str] = []
        self.traced: list[dict[str, Any]] = []
        self.noticing = asyncio.Event()
        self.tracer = ListTracer()
        self.refusing: dict[str, int] = {}  #: how often more each place is refused
        self.refused_places: list[str] = []
        parameters = SimpleNamespace(topic_names=("orders-0", "orders-1"))
        self.changes: Any = SimpleNamespace(
            members=self,
            testbed=SimpleNamespace(
                request=SimpleNamespace(design=design, parameters=parameters), partitions=PARTITIONS, tracer=self.tracer
            ),
            configuration=None,
            takeover_s=5.0,
            make=self.make,
            wait_for_phase=self.wait_for_phase,
        )
        for name in self.places:
            self.rebalances(name)

    def rebalances(self, name: str) -> None:
        about = {"ns": 0, "process": name, "member": name}
        self.view.apply({**about, "kind": "rebalance_started", "trigger": "t"})
        self.view.apply({**about, "kind": "rebalance_ended", "outcome": "ok"})

    async def wait_for_phase(self) -> None: ...

    async def make(self, change: str, make: Callable[[], Awaitable[None]], **details: Any) -> None:
        self.traced.append({"change": change, **details})
        await make()

    def process_at(self, place: str) -> str:
        return place

    def next_at(self, place: str) -> str:
        return f"{place}.2"

    def check_joining(self) -> None: ...

    def check(self) -> None: ...

    def present_processes(self) -> list[str]:
        return self.places

    def subscribe(self, place: str, topics: list[str], pattern: str = "") -> None:
        self.done.append(f"{place} subscribes to {' '.join(topics) or pattern}")
        self.rebalances(place)

    async def go(self, place: str, _timeout_s: float) -> None:
        self.done.append(f"{place} goes")
        self.view.leave_out(place)
        self.noticing.set()

    async def come_back(
        self, place: str, settings: object = None, topics: list[str] | None = None, design: str = "", pattern: str = ""
    ) -> None:
        as_another = f" as {design}" if design else ""
        wanted = " ".join(topics or ()) or pattern
        self.done.append(f"{place} comes back" + (f" for {wanted}" if wanted else as_another))
        self.view.take_back(place)
        self.refused_places = [each for each in self.refused_places if each != place]
        if self.refusing.get(place, 0):
            self.refusing[place] -= 1
            self.refused_places.append(place)


async def test_restarted_member_returns_after_the_others_have_rebalanced() -> None:
    group = Group("eager")
    restarting = asyncio.create_task(Restarts(group.changes).restart_each(RestartEach(away_ms=0)))
    await group.noticing.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    assert group.done == ["m1 goes"]
    group.noticing.clear()
    group.rebalances("m2")
    await group.noticing.wait()
    group.rebalances("m1")
    await restarting
    assert group.done == ["m1 goes", "m1 comes back", "m2 goes", "m2 comes back"]


async def test_restarted_member_returns_at_once_if_its_absence_goes_unnoticed() -> None:
    group = Group("static")
    restarts = Restarts(group.changes)
    await restarts.restart_each(RestartEach(away_ms=0, settings={"a": "b"}))
    assert group.done == ["m1 goes", "m1 comes back", "m2 goes", "m2 comes back"]
    assert [(each["change"], each["round_"], each["members"]) for each in group.traced] == [
        ("restart", 1, 2),
        ("restart", 2, 2),
    ]
    await restarts.restart_each(RestartEach(away_ms=0))
    assert [each["round_"] for each in group.traced] == [1, 2, 3, 4]
    assert group.traced[0]["detail"] == {"target": "m1", "life": "m1.2", "away_ms": 0, "settings": {"a": "b"}}


async def test_a_bounce_waits_for_nobody_and_starts_those_again_that_were_refused() -> None:
    group = Group("eager")
    group.refusing = {"m1": 3, "m2": 1}
    await Restarts(group.changes).restart_each(RestartEach(away_ms=0, settings={"a": "b"}, wait=False))
    assert group.done[:4] == ["m1 goes", "m1 comes back", "m2 goes", "m2 comes back"]
    again = ["m1 goes", "m1 comes back"]
    assert group.done[4:] == [*again, "m2 goes", "m2 comes back", *again, *again]
    (change,) = group.traced
    assert (change["change"], change["members"]) == ("bounce", 2)


@pytest.mark.parametrize(
    ("design", "done"),
    [("zookeeper", ["m2 goes", "m2 comes back for orders-1"]), ("eager", ["m2 subscribes to orders-1"])],
)
async def test_change_of_topics_restarts_a_member_only_where_necessary(design: str, done: list[str]) -> None:
    group = Group(design)
    await Restarts(group.changes).resubscribe(Resubscribe(2, (1,), 2))
    assert group.done == done
    (change,) = group.traced
    assert change["detail"] == {"target": "m2", "topics": ["orders-1"], "restart": design == "zookeeper"}


@pytest.mark.parametrize(
    ("design", "done"),
    [
        ("zookeeper", ["m1 goes", "m1 comes back for .*-1", "m2 goes", "m2 comes back for .*-1"]),
        ("eager", ["m1 subscribes to .*-1", "m2 subscribes to .*-1"]),
    ],
)
async def test_new_pattern_reaches_one_member_after_the_other_and_its_topics_are_wanted_from_the_first_on(
    design: str, done: list[str]
) -> None:
    group = Group(design)
    await Restarts(group.changes).subscribe_pattern(SubscribePattern(".*-1"))
    assert group.done == done
    assert [each["round_"] for each in group.traced] == [1, 2]
    assert [each["detail"].get("after") for each in group.traced] == [2, None]
    assert group.view.partitions == {tp for tp in PARTITIONS if tp.topic == "orders-1"}
    assert [(e["topic"], e["wanted"]) for e in group.tracer.of("topic_wanted")] == [("orders-1", 2)]


async def test_restarted_members_may_be_of_another_design() -> None:
    group = Group("static")
    await Restarts(group.changes).restart_each(RestartEach(away_ms=0, design="eager"))
    assert group.done == ["m1 goes", "m1 comes back as eager", "m2 goes", "m2 comes back as eager"]
    assert {each["detail"]["design"] for each in group.traced} == {"eager"}
