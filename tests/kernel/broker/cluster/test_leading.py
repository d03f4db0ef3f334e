"""Notifying listeners of leadership: in order, one call at a time, and what refusals lead to."""

from __future__ import annotations

import asyncio
import random
import uuid

import pytest

from kernel.broker.cluster.cluster_view import ClusterSnapshot, Leadership, PartitionView, TopicView
from kernel.broker.cluster.leading import Leading, wanted
from kernel.broker.storage.errors import Fenced, LogStopped, StorageError, StorageFailed
from kernel.values import TopicPartition
from kernel.waiting import until
from tests.support.trace.tracers import ListTracer

TP = TopicPartition("t", 0)
TOPIC_ID = uuid.UUID(int=5)
NOTHING = ClusterSnapshot()


def lead(epoch: int) -> dict[TopicPartition, Leadership]:
    return {TP: Leadership(TP, TOPIC_ID, epoch)}


class Listener:
    """Records calls; `on_lead` waits for `gate`, and raises `errors` in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.errors: list[Exception] = []
        self.inside = 0

    async def on_lead(self, leadership: Leadership) -> None:
        self.inside += 1
        assert self.inside == 1
        self.calls.append(f"lead {leadership.leader_epoch}")
        await self.gate.wait()
        self.inside -= 1
        if self.errors:
            raise self.errors.pop(0)

    async def on_resign(self, topic_partition: TopicPartition) -> None:
        assert self.inside == 0
        assert topic_partition == TP
        self.calls.append("resign")


def made() -> tuple[Leading, Listener, ListTracer]:
    tracer, listener = ListTracer(), Listener()
    leading = Leading(1, tracer)
    leading.subscribe(listener, lambda _: True)
    return leading, listener, tracer


def test_view_is_read_for_what_this_broker_leads() -> None:
    partitions = (PartitionView((1, 2), leader=1, leader_epoch=3), PartitionView((1, 2), leader=2, leader_epoch=0))
    assert wanted(TopicView("t", TOPIC_ID, partitions), 1) == lead(3)


async def test_following_the_view_change_by_change_leads_the_same_as_the_view() -> None:
    """Topics are created, deleted, recreated, grow and move; a registration is lost, and one cannot be trusted."""
    rng = random.Random(7)

    def some_topic(name: str) -> TopicView:
        partitions = [
            PartitionView((1, 2), leader=rng.choice((1, 2, -1)), leader_epoch=rng.randrange(3))
            for _ in range(rng.randint(1, 4))
        ]
        return TopicView(name, uuid.UUID(int=rng.randint(1, 3)), tuple(partitions))

    class Instant:
        async def on_lead(self, _: Leadership) -> None: ...

        async def on_resign(self, _: TopicPartition) -> None: ...

    leading = Leading(1, ListTracer())
    leading.subscribe(Instant(), lambda _: True)
    topics: dict[str, TopicView] = {}
    for _ in range(300):
        topics = dict(topics)
        for name in rng.sample("abcdef", rng.randint(0, 2)):
            if rng.random() < 0.3:
                topics.pop(name, None)
            else:
                topics[name] = some_topic(name)
        registered = rng.random() > 0.1
        if registered:
            leading.follow(ClusterSnapshot(topics=topics))
        else:
            leading.want({}, ClusterSnapshot(topics=topics))
            leading.forget_refusals()
        await leading.settled()
        expected = {tp: it for topic in topics.values() for tp, it in wanted(topic, 1).items() if registered}
        every = [TopicPartition(name, number) for name in "abcdef" for number in range(4)]
        assert {tp: it for tp in every if (it := leading.led(tp)) is not None} == expected


async def test_resignation_waits_for_the_takeover_and_only_the_last_state_counts() -> None:
    leading, listener, tracer = made()
    listener.gate.clear()
    leading.want(lead(0), NOTHING)
    await until(lambda: listener.calls == ["lead 0"], 60, "the first request to be reported")
    leading.want({}, NOTHING)
    leading.want(lead(2), NOTHING)
    assert leading.led(TP) is None
    listener.gate.set()
    await leading.settled()
    assert listener.calls == ["lead 0", "resign", "lead 2"]
    assert leading.led(TP) == lead(2)[TP]
    assert [e["leader_epoch"] for e in tracer.of("leader_changed")] == [0, 0, 2]


async def test_revoked_leadership_is_denied_at_once() -> None:
    leading, _, _ = made()
    leading.want(lead(0), NOTHING)
    await leading.settled()
    leading.want({}, NOTHING)
    assert leading.led(TP) is None
    await leading.settled()


async def test_fenced_takeover_is_not_repeated_before_the_view_changes() -> None:
    leading, listener, tracer = made()
    listener.errors = [Fenced("higher")]
    for _ in range(3):
        leading.want(lead(1), NOTHING)
        await leading.settled()
    assert listener.calls == ["lead 1", "resign"]
    assert tracer.of("leader_changed") == []
    leading.want(lead(2), NOTHING)
    await leading.settled()
    assert listener.calls[2:] == ["lead 2"]


async def test_failed_takeover_is_repeated_while_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel.broker.cluster.leading._RETRY_S", 0.001)
    leading, listener, _ = made()
    listener.errors = [StorageFailed("full"), StorageFailed("full")]
    leading.want(lead(1), NOTHING)
    await leading.settled()
    assert listener.calls == ["lead 1", "resign", "lead 1", "resign", "lead 1"]
    assert leading.led(TP) is not None


async def test_wait_before_a_retry_ends_when_it_is_no_longer_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel.broker.cluster.leading._RETRY_S", 3_600)
    leading, listener, _ = made()
    listener.errors = [StorageFailed("full")]
    leading.want(lead(1), NOTHING)
    await until(lambda: listener.calls == ["lead 1", "resign"], 60, "the first attempt to fail")
    leading.want({}, NOTHING)
    await asyncio.wait_for(leading.settled(), 60)


@pytest.mark.parametrize(
    ("error", "afterwards"), [(Fenced("higher"), ["resign"]), (StorageFailed("unknown"), ["resign", "lead 1"])]
)
async def test_log_that_closed_by_itself_is_resigned_and_led_again_only_after_an_unreadable_fence(
    error: StorageError, afterwards: list[str]
) -> None:
    leading, listener, _ = made()
    leading.want(lead(1), NOTHING)
    await leading.settled()
    leading.lost(TP, error)
    assert leading.led(TP) is None
    leading.lost(TP, error)
    await leading.settled()
    assert listener.calls == ["lead 1", *afterwards]


async def test_listener_with_an_internal_error_has_to_resign_and_is_not_called_again_at_this_epoch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    leading, listener, _ = made()
    listener.errors = [KeyError("lost")]
    leading.want(lead(0), NOTHING)
    await asyncio.wait_for(leading.settled(), 60)
    leading.want(lead(0), NOTHING)
    await leading.settled()
    assert listener.calls == ["lead 0", "resign"]
    assert leading.led(TP) is None
    leading.want(lead(1), NOTHING)
    await leading.settled()
    assert leading.led(TP) == lead(1)[TP]
    assert [record.exc_info is not None for record in caplog.records if record.levelname == "CRITICAL"] == [True]


async def test_partition_whose_log_an_internal_error_stopped_is_not_led_again_at_this_epoch() -> None:
    leading, listener, _ = made()
    leading.want(lead(0), NOTHING)
    await leading.settled()
    leading.lost(TP, LogStopped("a mistake"))
    await asyncio.wait_for(leading.settled(), 60)
    assert listener.calls == ["lead 0", "resign"]
    leading.forget_refusals()
    leading.want(lead(0), NOTHING)
    await leading.settled()
    assert leading.led(TP) == lead(0)[TP], "a new registration starts afresh"


async def test_listener_that_cannot_resign_does_not_affect_the_others(caplog: pytest.LogCaptureFixture) -> None:
    class Unwilling(Listener):
        async def on_resign(self, topic_partition: TopicPartition) -> None:
            raise MemoryError

    leading, unwilling, willing = Leading(1, ListTracer()), Unwilling(), Listener()
    for listener in (unwilling, willing):
        leading.subscribe(listener, lambda _: True)
    leading.want(lead(0), NOTHING)
    await leading.settled()
    leading.want({}, NOTHING)
    await asyncio.wait_for(leading.settled(), 60)
    assert willing.calls == ["lead 0", "resign"]
    assert [record.levelname for record in caplog.records] == ["CRITICAL"]


async def test_partition_of_a_deleted_topic_is_traced_as_such_also_if_the_topic_is_there_again() -> None:
    leading, _, tracer = made()
    partitions = (PartitionView((1,), leader=1, leader_epoch=0),)
    for topic_id in (uuid.UUID(int=5), uuid.UUID(int=6), None):
        topics = {} if topic_id is None else {"t": TopicView("t", topic_id, partitions)}
        leading.follow(ClusterSnapshot(topics=topics))
        await leading.settled()
    assert [e["leader"] for e in tracer.of("leader_changed")] == [1, -2, 1, -2]


async def test_partition_whose_state_goes_before_its_topic_is_traced_as_deleted() -> None:
    leading, _, tracer = made()
    for leader, epoch in ((1, 3), (-1, -1)):
        view = TopicView("t", uuid.UUID(int=5), (PartitionView((1,), leader=leader, leader_epoch=epoch),))
        leading.follow(ClusterSnapshot(topics={"t": view}))
        await leading.settled()
    assert [e["leader"] for e in tracer.of("leader_changed")] == [1, -2]
