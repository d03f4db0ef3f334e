"""What auto-commit commits: what earlier polls handed out, and nothing that its own poll hands out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from coordinator.service import mount
from kernel.waiting import until
from tests.support.brokers import create_topics, running_broker
from tests.support.consuming import producing
from tests.support.eager import bootstrap_of, eager

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.consuming import Running


def last_commit(member: Running) -> object:
    return next((event["offset"] for event in reversed(member.tracer.of("commit_answered"))), None)


def test_auto_commit_leaves_out_what_its_own_poll_hands_out(chroot: str, tmp_path: Path) -> None:
    """The application has not dealt with that yet; if it dies now, somebody has to read it again."""

    async def test() -> None:
        async with running_broker(chroot, tmp_path, mount=(mount,)) as broker:
            await create_topics(broker, {"t": 1})
            async with producing(bootstrap_of(broker)) as producer:
                await producer.send("t", 20)
            member = eager(bootstrap_of(broker), settings={"auto.commit.interval.ms": "0"})
            consumer = member.consumer
            await consumer.start()
            await consumer.subscribe({"t": 1})
            for before in (0, 5, 10):
                (batch,) = await consumer.getmany(timeout_ms=10_000, max_records=5)
                assert len(batch.records) == 5
                await until(lambda: last_commit(member) is not None, 10, "a commit")
                assert last_commit(member) == before
                member.tracer.events.clear()
            await consumer.close()
            assert last_commit(member) == 15

    asyncio.run(test())
