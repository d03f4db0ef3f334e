"""Injecting and healing: the order, what is traced, and what is left to heal at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from comparison.scenarios.plan.vocabulary import At, Heal, Inject, Settle
from comparison.scenarios.run import injections
from comparison.scenarios.run.injections import Injections
from comparison.scenarios.run.link_faults import Cable
from comparison.scenarios.run.member_faults import Slow
from comparison.scenarios.run.performer import Performer
from comparison.scenarios.testbed.link import BOTH_WAYS, Way
from kernel.waiting import until
from tests.support.trace.tracers import ListTracer


class Run:
    """What performers and steps do is noted in `done`; the trace is in `tracer`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, failing: str = "") -> None:
        self.done: list[str] = []
        self.tracer = ListTracer()
        self.changes: Any = SimpleNamespace(
            tracer=self.tracer,
            members=SimpleNamespace(present=4),
            testbed=None,
            enter_stage=lambda stage: self.done.append(f"stage {stage}"),
            settle=self.settle,
        )

        class Noting(Performer):
            async def setup(noting) -> None:  # noqa: N805 - the outer self is used as well
                noting.target = noting.target.replace("owner", "m2")

            async def inject(noting) -> None:  # noqa: N805
                self.done.append(f"inject {noting.target}")
                if noting.target == failing:
                    raise RuntimeError("halfway")

            async def heal(noting) -> None:  # noqa: N805
                self.done.append(f"heal {noting.target}")

        monkeypatch.setattr(injections, "PERFORMERS", dict.fromkeys(injections.PERFORMERS, Noting))
        self.injections = Injections(self.changes)

    async def settle(self) -> None:
        self.done.append("settle")

    def perform(self, *steps: Inject | Heal) -> None:
        async def all_() -> None:
            for step in steps:
                await (self.injections.inject(step) if isinstance(step, Inject) else self.injections.heal(step))

        asyncio.run(all_())

    def traced(self) -> list[tuple[object, ...]]:
        names = ("kind", "fault", "target", "change", "round", "detail")
        return [tuple(event[name] for name in names if name in event) for event in self.tracer.events]


def test_a_fault_is_traced_with_its_target_and_all_its_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch)
    run.perform(Inject("delay", "owner->data", {"by_ms": 20}), Heal("delay"))
    assert run.done == ["stage fault", "inject m2->data", "stage heal", "heal m2->data", "settle"]
    assert run.traced() == [
        ("fault_started", "delay", "m2->data", {"by_ms": 20, "ways": "both"}),
        ("fault_ended", "delay", "m2->data"),
    ]


def test_faults_are_healed_in_reverse_and_the_group_settles_when_none_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch)
    run.perform(Inject("freeze", "m1"), Inject("freeze", "m2"), Inject("slow", "m3"), Heal("slow"))
    assert "settle" not in run.done
    run.done.clear()
    run.perform(Heal())
    assert run.done == ["stage heal", "heal m2", "heal m1", "settle"]


def test_a_heal_that_waits_for_nobody_may_have_a_frozen_member_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch)
    run.changes.members.commit_remembered = lambda name: run.done.append(f"commit {name}")
    run.perform(Inject("freeze", "owner"), Inject("freeze", "broker-1"), Inject("slow", "m3"))
    run.done.clear()
    run.perform(Heal(wait=False, commits=True))
    assert run.done == ["commit m2", "stage heal", "heal m3", "heal broker-1", "heal m2"]


def test_a_moment_counts_from_the_end_of_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    run, slept = Run(monkeypatch), list[float]()

    async def sleep_until(loop_s: float) -> None:
        slept.append(loop_s)

    monkeypatch.setattr(injections, "sleep_until", sleep_until)
    run.changes.begun_s = 100.0
    asyncio.run(run.injections.at(At(12_340)))
    assert slept == [112.34]


def test_a_fault_that_is_over_at_once_ends_in_the_trace_and_leaves_nothing_to_heal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(monkeypatch)
    run.perform(Inject("flap", "m1", {"times": 1}))
    asyncio.run(run.injections.end())
    assert run.done == ["stage fault", "inject m1"]
    assert [event[0] for event in run.traced()] == ["fault_started", "fault_ended"]


