"""Logs on real SQLite files: append, read, take over, fence, pairs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from kernel.broker.storage.errors import (
    Fenced,
    InvalidProducerEpoch,
    OffsetOutOfRange,
    OutOfOrderSequence,
    StorageFailed,
)
from kernel.broker.storage.logs import KeyValueLog, PartitionLog
from kernel.broker.storage.storage import Storage
from kernel.records.batches import ProducerStamp
from kernel.values import TopicPartition
from tests.support.brokers.stored import TOPIC_ID, TP, batch, cells, everything, opened


async def lead(storage: Storage, epoch: int) -> PartitionLog:
    return await storage.take_over(TP, TOPIC_ID, epoch)


async def lead_pairs(storage: Storage, epoch: int) -> KeyValueLog:
    return await storage.take_over_pairs(TP, TOPIC_ID, epoch)


async def write(log: PartitionLog, text: str) -> None:
    for letter in text:
        await log.append([batch(letter)])


async def test_append_assigns_consecutive_offsets(tmp_path: Path) -> None:
    async with opened(tmp_path) as storage:
        log = await lead(storage, 5)
        first, second = await log.append([batch("a", records=3)]), await log.append([batch("b")])
        assert (first.base_offset, first.last_offset) == (0, 2)
        assert (second.base_offset, second.last_offset) == (3, 3)
        assert cells(await log.read(0, 1000)) == [(0, 5, "a"), (3, 5, "b")]
        assert log.end_offset == 4


async def test_read_begins_with_the_batch_that_holds_the_offset_and_keeps_to_its_size(tmp_path: Path) -> None:
    async with opened(tmp_path) as storage:
        log = await lead(storage, 0)
        await log.append([batch("a", records=3), batch("b", records=2), batch("c")])
        assert [t[2] for t in cells(await log.read(2, 70))] == ["a", "b"]
        assert [t[2] for t in cells(await log.read(3, 1))] == ["b"]
        assert await log.read(3, 1, at_least_one=False) == b""
        assert await log.read(6, 1000) == b""
        for outside in (-1, 7):
            with pytest.raises(OffsetOutOfRange, match="offsets 0 to 6"):
                await log.read(outside, 1000)


async def test_concurrent_appends_to_several_partitions_share_transactions_and_do_not_mix(tmp_path: Path) -> None:
    async with opened(tmp_path) as storage:
        logs = [await storage.take_over(TopicPartition("t", p), TOPIC_ID, 0) for p in range(4)]
        results = await asyncio.gather(*(log.append([batch("x")]) for _ in range(100) for log in logs))
        for number, log in enumerate(logs):
            assert [r.base_offset for r in results[number::4]] == list(range(100))
            assert len(cells(await log.read(0, 10**6))) == 100


async def test_timestamp_search_finds_the_first_batch_that_reaches_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as storage:
        log = await lead(storage, 0)
        await log.append([batch("a", timestamp_ms=10), batch("b", timestamp_ms=30), batch("c", timestamp_ms=20)])
        assert cells(await log.batch_for_timestamp(11) or b"") == [(1, 0, "b")]
        assert await log.batch_for_timestamp(31) is None


async def test_successor_continues_after_its_predecessors_acknowledged_records(tmp_path: Path) -> None:
    async with opened(tmp_path, 1) as one, opened(tmp_path, 2) as two:
        old = await lead(one, 0)
        await write(old, "abc")
        new = await lead(two, 1)
        await write(new, "de")
        assert cells(await new.read(1, 10**6)) == [(1, 0, "b"), (2, 0, "c"), (3, 1, "d"), (4, 1, "e")]
        assert new.epochs == ((0, 0), (1, 3))
        back = await lead(one, 2)
        await write(back, "f")
        assert await everything(back) == "abcdef"


async def test_predecessor_cannot_acknowledge_and_what_it_stores_is_never_read(tmp_path: Path) -> None:
    async with opened(tmp_path, 1) as one, opened(tmp_path, 2) as two:
        old = await lead(one, 0)
        await write(old, "ab")
        new = await lead(two, 1)
        with pytest.raises(Fenced, match="no longer the newest"):
            await old.append([batch("Z")])
        assert old.end_offset == 2
        with pytest.raises(Fenced):
            await old.append([batch("Z")])
        await write(new, "c")
        assert await everything(new) == "abc"
        again = await lead(one, 2)
        assert await everything(again) == "abc"


async def test_lower_epoch_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, 1) as one, opened(tmp_path, 2) as two:
        new = await lead(one, 4)
        await write(new, "a")
        with pytest.raises(Fenced, match="leader epoch 3 is behind"):
            await lead(two, 3)
        await write(new, "b")
        assert await everything(new) == "ab"


async def test_partitions_taken_over_together_succeed_or_fail_each_on_its_own(tmp_path: Path) -> None:
    partitions = [TopicPartition("t", number) for number in range(6)]
    async with opened(tmp_path, 1) as one, opened(tmp_path, 2) as two:
        for number, log in enumerate(
            await asyncio.gather(*(one.take_over(tp, TOPIC_ID, 5 if tp.partition == 3 else 0) for tp in partitions))
        ):
            await log.append([batch("x", records=number + 1)])
        taken = await asyncio.gather(*(two.take_over(tp, TOPIC_ID, 1) for tp in partitions), return_exceptions=True)
        for number, found in enumerate(taken):
            if number == 3:
                assert isinstance(found, Fenced)
            else:
                assert not isinstance(found, BaseException)
                assert found.end_offset == number + 1


async def test_second_incarnation_at_the_same_epoch_fences_the_first(tmp_path: Path) -> None:
    async with opened(tmp_path) as first, opened(tmp_path) as second:
        old = await lead(first, 4)
        await write(old, "a")
        new = await lead(second, 4)
        with pytest.raises(Fenced):
            await old.append([batch("Z")])
        await write(new, "b")
        assert await everything(new) == "ab"


async def test_many_leadership_changes_leave_one_log_and_few_publications(tmp_path: Path) -> None:
    async with opened(tmp_path, 1) as one, opened(tmp_path, 2) as two:
        for epoch in range(20):
            log = await lead((one, two)[epoch % 2], epoch)
            await write(log, chr(ord("a") + epoch))
        assert await everything(log) == "abcdefghijklmnopqrst"
        assert len(list((tmp_path / "epochs" / TOPIC_ID.hex / "3").iterdir())) == 1


async def test_producer_state_follows_the_leadership(tmp_path: Path) -> None:
    async with opened(tmp_path, 1) as one, opened(tmp_path, 2) as two:
        old = await lead(one, 0)
        for sequence in range(7):
            await old.append([batch("x", producer=ProducerStamp(9, 0, sequence))])
        new = await lead(two, 1)
        repeated = await new.append([batch("x", producer=ProducerStamp(9, 0, 3))])
        assert (repeated.base_offset, repeated.duplicate, new.end_offset) == (3, True, 7)
        with pytest.raises(OutOfOrderSequence):  # older than five batches
            await new.append([batch("x", producer=ProducerStamp(9, 0, 1))])
        with pytest.raises(OutOfOrderSequence, match="expected 7"):
            await new.append([batch("x", producer=ProducerStamp(9, 0, 8))])
        await new.append([batch("x", producer=ProducerStamp(9, 1, 0))])
        with pytest.raises(InvalidProducerEpoch):
            await new.append([batch("x", producer=ProducerStamp(9, 0, 7))])
        assert new.end_offset == 8


async def test_pairs_are_compacted_and_carried_over(tmp_path: Path) -> None:
    async with opened(tmp_path, 1) as one, opened(tmp_path, 2) as two:
        old = await lead_pairs(one, 0)
        await old.upsert([(b"a", b"1"), (b"b", b"1"), (b"a", b"2")])
        await old.upsert([(b"b", None), (b"c", b"3")])
        assert await old.items() == [(b"a", b"2"), (b"c", b"3")]
        new = await lead_pairs(two, 1)
        assert await new.items() == [(b"a", b"2"), (b"c", b"3")]
        with pytest.raises(Fenced):
            await old.upsert([(b"a", b"zombie")])
        await new.upsert([(b"c", None)])
        again = await lead_pairs(one, 2)
        assert await again.items() == [(b"a", b"2")]


async def test_queued_appends_are_refused_when_leadership_is_given_up(tmp_path: Path) -> None:
    async with opened(tmp_path) as storage:
        log = await lead(storage, 0)
        advanced: list[int] = []
        cancel = log.on_advance(lambda: advanced.append(log.end_offset))
        await write(log, "a")
        storage.resign(TP)
        with pytest.raises(Fenced, match="resigned"):
            await log.append([batch("b")])
        assert advanced == [1, 1]  # the second call notifies of the close
        cancel()


async def test_deleted_topic_cannot_be_written_and_a_recreated_one_starts_empty(tmp_path: Path) -> None:
    async with opened(tmp_path, 1) as one, opened(tmp_path, 2) as two:
        log = await lead(one, 0)
        await write(log, "a")
        await two.forget_topic(TOPIC_ID)
        with pytest.raises(Fenced):
            await log.append([batch("b")])
        await one.forget_topic(TOPIC_ID)
        assert (await lead(two, 0)).end_offset == 0


async def test_folder_that_cannot_be_written_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StorageFailed, match="Is the data directory writable"):
        await Storage(tmp_path / "file" / "data", 1).start()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to a read-only folder")
def test_read_only_folder_is_refused_with_the_remedy(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageFailed, match="Is the data directory writable"):
        asyncio.run(Storage(tmp_path / "data", 1).start())


async def test_fence_that_cannot_be_read_refuses_closes_and_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(_: object) -> list[object]:
        raise PermissionError("no")

    async with opened(tmp_path) as storage:
        closed: list[tuple[object, type]] = []
        storage.on_closed = lambda tp, error: closed.append((tp, type(error)))
        log = await lead(storage, 0)
        await write(log, "a")
        with monkeypatch.context() as patched:
            patched.setattr("kernel.broker.storage.epochs.PartitionEpochs.published", unreadable)
            with pytest.raises(StorageFailed, match="check for a newer epoch"):
                await write(log, "b")
        with pytest.raises(Fenced, match="unknown whether"):
            await write(log, "c")
        assert log.end_offset == 1
        assert closed == [(TP, StorageFailed)]
        # "b" was stored although it was not acknowledged: the next leader has it.
        assert await everything(await lead(storage, 0)) == "ab"


async def test_missing_predecessor_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    async with opened(tmp_path, 1) as one:
        await write(await lead(one, 0), "a")
    for file in (tmp_path / "incarnations").iterdir():
        file.unlink()
    async with opened(tmp_path, 2) as two:
        with pytest.raises(StorageFailed, match=r"broker-1-\w+\.sqlite is missing"):
            await lead(two, 1)


async def test_silent_producers_are_forgotten_beyond_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel.broker.storage.writer.PRODUCERS_MAX", 3)
    async with opened(tmp_path, 1) as one, opened(tmp_path, 2) as two:
        log = await lead(one, 0)
        for producer_id in (1, 2, 3, 1, 4, 5):
            sequence = 1 if log.end_offset == 3 else 0
            await log.append([batch("x", producer=ProducerStamp(producer_id, 0, sequence))])
        new = await lead(two, 1)
        for producer_id, sequence in ((1, 1), (4, 0), (5, 0)):
            again = await new.append([batch("x", producer=ProducerStamp(producer_id, 0, sequence))])
            assert again.duplicate
        for producer_id in (2, 3):
            assert not (await new.append([batch("x", producer=ProducerStamp(producer_id, 0, 0))])).duplicate


async def test_queue_is_bounded_and_everything_queued_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernel.broker.storage.storage._QUEUED_MAX", 4)
    async with opened(tmp_path) as storage:
        log = await lead(storage, 0)
        results = await asyncio.gather(*(log.append([batch("x")]) for _ in range(50)))
        assert sorted(result.base_offset for result in results) == list(range(50))


async def test_closed_storage_refuses_instead_of_hanging(tmp_path: Path) -> None:
    async with opened(tmp_path) as storage:
        log = await lead(storage, 0)
        await write(log, "a")
    for attempt in (log.append([batch("b")]), log.read(0, 100), lead(storage, 1)):
        with pytest.raises(Fenced):
            await attempt
    await storage.close()
