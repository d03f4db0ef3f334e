"""Kafka's readers of `__consumer_offsets` read our offsets and groups, and skip the keys that only we have."""

from __future__ import annotations

import pytest

from coordinator.groups.records import GroupKey, OffsetKey, PendingKey, ProducerKey, ServerKey, TransactionKey
from coordinator.service.record_codec import encode
from tests.support.java.keys import kinds
from tests.support.java.originals import require

KEYS = {
    OffsetKey("g", "t", 0): "offset",
    GroupKey("g"): "group",
    PendingKey(7, "g", "t", 0): "unknown",
    TransactionKey("id"): "unknown",
    ProducerKey(7): "unknown",
    ServerKey("g"): "unknown",
}


@pytest.mark.parametrize("version", ["3.9.1", "4.1.1"])
def test_kafka_reads_offsets_and_groups_and_skips_our_own_keys(version: str) -> None:
    require(version)
    assert kinds(version, [encode((key, None))[0] for key in KEYS]) == list(KEYS.values())
