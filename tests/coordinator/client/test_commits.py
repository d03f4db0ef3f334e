"""Under which identity a commit is sent, and after which errors again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator.client.commits import DROPPED, RETRIED, CommitRequest, commit
from coordinator.membership.effects import Identity
from coordinator.membership.events import UNANSWERED
from coordinator.service.mount import mount
from kernel.clock import NS_PER_MS
from kernel.runtime import Runtime
from kernel.values import CommitOutcome, TopicPartition
from kernel.waiting import until
from tests.support.brokers.live import create_topics, running_broker
from tests.support.consumers.commander import commanded
from tests.support.consumers.consuming import Running, producing
from tests.support.consumers.eager import bootstrap_of, eager
from tests.support.time.manual_clock import ManualClock
from tests.support.trace.tracers import ListTracer

TP = TopicPartition("t", 0)
STALE = "STALE_MEMBER_EPOCH"


@dataclass
class Group:
    """A member whose identity changes with each refused commit, and a coordinator that gives these answers."""

    answers: list[str]
    identities: list[Identity | None]
    sent: list[int] = field(default_factory=list)
    tracer: ListTracer = field(default_factory=lambda: ListTracer(process="m"))
    reported: list[str] = field(default_factory=list)  #: errors that the member hears of

    async def commit(
        self, _: object, identity: Identity, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, str]:
        self.sent.append(identity.generation)
        if not self.answers:
            await asyncio.Event().wait()
        if len(self.identities) > 1:
            self.identities.pop(0)
        return dict.fromkeys(offsets, self.answers.pop(0))

    def ask(self, retried: frozenset[str], *, give_up_ms: int = 60_000) -> CommitOutcome:
        stream: Any = SimpleNamespace(
            number=0,
            committing=asyncio.Lock(),
            member=SimpleNamespace(stamp=0),
            connection=object(),
            refused=lambda _, error, **__: self.reported.append(error),
        )
        context: Any = SimpleNamespace(
            config=SimpleNamespace(group_id="g", retry_backoff_ms=0),
            calls=self,
            tracer=self.tracer,
            runtime=Runtime(clock=ManualClock()),
        )
        request = CommitRequest(
            identity=lambda: self.identities[0],
            offsets={TP: 5},
            explicit=True,
            give_up_ns=give_up_ms * NS_PER_MS,
            retried=retried,
        )
        return asyncio.run(commit(stream, request, context))


def test_commit_is_sent_again_under_the_identity_of_the_moment_and_traced_with_it() -> None:
    group = Group([STALE, ""], [Identity("m", 1), Identity("m", 2)])
    assert group.ask(RETRIED | {STALE}).accepted == {TP: 5}
    assert group.sent == [1, 2]
    assert [event["generation"] for event in group.tracer.of("commit_answered")] == [2]


def test_commit_that_is_not_to_be_sent_again_is_refused() -> None:
    group = Group([STALE], [Identity("m", 1), Identity("m", 2)])
    assert group.ask(RETRIED).refused == {TP: STALE}


@pytest.mark.parametrize(("before", "error"), [([], DROPPED), (["NOT_COORDINATOR"], "NOT_COORDINATOR")])
def test_commit_is_not_sent_once_there_is_no_identity_for_it(before: list[str], error: str) -> None:
    group = Group(list(before), [*(Identity("m", 1) for _ in before), None])
    assert group.ask(RETRIED).refused == {TP: error}
    assert group.sent == [1 for _ in before]


def test_commit_that_is_out_of_time_costs_the_member_neither_its_coordinator_nor_the_connection() -> None:
    group = Group([], [Identity("m", 1)])
    assert group.ask(RETRIED, give_up_ms=10).refused == {TP: UNANSWERED}
    assert group.reported == []
    assert [event["outcome"] for event in group.tracer.of("commit_answered")] == ["unknown"]


# -- what auto-commit commits: what earlier polls returned, and nothing that the current poll returns ------------------


def last_commit(member: Running) -> object:
    return next((event["offset"] for event in reversed(member.tracer.of("commit_answered"))), None)


def member_of(kind: str, bootstrap: str, zookeeper: str) -> Running:
    settings = {"auto.commit.interval.ms": "0"}
    if kind == "server":
        return commanded(bootstrap, zookeeper, settings=settings)
    return eager(bootstrap, settings=settings)


@pytest.mark.parametrize("kind", ["eager", "server"])
async def test_auto_commit_excludes_the_records_of_its_own_poll(
    chroot: str, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application has not processed them yet; if it dies now, another member must read them again."""
    async with running_broker(chroot, tmp_path, mount=(mount,)) as broker:
        await create_topics(broker, {"t": 1})
        async with producing(bootstrap_of(broker)) as producer:
            await producer.send("t", 20)
        member = member_of(kind, bootstrap_of(broker), chroot)
        consumer: Any = member.consumer
        await consumer.start()
        await consumer.subscribe({"t": 1})
        for before in (0, 5, 10):
            (batch,) = await consumer.getmany(timeout_ms=10_000, max_records=5)
            assert len(batch.records) == 5
            await until(lambda: last_commit(member) is not None, 60, "a commit")
            assert last_commit(member) == before
            member.tracer.events.clear()
        (batch,) = await consumer.getmany(timeout_ms=10_000, max_records=5)
        # A poll that finds nothing waits, though every round of it commits.
        rounds, take = 0, consumer._fetcher.take

        def counted(limit: int) -> object:
            nonlocal rounds
            rounds += 1
            return take(limit)

        monkeypatch.setattr(consumer._fetcher, "take", counted)
        assert not await consumer.getmany(timeout_ms=300)
        assert rounds < 50
        await consumer.close()
        assert last_commit(member) == 20
