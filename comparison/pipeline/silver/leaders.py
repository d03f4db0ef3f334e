"""Which broker led which partition when, from what the brokers traced.

A broker that gives a partition up may name its successor. Its own id is the first that it traces: it cannot give up
what it never led.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from comparison.ownership.cover import gaps_of
from comparison.pipeline.measured import Takeover
from comparison.pipeline.silver.windows import FOREVER_NS
from comparison.results.keys import LEADER_DURING_DELETE
from kernel.topic_names import OFFSETS_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Row = Mapping[str, Any]


def existing(led: Iterable[Row]) -> dict[tuple[str, int], tuple[tuple[int, int], ...]]:
    """From a partition's first leader, if that was traced, until its topic was deleted, and from the next one on."""
    changes: defaultdict[tuple[str, int], list[tuple[int, bool]]] = defaultdict(list)  #: (t_ns, whether it exists)
    for row in led:
        is_led, of_one = row["leader"] >= 0, changes[row["topic"], row["partition"]]
        if not of_one:
            of_one.append((-FOREVER_NS, not is_led or row["leader_epoch"] > 0))
        if (is_led or row["leader"] == LEADER_DURING_DELETE) and of_one[-1][1] != is_led:
            of_one.append((row["t_ns"], is_led))
    return {
        key: tuple((low, high) for (low, exists), (high, _) in pairwise([*of_one, (FOREVER_NS, False)]) if exists)
        for key, of_one in changes.items()
        if not all(exists for _, exists in of_one)
    }


def appeared(led: Sequence[Row], since_ns: int) -> dict[tuple[str, int], int]:
    """When partitions were first led that came behind the first member, from the `leader_changed` events."""
    first: dict[tuple[str, int], int] = {}
    for row in led:
        if row["leader"] >= 0:
            key = row["topic"], row["partition"]
            first[key] = min(row["t_ns"], first.get(key, row["t_ns"]))
    return {key: t_ns for key, t_ns in first.items() if t_ns > since_ns}


def takeovers(rows: Iterable[Row]) -> list[Takeover]:
    """Every time a broker took a partition of the offsets topic, from the `leader_changed` events in order."""
    return [
        msgspec.convert(row, Takeover) for row, leads in _by_leader(rows) if leads and row["topic"] == OFFSETS_TOPIC
    ]


def leaderless(
    rows: Iterable[Row], process_ends: Mapping[str, Sequence[int]], end_ns: int
) -> dict[tuple[str, int], tuple[tuple[int, int], ...]]:
    """When no broker led a partition, from when it was first led until the end; of those that always had one, none."""
    begun: dict[tuple[str, int], dict[str, int]] = {}
    terms: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for row, leads in _by_leader(rows):
        process, key = row["process"], (row["topic"], row["partition"])
        of_key = begun.setdefault(key, {})
        if leads:
            of_key.setdefault(process, row["t_ns"])
        elif process in of_key:
            terms[key].append((of_key.pop(process), row["t_ns"]))
    for key, of_key in begun.items():
        for process, from_ns in of_key.items():
            ended = (t_ns for t_ns in process_ends.get(process, ()) if t_ns >= from_ns)
            terms[key].append((from_ns, min([*ended, end_ns])))
    gaps = {key: gaps_of(held, [(min(held)[0], end_ns)]) for key, held in terms.items()}
    return {key: tuple(of_key) for key, of_key in gaps.items() if of_key}


def _by_leader(rows: Iterable[Row]) -> Iterator[tuple[Row, bool]]:
    """Each event, and whether its broker leads from then on."""
    own: dict[str, int] = {}
    for row in rows:
        if row["leader"] >= 0:
            own.setdefault(row["process"], row["leader"])
        yield row, row["leader"] == own.get(row["process"])
