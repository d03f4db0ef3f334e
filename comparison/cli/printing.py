"""What `consume` and `produce` print: events as text or as JSON lines."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
import msgspec

from comparison.screen.partition_ranges import in_ranges, ranges_text
from comparison.screen.printable import printable
from kernel.consumer import MemberPlace
from kernel.serials import serial_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from comparison.cli.rebalances import Rebalanced
    from kernel.values import Batch, Record, TopicPartition

#: What `--print` shows of records.
RECORDS, COUNTS, NOTHING = "records", "counts", "nothing"
#: How often counts of records are printed.
COUNTS_S = 1.0


@dataclass(slots=True)
class _Counted:
    """Records of one partition since the last line."""

    first: int
    last: int
    count: int


class Printer:
    """Prints events as text or as JSON lines; also the consumer's listener."""

    def __init__(self, form: str, shown: str = RECORDS, now_s: Callable[[], float] = time.monotonic) -> None:
        self._json = form == "json"
        self._shown = shown
        self._now_s = now_s
        self._counted: dict[TopicPartition, _Counted] = {}
        self._counting_since_s = 0.0
        self._resets: dict[TopicPartition, int] = {}
        self._reset_to = ""
        self.records = 0
        self.has_joined = False  #: the member has learned what it owns, if only that it owns nothing
        #: The current assignment of each stream, kept partitions included.
        self.assignment: Callable[[], Mapping[int, frozenset[TopicPartition]]] = dict
        self.places: Callable[[], Mapping[int, MemberPlace]] = dict

    def say(self, event: str, text: str, **fields: object) -> None:
        if self._resets:  # what was done and read before comes first
            self._say_resets()
        if self._counted:
            self._say_counts()
        self._print(event, text, fields)

    def _print(self, event: str, text: str, fields: Mapping[str, object]) -> None:
        if self._json:
            line = msgspec.json.encode({"event": event, "time_ms": time.time_ns() // 1_000_000, **fields}).decode()
        else:
            line = f"{event}: {printable(text)}" if text else event
        click.echo(line)
        sys.stdout.flush()

    # -- the group ---------------------------------------------------------------------------------------------------

    def partitions(self, event: str, stream: int, partitions: Iterable[TopicPartition], kept: str = "") -> None:
        listed = sorted(partitions)
        text = f"{ranges_text(listed) or 'nothing'} (stream {stream}){kept}"
        self.say(event, text, stream=stream, partitions=[{"topic": t, "partition": p} for t, p in listed])

    async def on_assigned(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        self.has_joined = True
        kept = self.assignment().get(stream, frozenset()) - partitions
        self.partitions("assigned", stream, partitions, f", keeps {ranges_text(kept)}" if kept else "")

    async def on_revoked(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        self.partitions("revoked", stream, partitions)

    async def on_lost(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        self.partitions("lost", stream, partitions)

    def rebalanced(self, ended: Rebalanced) -> None:
        """A rebalance has ended: who this member is now, and how long it took."""
        self.has_joined = self.has_joined or ended.outcome == "ok"
        member = self.places().get(ended.stream, MemberPlace())
        self.say(
            "rebalance",
            _rebalance_text(ended, member),
            stream=ended.stream,
            outcome=ended.outcome,
            trigger=ended.trigger,
            attempts=ended.attempts,
            took_ms=round(ended.took_ms, 3),
            phases_ms={phase: round(ms, 3) for phase, ms in ended.phases_ms.items()},
            member=member.member_id,
            generation=member.generation,
            leader=member.leader,
            coordinator=member.coordinator,
        )

    def reset(self, partition: TopicPartition, offset: int, how: str) -> None:
        """A position that was unknown or out of range is now this offset; all of them make one line."""
        self._resets[partition] = offset
        self._reset_to = how

    def _say_resets(self) -> None:
        resets, self._resets = sorted(self._resets.items()), {}
        parts = ", ".join(f"{tps} to @{offset}" for tps, offset, _ in in_ranges(resets))
        rows = [{"topic": tp.topic, "partition": tp.partition, "offset": offset} for tp, offset in resets]
        text = f"{parts} (auto.offset.reset={self._reset_to})"
        self._print("reset", text, {"reset": self._reset_to, "partitions": rows})

    # -- records -----------------------------------------------------------------------------------------------------

    def batch(self, batch: Batch) -> None:
        self.records += len(batch.records)
        if self._shown == RECORDS:
            for record in batch.records:
                self._record(batch.stream, record)
        elif self._shown == COUNTS:
            self._count(batch)

    def polled(self) -> None:
        """Print the counts when they are due, and resets."""
        if self._resets:
            self._say_resets()
        if self._counted and self._now_s() - self._counting_since_s >= COUNTS_S:
            self._say_counts()

    def _count(self, batch: Batch) -> None:
        if not self._counted:
            self._counting_since_s = self._now_s()
        first, last = batch.records[0].offset, batch.records[-1].offset
        counted = self._counted.setdefault(batch.topic_partition, _Counted(first, last, 0))
        counted.last, counted.count = last, counted.count + len(batch.records)

    def _say_counts(self) -> None:
        counted, self._counted = sorted(self._counted.items()), {}
        total = sum(each.count for _, each in counted)
        alike = in_ranges((tp, (each.count, each.last)) for tp, each in counted)
        parts = ", ".join(
            f"{count}{' each' if several > 1 else ''} of {tps} up to @{last}" for tps, (count, last), several in alike
        )
        rows = [
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "first": each.first,
                "last": each.last,
                "count": each.count,
            }
            for tp, each in counted
        ]
        self.say("records", f"{total}: {parts}", count=total, partitions=rows)

    def _record(self, stream: int, record: Record) -> None:
        key = None if record.key is None else record.key.decode("utf-8", "replace")
        value = None if record.value is None else record.value.decode("utf-8", "replace")
        text = f"{record.topic}-{record.partition} @{record.offset} {'' if key is None else key + '='}{value}"
        self.say(
            "record",
            text,
            stream=stream,
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            timestamp_ms=record.timestamp_ms,
            serial=serial_of(record.value),
            key=key,
            value=value,
        )


def _rebalance_text(ended: Rebalanced, member: MemberPlace) -> str:
    how = "done" if ended.outcome == "ok" else ended.outcome
    attempts = f" and {ended.attempts} attempts" if ended.attempts > 1 else ""
    phases = ", ".join(f"{phase} {ms / 1000:.3f}" for phase, ms in ended.phases_ms.items())
    parts = [
        f"{how} at {_time_of_day()} after {ended.took_ms / 1000:.3f} s{attempts}" + (f" ({phases})" if phases else ""),
        f"trigger {ended.trigger}",
    ]
    if member.generation is not None:
        parts.append(f"generation {member.generation}")
    if member.member_id:
        parts.append(f"member {member.member_id}")
    if member.leader:
        parts.append("which leads" if member.leader == member.member_id else f"leader {member.leader}")
    if member.coordinator:
        parts.append(f"coordinator {member.coordinator}")
    return f"{', '.join(parts)} (stream {ended.stream})"


def _time_of_day() -> str:
    now = time.time()
    return f"{time.strftime('%H:%M:%S', time.localtime(now))}.{int(now % 1 * 1000):03d}"
