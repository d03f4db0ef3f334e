"""Decode chunks of trace files: lines in, typed events by kind out.

A chunk is decoded at once, every field checked, a few hundred nanoseconds a line. Only a chunk that fails goes line by
line; its unusable lines are kept with the reason, by the same rules as those of the plain reader.
"""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from comparison.pipeline.bronze.kinds import ANY_EVENT, UNKNOWN_KIND
from kernel.trace.check import is_range, is_shallow
from kernel.trace.events import COMMON_FIELDS, KINDS, Type
from kernel.trace.limits import RECORD_RANGES
from kernel.trace.reader import LINE_BYTES_MAX, EndMarker, Reason, end_of, event_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

#: How many unusable lines of a chunk are kept, and how much of each; all are counted.
KEPT_LINES = 1_000
KEPT_CHARACTERS = 1_000
_DECODER = msgspec.json.Decoder(ANY_EVENT)
_PLACE = attrgetter("seq", "ns")
_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
#: The fields whose values may be nested, by kind; such kinds are rare.
_DETAILS: Mapping[str, Sequence[str]] = {
    name: details
    for name, kind in KINDS.items()
    if (details := [each for each, type_ in kind.fields.items() if type_ is Type.DETAIL])
}


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
    """A line that is no usable event; `line` is its number in the chunk, from 1, and `text` its beginning."""

    line: int
    reason: Reason
    text: str
    detail: str


@dataclass(slots=True)
class Decoded:
    """The events of a chunk by kind, in the order of the lines, and the lines that are none."""

    events: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    unusable: list[Unusable] = field(default_factory=list)  #: the first ones
    reasons: Counter[str] = field(default_factory=Counter)  #: of all of them
    end: EndMarker | None = None  #: of an end marker before the last line
    after_end: int = 0  #: lines behind it
    #: (seq, ns) of every usable event, in the order of the lines: shape (events, 2)
    places: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    in_order: Sequence[Any] = ()  #: the usable events, in the order of the lines

    def add_unusable(self, line: int, reason: Reason, text: bytes, detail: str) -> None:
        self.reasons[str(reason)] += 1
        if len(self.unusable) < KEPT_LINES:
            self.unusable.append(Unusable(line, reason, beginning(text), detail))


def beginning(line: bytes) -> str:
    """What is kept of an unusable line. A character of UTF-8 has four bytes at most."""
    return line[: 4 * KEPT_CHARACTERS].decode("utf-8", errors="replace")[:KEPT_CHARACTERS]


def decode(chunk: bytes, *, line_by_line: bool = False) -> Decoded:
    """Decode whole lines of events, without the file's header and its end marker.

    Whether ranges of records are possible is checked only line by line; see `decoded_tables`.
    """
    events = None if line_by_line else _at_once(chunk)
    if events is None:
        decoded, events = _line_by_line(chunk)
    else:
        decoded = Decoded()
    decoded.in_order = events
    for event in events:
        decoded.events[type(event).__name__].append(event)
    if not all(_is_shallow(event) for kind in _DETAILS for event in decoded.events.get(kind, ())):
        return decode(chunk, line_by_line=True)
    if UnknownEvent.__name__ in decoded.events:
        decoded.events[UNKNOWN_KIND] = decoded.events.pop(UnknownEvent.__name__)
    if events:
        decoded.places = np.array(list(map(_PLACE, events)), dtype=np.int64)
    return decoded


def _at_once(chunk: bytes) -> list[Any] | None:
    """The events of a chunk; None if a line of it is not an ordinary event."""
    if not _is_text(chunk) or _may_have_long_line(chunk):
        return None
    try:
        events: list[Any] = _DECODER.decode_lines(chunk)
    except _UNDECODABLE:
        return None
    if len(events) != _line_count(chunk):  # the decoder does not mind where lines end
        return None
    return events


def _is_text(line: bytes) -> bool:
    """Whether it is UTF-8; the decoder does not look into fields that it does not know."""
    if not line.isascii():
        try:
            line.decode()
        except UnicodeDecodeError:
            return False
    return True


def _may_have_long_line(chunk: bytes) -> bool:
    """A line that is too long covers half of its length between two multiples of it, wherever it begins."""
    half = LINE_BYTES_MAX // 2
    return len(chunk) > LINE_BYTES_MAX and any(
        chunk.find(b"\n", place, place + half) < 0 for place in range(0, len(chunk), half)
    )


def _is_shallow(event: Any) -> bool:
    return all(is_shallow(getattr(event, name)) for name in _DETAILS.get(type(event).__name__, ()))


def _line_count(chunk: bytes) -> int:
    return chunk.count(b"\n") + (chunk[-1:] not in (b"", b"\n"))


def _line_by_line(chunk: bytes) -> tuple[Decoded, list[Any]]:
    events: list[Any] = []
    decoded = Decoded()
    for number, ended in enumerate(io.BytesIO(chunk), start=1):
        line = ended.removesuffix(b"\n")
        if not line.strip():
            continue
        decoded.after_end += decoded.end is not None
        if (marker := end_of(line)) is not None:
            decoded.end = decoded.end or marker
        elif (event := usual_event(line)) is not None:
            events.append(event)
        else:
            found, reason, problems = event_of(line)
            if found is not None and reason is None and found.get("kind") not in KINDS:
                events.append(UnknownEvent(**{name: found[name] for name in COMMON_FIELDS}))
            else:
                decoded.add_unusable(number, reason or Reason.FLAWED, line, "; ".join(problems))
    return decoded, events


def usual_event(line: bytes) -> Any:
    """The event of a line; None if the line is no event of a kind that we know, or is unusable."""
    if line.lstrip()[:1] != b"{" or len(line) > LINE_BYTES_MAX or not _is_text(line):
        return None
    try:
        event = _DECODER.decode(line)
    except _UNDECODABLE:
        return None
    pairs = RECORD_RANGES.get(type(event).__name__, ())
    if _is_shallow(event) and all(is_range(getattr(event, first), getattr(event, last)) for first, last in pairs):
        return event
    return None