def test_a_fault_without_a_heal_is_healed_at_the_end_also_if_it_failed_halfway(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, failing="m1")
    with pytest.raises(RuntimeError, match="halfway"):
        run.perform(Inject("freeze", "m1"))
    asyncio.run(run.injections.end())
    assert run.done[-2:] == ["heal m1", "settle"]


def test_a_kill_is_a_change_of_the_group_that_settles_after_the_heal(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch)
    run.perform(Inject("kill", "owner"), Heal(), Inject("kill", "leader"), Heal())
    changes = [event for event in run.traced() if str(event[0]).startswith("change")]
    assert [event[:3] for event in changes] == [
        ("change_started", "kill", 1),
        ("change_settled", "kill", 1),
        ("change_started", "kill", 2),
        ("change_settled", "kill", 2),
    ]


def test_who_has_joined_or_left_is_a_change_that_stays_as_it_is_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch)
    run.perform(Inject("leave", "m1"), Inject("freeze", "m2"), Heal("freeze"))
    asyncio.run(run.injections.end())
    assert run.done == ["stage fault", "inject m1", "stage fault", "inject m2", "stage heal", "heal m2", "settle"]
    changes = [event for event in run.traced() if str(event[0]).startswith("change")]
    assert changes == [("change_started", "leave", 1), ("change_settled", "leave", 1)]


def test_a_change_that_no_step_waits_for_settles_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch)
    run.perform(Inject("join", "group"))
    asyncio.run(run.injections.end())
    asyncio.run(run.injections.end())
    assert run.done == ["stage fault", "inject group", "settle"]
    assert run.traced()[-1] == ("change_settled", "join", 1)


def test_a_change_before_the_last_one_has_settled_leaves_that_one_open(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch)
    run.perform(Inject("leave", "m1"), Inject("leave", "m2"))
    asyncio.run(run.injections.settle(Settle()))
    assert [event[1:] for event in run.traced() if event[0] == "change_settled"] == [("leave", 2)]


@pytest.mark.parametrize(
    ("ways", "connects", "held"),
    [
        ("both", True, BOTH_WAYS),
        ("out", True, {Way.TO_UPSTREAM}),
        ("in", True, {Way.TO_CLIENT}),
        ("out", False, {Way.TO_CLIENT}),
        ("in", False, {Way.TO_UPSTREAM}),
    ],
)
def test_directions_are_those_of_the_end_that_the_fault_names(ways: str, connects: bool, held: frozenset[Way]) -> None:
    proxy: Any = None
    assert Cable(proxy, frozenset, connects).ways(ways) == held


def test_parameters_of_a_performer_are_whole_numbers() -> None:
    values: Mapping[str, int | str] = {"away_ms": 300}
    changes: Any = SimpleNamespace(members=None, testbed=None)
    assert Performer(changes, "m1", values).number("away_ms") == 300


async def test_a_slow_member_is_slow_once_its_last_poll_has_returned() -> None:
    sent: list[str] = []
    view = SimpleNamespace(stopped_polling=set())
    members: Any = SimpleNamespace(view=view, slow_down=sent.append)
    changes: Any = SimpleNamespace(members=members, testbed=None)
    slowing = asyncio.create_task(Slow(changes, "m2", {}).inject())
    await until(lambda: sent == ["m2"], 60, "the command")
    for _ in range(3):
        await asyncio.sleep(0)
    assert not slowing.done()
    view.stopped_polling.add("m2")
    await asyncio.wait_for(slowing, 20)


def test_a_member_that_cannot_stop_polling_is_not_waited_for_indefinitely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("comparison.scenarios.run.member_faults._POLL_S_MAX", 0.01)
    members: Any = SimpleNamespace(view=SimpleNamespace(stopped_polling=set()), slow_down=lambda _: None)
    changes: Any = SimpleNamespace(members=members, testbed=None)
    asyncio.run(asyncio.wait_for(Slow(changes, "m2", {}).inject(), 20))
