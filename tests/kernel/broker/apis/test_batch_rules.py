"""What a topic's settings require of a batch, without a broker."""

from __future__ import annotations

import pytest

from kernel.broker.apis.batch_rules import RefusedRecords, conformed, needs_records
from kernel.broker.settings.topic_configs import TopicConfig
from kernel.records.batches import AppendBatch
from kernel.records.records import LOG_APPEND_TIME, NewRecord, RefusedBatch, accepted, build_batch, decode, headers_of
from kernel.values import TopicPartition
from kernel.wire.errors import ErrorCode

TP = TopicPartition("t", 0)
NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000


def batch(*records: tuple[bytes | None, int], codec: str = "none") -> AppendBatch:
    data = build_batch([NewRecord(b"v", key, timestamp_ms) for key, timestamp_ms in records], codec=codec)
    return accepted(data, max_bytes=10_000)


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_log_append_time_applies_to_each_record_and_keeps_the_batch_readable(codec: str) -> None:
    before = batch((b"a", 5), (None, NOW_MS + 99 * HOUR_MS), codec=codec)
    after = conformed(TP, before, TopicConfig(log_append_time=True), NOW_MS)
    records, _ = decode(TP, after.payload, 0)
    assert [(record.key, record.timestamp_ms) for record in records] == [(b"a", NOW_MS), (None, NOW_MS)]
    ((header, _),) = headers_of(after.payload)
    assert header.attributes & LOG_APPEND_TIME
    assert (header.max_timestamp, after.max_timestamp_ms) == (NOW_MS, NOW_MS)
    assert (after.records, len(after.payload)) == (before.records, len(before.payload))


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_timestamps_are_accepted_within_both_limits_and_refused_per_record_beyond(codec: str) -> None:
    config = TopicConfig(timestamp_before_ms_max=1000, timestamp_after_ms_max=50)
    good = batch((b"k", NOW_MS - 1000), (b"k", NOW_MS + 50), codec=codec)
    assert conformed(TP, good, config, NOW_MS) is good
    bad = batch((b"k", NOW_MS - 1001), (b"k", NOW_MS), (b"k", NOW_MS + 51), codec=codec)
    with pytest.raises(RefusedRecords) as refused:
        conformed(TP, bad, config, NOW_MS)
    assert refused.value.code is ErrorCode.invalid_timestamp
    assert [error["batch_index"] for error in refused.value.record_errors] == [0, 2]
    assert str(NOW_MS + 51) in refused.value.record_errors[1]["batch_index_error_message"]


def test_records_without_a_key_are_refused_by_a_compacted_topic_only() -> None:
    given = batch((b"k", NOW_MS), (None, NOW_MS), (b"", NOW_MS), codec="gzip")
    assert conformed(TP, given, TopicConfig(), NOW_MS) is given
    with pytest.raises(RefusedRecords) as refused:
        conformed(TP, given, TopicConfig(compact=True), NOW_MS)
    assert refused.value.code is ErrorCode.invalid_record
    assert [error["batch_index"] for error in refused.value.record_errors] == [1], "an empty key is a key"


def test_batch_that_claims_log_append_time_is_refused_where_producers_set_the_time() -> None:
    stamped = conformed(TP, batch((b"k", NOW_MS)), TopicConfig(log_append_time=True), NOW_MS)
    with pytest.raises(RefusedBatch) as refused:
        conformed(TP, stamped, TopicConfig(), NOW_MS)
    assert refused.value.code is ErrorCode.invalid_timestamp
    conformed(TP, stamped, TopicConfig(log_append_time=True), NOW_MS + 1)


def test_records_of_an_ordinary_topic_are_not_decompressed() -> None:
    assert not needs_records(batch((b"k", 5)), TopicConfig(), NOW_MS)
    assert needs_records(batch((b"k", NOW_MS + 2 * HOUR_MS)), TopicConfig(), NOW_MS)
    assert needs_records(batch((b"k", 5)), TopicConfig(compact=True), NOW_MS)
    assert needs_records(batch((b"k", 5)), TopicConfig(timestamp_before_ms_max=5), NOW_MS)
