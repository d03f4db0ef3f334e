"""Handing out: records leave the streams for the application, each stream in its turn, and the trace says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.serials import serial_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel.trace.writer import Tracer
    from kernel.values import Batch
    from zkconsumer.records.streams import Stream


class Delivery:
    """What was handed out counts as consumed; nothing that waits here."""

    def __init__(self, tracer: Tracer, member: str) -> None:
        self._tracer = tracer
        self._member = member
        self._turn = 0  # which stream is served first

    def take(self, streams: Sequence[Stream], records_max: int) -> list[Batch]:
        """Up to so many records from all streams, another one first each time."""
        self._turn += 1
        batches: list[Batch] = []
        left = records_max
        for position in range(len(streams)):
            stream = streams[(position + self._turn) % len(streams)]
            while left > 0 and (batch := stream.take(left)) is not None:
                left -= len(batch.records)
                batches.append(batch)
                self.tell(batch)
        return batches

    def raise_failures(self, streams: Sequence[Stream]) -> None:
        """Raise what a stream stopped at, once for each stream."""
        for stream in streams:
            stream.raise_failure()

    def tell(self, batch: Batch) -> None:
        """One event for each run of consecutive offsets with consecutive serials."""
        records = batch.records
        serials = [serial_of(record.value) for record in records]
        first = 0
        for i in range(1, len(records) + 1):
            if i < len(records) and records[i].offset == records[i - 1].offset + 1:
                before, serial = serials[i - 1], serials[i]
                if (serial is None) == (before is None) and (serial is None or before is None or serial == before + 1):
                    continue
            self._tracer.emit(
                "records_delivered",
                member=self._member,
                stream=batch.stream,
                topic=batch.topic_partition.topic,
                partition=batch.topic_partition.partition,
                first=records[first].offset,
                last=records[i - 1].offset,
                serial_first=serials[first],
                serial_last=serials[i - 1],
            )
            first = i
