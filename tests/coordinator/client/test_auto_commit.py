"""What auto-commit commits: what earlier polls returned, and nothing that the current poll returns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coordinator.service.mount import mount
from kernel.waiting import until
from tests.support.brokers.live import create_topics, running_broker
from tests.support.consumers.commander import commanded
from tests.support.consumers.consuming import Running, producing
from tests.support.consumers.eager import bootstrap_of, eager


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
