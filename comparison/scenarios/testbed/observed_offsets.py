"""Finds out who wrote each offset in a ZooKeeper whose transaction log cannot be read.

A znode does not say who wrote it, and a watch misses changes before it is set again. A member's trace has, for each
write acknowledged to it, the request with its zxid, and the offset. ZooKeeper orders all changes by zxid, so the
members' traces and the observer's reads are merged by it:

- a write acknowledged to a member is that member's, whether the observer saw it or not;
- a write that only the observer saw (its member died before the response) has no writer: `by` is '';
- times are ZooKeeper's, from the observer. A write between two of those is placed between them, because a frozen
  member receives its response long after.

Each node counts its writes, so missing ones are noticed. Pure, except for reading the traces.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from kernel.clock import NS_PER_MS
from kernel.values import TopicPartition
from kernel.zookeeper import paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

#: Requests that write an offset; a fenced one is a transaction, traced under the path of its check.
_WRITES = frozenset({"setData", "create"})
_FENCED = "multi"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenWrite:
    """A read of an offset's node by the observer."""

    partition: TopicPartition
    offset: int
    zxid: int
    version: int  #: 0 when the node is created, plus one for each write
    mtime_ms: int  #: ZooKeeper's wall clock
    received_ns: int  #: our monotonic clock, at the read


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredWrite:
    """A commit that was acknowledged to its member."""

    partition: TopicPartition
    offset: int
    zxid: int
    member: str
    answered_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetWrite:
    """One write, as the trace has it."""

    partition: TopicPartition
    offset: int
    zxid: int
    by: str  #: '' if unknown
    ns: int


def merged(seen: Sequence[SeenWrite], answered: Sequence[AnsweredWrite]) -> list[OffsetWrite]:
    """All writes in ZooKeeper's order, with times in the same order."""
    of_node = {write.zxid: write for write in seen}
    of_member = {write.zxid: write for write in answered}
    # The write that was received soonest gives the best estimate of the offset between the clocks.
    ahead_ns = min((write.received_ns - write.mtime_ms * NS_PER_MS for write in seen), default=0)
    writes: list[OffsetWrite] = []
    latest_ns: int | None = None
    for zxid in sorted({*of_node, *of_member}, reverse=True):
        ns = of_node[zxid].mtime_ms * NS_PER_MS + ahead_ns if zxid in of_node else of_member[zxid].answered_ns
        latest_ns = ns if latest_ns is None else min(ns, latest_ns)
        member = of_member.get(zxid)
        write = member or of_node[zxid]
        by = member.member if member is not None else ""
        writes.append(OffsetWrite(partition=write.partition, offset=write.offset, zxid=zxid, by=by, ns=latest_ns))
    return writes[::-1]


def missing(seen: Iterable[SeenWrite], writes: Iterable[OffsetWrite]) -> int:
    """How many writes the nodes have counted that neither the members nor the observer know."""
    counted: dict[TopicPartition, int] = {}
    for write in seen:
        counted[write.partition] = max(write.version + 1, counted.get(write.partition, 0))
    known = Counter(write.partition for write in writes)
    return sum(max(0, count - known[partition]) for partition, count in counted.items())


def answered_in(traces: Iterable[Path]) -> list[AnsweredWrite]:
    """The commits to ZooKeeper that were acknowledged to members, from their traces so far."""
    return [write for trace in traces for write in _answered(_events(trace))]


def _events(trace: Path) -> Iterator[Mapping[str, object]]:
    for line in trace.read_bytes().splitlines():
        try:
            event = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue  # the torn last line of a member that was killed
        if isinstance(event, dict):
            yield event


def _answered(events: Iterable[Mapping[str, object]]) -> Iterator[AnsweredWrite]:
    requests: dict[str, Mapping[str, object]] = {}  #: the last successful write of each path
    for event in events:
        if event.get("kind") == "zk_op" and event.get("ok") and event["op"] in (*_WRITES, _FENCED):
            requests[_FENCED if event["op"] == _FENCED else str(event["path"])] = event
        elif event.get("kind") == "commit_answered" and event.get("store") == "zookeeper":
            partition = TopicPartition(str(event["topic"]), _int(event["partition"]))
            path = paths.offset(str(event["group"]), partition.topic, partition.partition)
            # Requests before this event belong to this commit, whatever its outcome, and to no later one.
            asked = [found for key in (path, _FENCED) if (found := requests.pop(key, None)) is not None]
            request = max(asked, key=lambda each: _int(each["seq"]), default=None)
            if event["outcome"] == "accepted" and request is not None and request.get("zxid") is not None:
                yield AnsweredWrite(
                    partition=partition,
                    offset=_int(event["offset"]),
                    zxid=_int(request["zxid"]),
                    member=str(event["member"]),
                    answered_ns=_int(request["ns"]),
                )


def _int(value: object) -> int:
    assert isinstance(value, int), value
    return value
