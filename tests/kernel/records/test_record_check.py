"""Records are checked before they are stored; what unpacks to too much is refused before memory is taken for it."""

from __future__ import annotations

import asyncio
import struct
import subprocess
import threading
from pathlib import Path

import pytest

from kernel.broker.apis import produce as handlers_produce
from kernel.broker.storage.logs import PartitionLog
from kernel.client.reads import fetch, list_offset
from kernel.records.batches import AppendBatch
from kernel.records.compression import UNPACKED_BYTES_MIN, UnpackingTurn, room_for
from kernel.records.record_check import RECORDS_AT_ONCE, checked, checked_off_the_loop
from kernel.records.records import NewRecord, RefusedBatch, accepted, build_batch, decode
from kernel.runtime import REAL
from kernel.tasks import cancel_and_wait
from kernel.waiting import until, wait_until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.kernel.broker.apis.test_data_plane import TP, batch, data_plane, produce
from tests.support.lean_child import lean_command
from tests.support.wire.bad_batches import TIME_MS, bad_batches, odd_batches, three_records, with_newest

BAD, ODD = bad_batches(), odd_batches()


def store_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Store produced batches without checking their records."""

    async def as_it_is(batch: AppendBatch, _: UnpackingTurn) -> AppendBatch:
        return batch

    monkeypatch.setattr(handlers_produce, "checked_off_the_loop", as_it_is)


def check(data: bytes) -> AppendBatch:
    return checked(accepted(data, max_bytes=1_000_000))


@pytest.mark.parametrize("name", BAD)
def test_bad_batch_is_refused_as_by_kafka(name: str) -> None:
    with pytest.raises(RefusedBatch) as refused:
        check(BAD[name].batch)
    assert refused.value.code == BAD[name].answer
    assert str(refused.value), "the error says what is wrong"


@pytest.mark.parametrize("name", ODD)
def test_unusual_batch_is_accepted_as_by_kafka(name: str) -> None:
    assert check(ODD[name]).records == 3
    assert len(decode(TP, ODD[name], 0)[0]) == 3


def test_time_of_the_newest_record_replaces_another_one_in_the_header() -> None:
    batch = with_newest(three_records(), TIME_MS + 10**9)
    stored = check(batch)
    assert (stored.max_timestamp_ms, stored.payload) == (TIME_MS, three_records())


def test_good_batch_is_stored_as_it_came_with_every_codec() -> None:
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        data = build_batch([NewRecord(b"v", b"k", TIME_MS + n) for n in range(3)], codec=codec)
        assert check(data).payload == data


async def test_nothing_of_a_refused_batch_is_stored_and_the_broker_goes_on(chroot: str, tmp_path: Path) -> None:
    async with data_plane(chroot, tmp_path) as (_, _client, connection):
        for name, bad in BAD.items():
            error, offset = await produce(connection, bad.batch)
            assert (ErrorCode[error.lower()], offset) == (bad.answer, -1), name
        assert await list_offset(connection, {TP: -1}) == {TP: ("", 0)}, "nothing was stored"
        assert await produce(connection, batch(b"a")) == ("", 0)


def test_decompression_bombs_of_every_codec_are_refused_within_little_memory() -> None:
    """In a separate process under a limit, because what slips through may abort it."""
    command = lean_command("tests.kernel.records.bombs")
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr[-2000:]
    names = [line.split(":")[0] for line in child.stdout.splitlines()]
    assert names == ["gzip", "snappy", "snappy in blocks", "lz4", "zstd"]


def test_batch_may_unpack_to_eight_times_its_size_if_that_is_more_than_16_mebibytes() -> None:
    assert room_for(1_000) == UNPACKED_BYTES_MIN == 16 * 1024 * 1024
    assert room_for(3 * 1024 * 1024) == 24 * 1024 * 1024


async def test_batch_beyond_the_bound_is_answered_with_an_error_and_its_connection_goes_on(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when such a batch is in a log already, and ListOffsets reads it."""
    async with data_plane(chroot, tmp_path) as (_, _client, connection):
        large = build_batch([NewRecord(bytes(UNPACKED_BYTES_MIN), None, TIME_MS)], codec="zstd")
        assert await produce(connection, large) == ("MESSAGE_TOO_LARGE", -1)
        store_unchecked(monkeypatch)
        assert await produce(connection, large) == ("", 0)
        assert await list_offset(connection, {TP: TIME_MS - 1}) == {TP: ("CORRUPT_MESSAGE", -1)}
        assert await list_offset(connection, {TP: -1}) == {TP: ("", 1)}
        answer = (await fetch(connection, {TP: 0}))[TP]
        assert (answer.records, answer.next_offset) == ((), 0)
        assert "t-0: the record batch at offset 0 cannot be read: a batch unpacks to more" in str(answer.corrupt)


async def test_batches_are_unpacked_one_at_a_time_even_for_closed_clients() -> None:
    running: list[int] = []
    most = 0
    go_on = threading.Event()

    def work(number: int) -> None:
        nonlocal most
        running.append(number)
        most = max(most, len(running))
        go_on.wait(10)
        running.remove(number)

    turn = UnpackingTurn(REAL.threads)
    tasks = [asyncio.create_task(turn.run(work, number)) for number in range(5)]
    await until(lambda: running, 60, "the first one")
    await cancel_and_wait(*tasks[:3])
    assert running == [0], "cancelled, but still at work"
    go_on.set()
    await asyncio.gather(*tasks[3:])
    wait_until(lambda: not running, 60, "all of them to end")
    assert most == 1


def test_small_batch_is_checked_at_once_and_a_large_or_packed_one_on_a_thread() -> None:
    class Turn(UnpackingTurn):
        async def run(self, work, *arguments):  # type: ignore[no-untyped-def]
            asked.append(work)
            return await super().run(work, *arguments)

    asked: list[object] = []

    async def threads(records: int, codec: str) -> int:
        asked.clear()
        data = build_batch([NewRecord(b"v", None, TIME_MS)] * records, codec=codec)
        await checked_off_the_loop(accepted(data, max_bytes=1_000_000), Turn(REAL.threads))
        return len(asked)

    assert asyncio.run(threads(RECORDS_AT_ONCE, "none")) == 0
    assert asyncio.run(threads(RECORDS_AT_ONCE + 1, "none")) == 1
    assert asyncio.run(threads(1, "gzip")) == 1


async def test_largest_time_is_looked_up_once(chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with data_plane(chroot, tmp_path) as (_, _client, connection):
        for newest in (5, 9, 7):
            records = [NewRecord(b"v", None, TIME_MS + newest), NewRecord(b"v", None, TIME_MS)]
            await produce(connection, build_batch(records))
        reads = []
        read = PartitionLog._read
        monkeypatch.setattr(PartitionLog, "_read", lambda log, what: (reads.append(what), read(log, what))[1])
        body = {"replica_id": -1, "topics": [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -3}]}]}
        answer = await connection.call(Api.ListOffsets, body, version=7)
        found = answer.topics[0].partitions[0]
        assert (found.offset, found.timestamp) == (2, TIME_MS + 9)
        assert len(reads) == 2, "the largest time, and the batch that has it"


def test_header_offsets_of_the_bad_batches_are_right() -> None:
    good = three_records()
    assert struct.unpack_from(">i", good, 57) == (3,)
    assert struct.unpack_from(">q", good, 35) == (TIME_MS,)
