"""An unreadable batch is reported and not skipped, as in Kafka's consumer, and reading goes on in other partitions."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

import pytest

from coordinator.client.fetcher import Fetcher, FetchFailed
from kernel.client.client import ClusterClient
from kernel.trace.writer import SilentTracer, Tracer
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from tests.support.brokers.scripted import ScriptedBroker, scripted_broker
from tests.support.trace.tracers import ListTracer
from tests.support.wire.bad_batches import bad_batches

BROKEN, WHOLE = TopicPartition("t", 0), TopicPartition("t", 1)
BAD = bad_batches()
SILENT = SilentTracer()


@dataclass(frozen=True)
class Settings:
    auto_offset_reset: str = "earliest"
    fetch_max_wait_ms: int = 5
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 1_000_000
    max_partition_fetch_bytes: int = 1_000_000
    request_timeout_ms: int = 5_000
    retry_backoff_ms: int = 5
    isolation_level: str = "read_uncommitted"


async def taken(fetcher: Fetcher, tp: TopicPartition, number: int) -> list[bytes | None]:
    """The next values of one partition; records of others are dropped. Raises what `take` raises."""
    found: list[bytes | None] = []

    def all_there() -> bool:
        for batch in fetcher.take(100):
            found.extend(record.value for record in batch.records if batch.topic_partition == tp)
        return len(found) >= number

    await until(all_there, 60, lambda: f"{number} records of {tp}, got {found}")
    return found


@pytest.mark.parametrize("name", ["checksum wrong", "garbage", "garbage for zstd", "last record cut"])
def test_unreadable_batch_is_reported_with_its_offset_and_other_partitions_go_on(name: str) -> None:
    async def story(broker: ScriptedBroker, fetcher: Fetcher) -> None:
        log = broker.log("t", 0)
        log.append(b"a", b"b")
        log.batches[log.end] = log.end.to_bytes(8, "big") + BAD[name].batch[8:]
        log.end += 3
        log.append(b"behind")
        broker.log("t", 1).append(b"c")
        fetcher.begin(0, "m", {BROKEN: 0, WHOLE: 0})
        assert await taken(fetcher, BROKEN, 2) == [b"a", b"b"]
        for further in (b"d", b"e"):
            with pytest.raises(
                FetchFailed, match=r"t-0: the record batch at offset 2 cannot be read: .*commit a later"
            ):
                await taken(fetcher, BROKEN, 1)
            assert fetcher.position(BROKEN) == 2, "nothing is skipped"
            broker.log("t", 1).append(further)
            await until(lambda: fetcher.position(WHOLE) == broker.log("t", 1).end or _take(fetcher), 60, "the others")
        fetcher.begin(0, "m", {BROKEN: 5})
        assert await taken(fetcher, BROKEN, 1) == [b"behind"]

    asyncio.run(asyncio.wait_for(on_a_scripted_broker(story), 300))


def test_place_sought_for_a_partition_that_is_dropped_before_it_begins_is_forgotten() -> None:
    async def story(broker: ScriptedBroker, fetcher: Fetcher) -> None:
        broker.log("t", 0).append(b"a", b"b", b"c")
        for stream in (0, 1):
            fetcher.seek(stream, BROKEN, 2)
        fetcher.drop(0)
        fetcher.begin(0, "m", {BROKEN: 1})
        assert await taken(fetcher, BROKEN, 2) == [b"b", b"c"]
        fetcher.drop(0)
        fetcher.begin(1, "m", {BROKEN: 1})
        assert await taken(fetcher, BROKEN, 1) == [b"c"]

    asyncio.run(asyncio.wait_for(on_a_scripted_broker(story), 300))


def test_paused_partition_is_reset_all_the_same() -> None:
    """With `latest`, what is written during the pause would be skipped otherwise. In Kafka no position waits either."""

    async def story(broker: ScriptedBroker, fetcher: Fetcher) -> None:
        log = broker.log("t", 0)
        log.append(b"a")
        fetcher.pause(0, "m", {BROKEN})
        fetcher.begin(0, "m", {BROKEN: None})
        await until(lambda: fetcher.position(BROKEN) == 1, 60, "the reset")
        log.append(b"b")
        fetcher.resume(0, {BROKEN})
        assert await taken(fetcher, BROKEN, 1) == [b"b"]

    asyncio.run(asyncio.wait_for(on_a_scripted_broker(story, Settings(auto_offset_reset="latest")), 300))


def test_refused_fetch_is_traced_when_it_begins_and_not_for_each_attempt() -> None:
    tracer = ListTracer()

    async def story(broker: ScriptedBroker, fetcher: Fetcher) -> None:
        log = broker.log("t", 0)
        log.append(b"a")
        for value in (b"b", b"c"):
            log.error = ErrorCode.not_leader_or_follower
            fetcher.begin(0, "m", {BROKEN: log.end - 1})
            fetches = len(broker.fetches)
            await until(lambda before=fetches: len(broker.fetches) >= before + 3, 60, "the fetch to be tried again")
            log.error = ErrorCode.none
            assert len(await taken(fetcher, BROKEN, 1)) == 1
            log.append(value)

    asyncio.run(asyncio.wait_for(on_a_scripted_broker(story, tracer=tracer), 300))
    refused = [(event["partition"], event["error"]) for event in tracer.of("fetch_refused")]
    assert refused == [(0, "NOT_LEADER_OR_FOLLOWER")] * 2


def _take(fetcher: Fetcher) -> bool:
    with contextlib.suppress(FetchFailed):
        fetcher.take(100)
    return False


async def on_a_scripted_broker(  # type: ignore[no-untyped-def]
    story, settings: Settings = Settings(), tracer: Tracer = SILENT
) -> None:
    async with scripted_broker() as broker:
        broker.leaders = {BROKEN: broker.address, WHOLE: broker.address}
        client = ClusterClient([(broker.address.host, broker.address.port)], "test")
        fetcher = Fetcher(client, settings, tracer, lambda: None)
        try:
            await story(broker, fetcher)
        finally:
            await fetcher.close()
            await client.close()
