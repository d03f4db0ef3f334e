"""Control batches byte for byte as a 4.1.1 broker writes them, and what a committed reader leaves out."""

from __future__ import annotations

import pytest

from kernel.records.batches import placed
from kernel.records.control_records import end_marker
from kernel.records.records import NewRecord, build_batch, headers_of, is_control, readable
from kernel.records.transactions import EndTransactionMarker
from kernel.values import TopicPartition

TP = TopicPartition("t", 0)

#: From a 4.1.1 broker's Fetch response: an abort of producer 1 at offset 2, and a commit by a coordinator at epoch 99.
RECORDED = [
    (
        EndTransactionMarker(commits=False, coordinator_epoch=0),
        2,
        1795373075260,
        "0000000000000002000000420000000002081601ba003000000000000001a204930b3c000001a204930b3c00000000000000010000"
        "ffffffff000000012000000008000000000c00000000000000",
    ),
    (
        EndTransactionMarker(commits=True, coordinator_epoch=99),
        3,
        1795373075650,
        "0000000000000003000000420000000002436b39c4003000000000000001a204930cc2000001a204930cc200000000000000010000"
        "ffffffff000000012000000008000000010c00000000006300",
    ),
]


@pytest.mark.parametrize(("marker", "offset", "timestamp_ms", "recorded"), RECORDED, ids=["abort", "commit"])
def test_marker_has_the_bytes_that_4_1_1_writes(
    marker: EndTransactionMarker, offset: int, timestamp_ms: int, recorded: str
):
    batch = end_marker(marker, producer_id=1, producer_epoch=0, timestamp_ms=timestamp_ms)
    assert placed(batch.payload, offset, 0).hex() == recorded
    ((header, _),) = headers_of(batch.payload)
    assert is_control(header)


class Written:
    """A log in memory, as bytes."""

    def __init__(self) -> None:
        self.data = b""
        self.end = 0

    def write(self, *values: str, producer_id: int = -1, transactional: bool = True) -> None:
        records = [NewRecord(value.encode(), None, 0) for value in values]
        stamp = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0} if producer_id >= 0 else {}
        payload = build_batch(records, transactional=transactional and producer_id >= 0, **stamp)  # type: ignore[arg-type]
        self._add(payload, len(values))

    def end_transaction(self, producer_id: int, *, commits: bool) -> None:
        marker = EndTransactionMarker(commits, 0)
        self._add(end_marker(marker, producer_id=producer_id, producer_epoch=0, timestamp_ms=0).payload, 1)

    def _add(self, payload: bytes, offsets: int) -> None:
        self.data += placed(payload, self.end, 0)
        self.end += offsets

    def values(self, aborted: tuple[tuple[int, int], ...] = ()) -> list[str]:
        records, next_offset, corrupt = readable(TP, self.data, 0, aborted)
        assert (next_offset, corrupt) == (self.end, None)
        return [record.value.decode() for record in records if record.value is not None]


def test_markers_are_not_delivered_but_take_an_offset():
    log = Written()
    log.write("a", producer_id=1)
    log.end_transaction(1, commits=True)
    log.end_transaction(2, commits=False)
    assert log.values() == ["a"]


def test_committed_reader_skips_only_aborted_records():
    log = Written()
    log.write("before", producer_id=1)
    log.end_transaction(1, commits=True)
    log.write("a1", producer_id=1)
    log.write("b1", "b2", producer_id=2)
    log.write("plain")
    log.write("a2", producer_id=1)
    log.end_transaction(1, commits=False)
    log.write("after", producer_id=1)
    log.end_transaction(1, commits=True)
    log.end_transaction(2, commits=True)
    assert log.values() == ["before", "a1", "b1", "b2", "plain", "a2", "after"]
    assert log.values(((1, 2),)) == ["before", "b1", "b2", "plain", "after"]


def test_both_aborts_of_a_producer_are_skipped():
    log = Written()
    for value in ("x", "y"):
        log.write(value, producer_id=1)
        log.end_transaction(1, commits=False)
    log.write("z", producer_id=1)
    log.end_transaction(1, commits=True)
    assert log.values(((1, 0), (1, 2))) == ["z"]
    assert log.values(((1, 2), (1, 0))) == ["z"]  # in any order of the list
