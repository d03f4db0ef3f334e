"""Limits of fields' values: figures are computed only within them; other lines are unusable (`kernel.trace.check`)."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.trace.events import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Numbers are smaller than this, like times: offsets, zxids, generations.
NUMBER_LIMIT = 1 << 61
#: The most records of a poll or an acknowledgement: a batch has at most 2^31.
RECORDS_MAX = 1 << 31
#: How deep values of type DETAIL may be nested; we write three levels.
DETAIL_DEPTH_MAX = 50
#: The smallest and the largest value of numbers with narrower limits, by kind and field. Kafka's largest clusters have
#: some 200,000 partitions.
LIMITS: Mapping[tuple[str, str], tuple[int, int]] = MappingProxyType(
    {
        ("topic_wanted", "wanted"): (0, 100_000),
        **{(name, "latency_ns"): (0, NUMBER_LIMIT - 1) for name, kind in KINDS.items() if "latency_ns" in kind.fields},
    }
)
#: The fields that are the first and the last number of some records, by kind.
RECORD_RANGES: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType(
    {
        name: tuple(pair for pair in (("first", "last"), ("serial_first", "serial_last")) if pair[0] in kind.fields)
        for name, kind in KINDS.items()
        if "first" in kind.fields
    }
)
