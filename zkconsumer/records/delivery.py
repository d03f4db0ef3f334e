"""Hands records out to the application, stream by stream in turn, and traces them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.serials import serial_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel.trace.writer import Tracer
    from kernel.values import Batch
    from zkconsumer.records.streams import Stream


class Delivery:
    """Takes records from the streams without waiting; what is taken counts as consumed."""

    def __init__(self, tracer: Tracer, member: str) -> None:
        self._tracer = tracer
        self._member = member
        self._turn = 0  # which stream is served first

    def take(self, streams: Sequence[Stream], records_max: int) -> list[Batch]:
        """Take up to `records_max` records from all streams, starting with another stream each time."""
        self._turn += 1
        batches: list[Batch] = []
        left = records_max
        for position in range(len(streams)):
            stream = streams[(position + self._turn) % len(streams)]
            while left > 0 and (batch := stream.take(left)) is not None:
                left -= len(batch.records)
                batches.append(batch)
                self.emit(batch)
        return batches

    def raise_failures(self, streams: Sequence[Stream]) -> None:
        """Raise the failure of a stream that has stopped, once for each stream."""
        for stream in streams:
            stream.raise_failure()

    def emit(self, batch: Batch) -> None:
        """Emit one event for each run of consecutive offsets with consecutive serials."""
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
