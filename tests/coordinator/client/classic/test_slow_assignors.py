"""A slow assignor blocks neither heartbeats nor anything else on the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

import coordinator.assignment.sticky
import coordinator.client.classic.group_leader
from coordinator.membership.classic.delayed_leader import DelayedLeader
from coordinator.service.mount import mount
from kernel.assignors.per_topic import assign_ranges
from kernel.assignors.registry import assignor
from kernel.broker.broker import Broker
from kernel.runtime import REAL
from kernel.waiting import until
from kernel.wire.versions import Api
from tests.support.brokers.live import create_topics, running_broker
from tests.support.consumers.commander import commanded
from tests.support.consumers.consuming import partitions_of, shared_out
from tests.support.consumers.eager import bootstrap_of, eager
from tests.support.coordinators.failover import cluster
from tests.support.trace.tracers import ListTracer
from tests.support.wire.clients import WireConnection

#: Longer than the pauses of a busy machine, in which no heartbeat is sent.
SESSION_S = 15
#: Longer than the session.
DECISION_S = 17
EVERYTHING = partitions_of("t", 4)

DESIGNS = {
    "eager": {"partition.assignment.strategy": "range"},
    "static": {"partition.assignment.strategy": "range", "group.instance.id": "instance"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "delayed": {"partition.assignment.strategy": "delayed"},
}


def slowed(compute: Callable[..., Any]) -> Callable[..., Any]:
    """`compute`, after DECISION_S that never yield to the event loop: some Python code, and mostly sleep."""

    def slow(*given: Any, **named: Any) -> Any:
        end = time.monotonic() + DECISION_S
        while time.monotonic() < end:
            sum(range(10_000))
            time.sleep(0.05)
        return compute(*given, **named)

    return slow


@pytest.fixture
def slow_assignors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator.client.classic.group_leader, "assignor", lambda name: slowed(assignor(name)))
    monkeypatch.setattr(coordinator.assignment.sticky, "decide", slowed(coordinator.assignment.sticky.decide))
    monkeypatch.setattr(DelayedLeader, "decide", slowed(DelayedLeader.decide))


@pytest.mark.usefixtures("slow_assignors")
async def test_leader_stays_in_the_group_while_its_strategy_computes_longer_than_the_session(
    chroot: str, tmp_path: Path
) -> None:
    async with cluster(chroot, tmp_path, 2) as brokers, AsyncExitStack() as stack:
        await brokers.create_topic("u", 4)
        leaders = {
            design: eager(
                brokers.bootstrap, group=design, settings={**settings, "session.timeout.ms": str(SESSION_S * 1000)}
            )
            for design, settings in DESIGNS.items()
        }
        for leader in leaders.values():
            stack.push_async_callback(leader.close)
            await leader.begin({"u": 1})
        wanted = dict.fromkeys(DESIGNS, partitions_of("u", 4))
        await until(lambda: {d: m.owned for d, m in leaders.items()} == wanted, 60, "the assignments")
        for leader in leaders.values():  # in the first generation: no member was removed
            assert [event["generation"] for event in leader.tracer.of("partitions_assigned")] == [1]
            errors = {event.get("error") for event in leader.tracer.of("attempt_ended")}
            # The groups' partitions are new as well: their leader may learn of them, and load them, only after the
            # other broker has named it.
            assert errors <= {None, "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"}


class BlockedAssignor:
    """Answers once `may_answer` is set. `groups` holds the members of each call, in order."""

    def __init__(self) -> None:
        self.groups: list[set[str]] = []
        self.may_answer = threading.Event()
        self.waited = True

    def __call__(self, sizes: Any, subscriptions: Any) -> Any:
        self.groups.append(set(subscriptions))
        self.waited = self.may_answer.wait(200) and self.waited
        return assign_ranges(sizes, subscriptions)


@contextmanager
def blocked_assignor(monkeypatch: pytest.MonkeyPatch, where: str) -> Iterator[BlockedAssignor]:
    assignor = BlockedAssignor()
    monkeypatch.setattr(f"{where}.assignor", lambda _: assignor)
    try:
        yield assignor
        assert assignor.waited, "the event loop stopped while the assignor computed"
    finally:
        assignor.may_answer.set()


@asynccontextmanager
async def broker_with_topic(chroot: str, tmp_path: Path) -> AsyncIterator[tuple[Broker, ListTracer]]:
    tracer = ListTracer()
    async with running_broker(chroot, tmp_path, mount=(mount,), tracer=tracer) as broker:
        await create_topics(broker, {"t": 4})
        yield broker, tracer


async def test_rebalance_that_begins_while_the_leader_computes_starts_a_new_computation(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with blocked_assignor(monkeypatch, "coordinator.client.classic.group_leader") as assignor:
        async with broker_with_topic(chroot, tmp_path) as (broker, tracer), AsyncExitStack() as stack:
            members = [eager(bootstrap_of(broker)), eager(bootstrap_of(broker))]
            for number, member in enumerate(members, 1):
                stack.push_async_callback(member.close)
                await member.begin({"t": 1})
                await until(lambda n=number: len(assignor.groups) == 1 and _joined(tracer) == n, 60, "its JoinGroup")
            assignor.may_answer.set()
            await shared_out(members, EVERYTHING)
            assert [len(group) for group in assignor.groups[:2]] == [1, 2]
            refused = [event.get("error") for event in members[0].tracer.of("attempt_ended")]
            assert "REBALANCE_IN_PROGRESS" in refused  # its SyncGroup of the previous generation


def _joined(tracer: ListTracer) -> int:
    return len(tracer.of("group_member_joined"))


async def test_consumer_closed_while_it_computes_leaves_at_once(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with blocked_assignor(monkeypatch, "coordinator.client.classic.group_leader") as assignor:
        async with broker_with_topic(chroot, tmp_path) as (broker, tracer):
            member = await eager(bootstrap_of(broker)).begin({"t": 1})
            await until(lambda: len(assignor.groups) == 1, 60, "the call to the assignor")
            await member.close()
            assert not assignor.may_answer.is_set()
            assert [event["reason"] for event in tracer.of("group_member_left")] == ["leave"]
            assignor.may_answer.set()
            async with AsyncExitStack() as stack:  # its answer, if it still comes, is not used
                other = eager(bootstrap_of(broker))
                stack.push_async_callback(other.close)
                await shared_out([await other.begin({"t": 1})], EVERYTHING)


async def test_broker_serves_others_while_its_own_strategy_computes(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with blocked_assignor(monkeypatch, "coordinator.groups.server.strategies") as assignor:
        async with broker_with_topic(chroot, tmp_path) as (broker, tracer), AsyncExitStack() as stack:
            members = [commanded(bootstrap_of(broker), chroot) for _ in range(2)]
            for member in members:
                stack.push_async_callback(member.close)
            await members[0].begin({"t": 1})
            await until(lambda: len(assignor.groups) == 1, 60, "the call to the assignor")
            bystander = await WireConnection.open(broker.address.host, broker.address.port, "bystander")
            stack.callback(bystander.close)
            answer = await bystander.send(Api.Metadata, 4, {"topics": []})
            assert len(answer.brokers) == 1
            await members[1].begin({"t": 1})  # the assignment that is being computed is out of date now
            await until(lambda: _joined(tracer) == 2, 60, "its id to be seen")
            assignor.may_answer.set()
            await shared_out(members, EVERYTHING)
            assert [len(group) for group in assignor.groups] == [1, 2]


class Odd(BaseException):
    """An exception that no strategy should raise."""


@pytest.mark.parametrize("raised", [ValueError("no"), Odd("no")])
async def test_exception_of_a_computation_is_raised_to_its_waiter(raised: BaseException) -> None:
    def work() -> None:
        raise raised

    with pytest.raises(type(raised), match="no"):
        await REAL.threads.compute(work, "test")


async def test_cancelled_computation_is_dropped_and_does_not_keep_the_loop_open() -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait(30)
        ended.set()

    waiting = asyncio.create_task(REAL.threads.compute(work, "test"))
    await until(begun.is_set, 60, "the thread to begin")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not ended.is_set()  # the loop is closed already
    may_end.set()
    assert ended.wait(10)
