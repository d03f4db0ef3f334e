"""Decode chunks of trace files: lines in, typed events by kind out.

A chunk is decoded at once, every field checked, a few hundred nanoseconds a line. Only a chunk that fails goes line by
line; its unusable lines are kept with the reason, by the same rules as those of the plain reader.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from comparison.pipeline.bronze.kinds import ANY_EVENT, UNKNOWN_KIND
from kernel.trace.events import COMMON_FIELDS, KINDS
from kernel.trace.reader import EndMarker, Reason, end_of, event_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHOWN_BYTES = 200
_DECODER = msgspec.json.Decoder(ANY_EVENT)
_PLACE = attrgetter("seq", "ns")


class UnknownEvent(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """An event of a kind that this version does not know; its own fields are not kept."""

    seq: int
    ns: int
    kind: str
    process: str
    member: str | None
    stream: int | None
    cause: str


@dataclass(frozen=True, slots=True)
class Unusable:
    """A line that is no usable event; `offset` is that of its first byte in the chunk, `text` its beginning."""

    offset: int
    reason: Reason
    text: str
    detail: str


@dataclass(slots=True)
class Decoded:
    """The events of a chunk by kind, in the order of the lines, and the lines that are none."""

    events: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    unusable: list[Unusable] = field(default_factory=list)
    end: EndMarker | None = None  #: of an end marker before the last line
    after_end: int = 0  #: lines behind it
    #: (seq, ns) of every usable event, in the order of the lines: shape (events, 2)
    places: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))


def decode(chunk: bytes) -> Decoded:
    """Decode whole lines of events, without the file's header and its end marker."""
    try:
        events = _DECODER.decode_lines(chunk)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        decoded, events = _line_by_line(chunk)
    else:
        decoded = Decoded()
        if len(events) != _line_count(chunk):  # the decoder does not mind where lines end
            decoded, events = _line_by_line(chunk)
    by_kind = decoded.events
    for event in events:
        by_kind[type(event).__name__].append(event)
    if UnknownEvent.__name__ in by_kind:
        by_kind[UNKNOWN_KIND] = by_kind.pop(UnknownEvent.__name__)
    if events:
        decoded.places = np.array(list(map(_PLACE, events)), dtype=np.int64)
    return decoded


def _line_count(chunk: bytes) -> int:
    return chunk.count(b"\n") + (chunk[-1:] not in (b"", b"\n"))


def _line_by_line(chunk: bytes) -> tuple[Decoded, list[Any]]:
    events: list[Any] = []
    decoded = Decoded()
    offset = 0
    for line in chunk.split(b"\n"):
        decoded.after_end += bool(line.strip()) and decoded.end is not None
        if (marker := end_of(line)) is not None:
            decoded.end = decoded.end or marker
        elif line.strip():
            try:
                events.append(_DECODER.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                event, reason, problems = event_of(line)
                if event is not None and reason is None and event.get("kind") not in KINDS:
                    events.append(UnknownEvent(**{name: event[name] for name in COMMON_FIELDS}))
                else:
                    text = line[:_SHOWN_BYTES].decode("utf-8", errors="replace")
                    detail = "; ".join(problems) or str(error)
                    decoded.unusable.append(Unusable(offset, reason or Reason.FLAWED, text, detail))
        offset += len(line) + 1
    return decoded, events
