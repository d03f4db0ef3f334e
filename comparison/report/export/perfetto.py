"""Tracks as a Perfetto trace: TrackEvents in protobuf, which ui.perfetto.dev opens.

Perfetto requires that slices of one track nest, so those that overlap get tracks of their own under the same name.
"""

from __future__ import annotations

import json
from functools import partial
from heapq import merge
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    BuiltinClock,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from comparison.report.export.picture import picture
from comparison.report.export.tracks import laned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

    from comparison.report.export.stream import Stream
    from comparison.report.export.tracks import Instant, Slice, Track, Value

#: All packets are of one writer.
_SEQUENCE = 1
#: The least of the two kinds of number that the format has for annotations.
_INT_LIMIT = 1 << 63


def write_perfetto(stream: Stream, file: BinaryIO) -> None:
    """Write the trace. Its times are nanoseconds since the first event. Raises OSError."""
    builder = StreamingTraceProtoBuilder(file)
    tracks = _Tracks(stream.events[0].t_ns)
    tracks.add(picture(stream))
    for packet in (_clocks(stream), *tracks.descriptors):
        builder.write_packet(packet)
    for _, packet in merge(*tracks.events, key=lambda each: each[0]):
        packet.trusted_packet_sequence_id = _SEQUENCE
        builder.write_packet(packet)


def _clocks(stream: Stream) -> Any:
    """What the wall clock showed at time 0."""
    packet = TracePacket()
    wall_ns = max(0, stream.wall_ns + stream.events[0].t_ns)
    for clock, at_ns in ((BuiltinClock.BUILTIN_CLOCK_BOOTTIME, 0), (BuiltinClock.BUILTIN_CLOCK_REALTIME, wall_ns)):
        packet.clock_snapshot.clocks.add(clock_id=clock, timestamp=at_ns)
    packet.trusted_packet_sequence_id = _SEQUENCE
    packet.sequence_flags = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    return packet


class _Tracks:
    """The packets of a tree of tracks: their descriptors, and the events of each in its own order."""

    def __init__(self, zero_ns: int) -> None:
        self.descriptors: list[Any] = []
        self.events: list[Iterator[tuple[int, Any]]] = []  #: made one by one, when they are written
        self._zero_ns = zero_ns
        self._ids = count(1)

    def add(self, track: Track, parent: int = 0) -> None:
        """Add what is below a track."""
        for rank, each in enumerate(track.below.values()):
            lanes = laned(each.slices)
            own = self._described(each, parent, rank)
            self.events.append(map(partial(self._instant, own), each.instants))
            self.events.append(map(partial(self._value, own), each.values))
            for number, lane in enumerate(lanes):
                where = own if number == 0 else self._described(each, parent, rank)
                self.events.append(chain.from_iterable(map(partial(self._slice, where), lane)))
            self.add(each, own)

    def _described(self, track: Track, parent: int, rank: int) -> int:
        packet = TracePacket()
        described = packet.track_descriptor
        described.uuid = next(self._ids)
        if parent:
            described.parent_uuid = parent
            described.sibling_order_rank = rank
        described.name = track.name
        described.child_ordering = TrackDescriptor.ChildTracksOrdering.EXPLICIT
        if track.process:
            described.process.pid = track.process
            described.process.process_name = track.name
        if track.values:
            described.counter.SetInParent()
        packet.trusted_packet_sequence_id = _SEQUENCE
        self.descriptors.append(packet)
        return int(described.uuid)

    def _slice(self, track: int, slice_: Slice) -> Iterator[tuple[int, Any]]:
        at_ns, packet = self._event(track, slice_.from_ns, TrackEvent.TYPE_SLICE_BEGIN)
        packet.track_event.name = slice_.name
        _annotate(packet, slice_.facts)
        yield at_ns, packet
        yield self._event(track, slice_.until_ns, TrackEvent.TYPE_SLICE_END)

    def _instant(self, track: int, instant: Instant) -> tuple[int, Any]:
        at_ns, packet = self._event(track, instant.at_ns, TrackEvent.TYPE_INSTANT)
        packet.track_event.name = instant.name
        _annotate(packet, instant.facts)
        return at_ns, packet

    def _value(self, track: int, value: Value) -> tuple[int, Any]:
        at_ns, packet = self._event(track, value.at_ns, TrackEvent.TYPE_COUNTER)
        packet.track_event.counter_value = value.value
        return at_ns, packet

    def _event(self, track: int, at_ns: int, type_: int) -> tuple[int, Any]:
        packet = TracePacket(timestamp=at_ns - self._zero_ns)
        packet.track_event.track_uuid = track
        packet.track_event.type = type_
        return packet.timestamp, packet


def _annotate(packet: Any, facts: Mapping[str, Any]) -> None:
    for name, value in facts.items():
        note = packet.track_event.debug_annotations.add(name=name)
        if isinstance(value, bool):
            note.bool_value = value
        elif isinstance(value, int) and -_INT_LIMIT <= value < _INT_LIMIT:
            note.int_value = value
        else:
            note.string_value = value if isinstance(value, str) else json.dumps(value)
