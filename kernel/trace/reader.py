"""Read traces in plain Python: for the report, `doctor` and tests. The pipeline has its own ingest.

No line is dropped silently: an unusable one becomes a `Quarantined` with a reason. `comparison.pipeline.ingest` uses
the same reasons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from kernel.trace.check import problems
from kernel.trace.events import HEADER_FIELDS, SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

#: The writer never writes a longer line; the limit keeps a corrupt file from filling the memory.
LINE_BYTES_MAX = 16 * 1024 * 1024
_SHOWN_CHARACTERS = 120


class Reason(StrEnum):
    """Why a line is unusable."""

    TORN = "torn"  #: the write was cut off: the line begins like an event but does not end like one
    NOT_JSON = "not JSON"
    NO_HEADER = "no header"  #: the file does not begin with a usable header
    NEWER_SCHEMA = "newer schema"  #: written by a later version of this program
    FLAWED = "flawed event"  #: JSON, but a required field is missing or has the wrong type


@dataclass(frozen=True, slots=True)
class Quarantined:
    """An unusable line; `line` counts from 1, `text` is its beginning."""

    line: int
    reason: Reason
    text: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace file: its header (None if unusable), the usable events in order, and the quarantined lines."""

    path: Path
    header: Mapping[str, Any] | None
    events: tuple[dict[str, Any], ...] = ()
    quarantined: tuple[Quarantined, ...] = field(default=())

    @property
    def missing(self) -> int:
        """The number of missing sequence numbers; 0 in a complete trace."""
        if not self.events:
            return 0
        return int(self.events[-1]["seq"]) + 1 - len(self.events) - len(self.quarantined)

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] in kinds]


def read_trace(path: Path) -> Trace:
    """Read one trace file. Raises OSError if the file is unreadable; bad content never raises."""
    lines = list(lines_of(path))
    header, header_reason = header_of(lines[0]) if lines else (None, Reason.NO_HEADER)
    events: list[dict[str, Any]] = []
    quarantined: list[Quarantined] = []
    for number, line in enumerate(lines, start=1):
        if number == 1 and header is not None:
            continue
        event, reason, wrong = event_of(line)
        if header is None:
            reason = header_reason
        if reason is None and event is not None:
            events.append(event)
        elif reason is not None:
            shown = line[:_SHOWN_CHARACTERS].decode("utf-8", errors="replace")
            quarantined.append(Quarantined(number, reason, shown, "; ".join(wrong)))
    return Trace(path, header, tuple(events), tuple(quarantined))


def read_header(path: Path) -> tuple[Mapping[str, Any] | None, Reason]:
    """Read only the header of a file. Returns what `header_of` returns."""
    with path.open("rb") as file:
        return header_of(file.readline(LINE_BYTES_MAX))


def in_order(traces: Iterable[Trace]) -> Iterator[dict[str, Any]]:
    """The events of several processes of one machine, sorted by time, then by process and sequence number."""
    everything = [event for trace in traces for event in trace.events]
    yield from sorted(everything, key=lambda event: (event["ns"], event["process"], event["seq"]))


def header_of(line: bytes) -> tuple[Mapping[str, Any] | None, Reason]:
    """Decode the first line of a file. Returns (header, reason); without a usable header (None, why)."""
    try:
        decoded = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None, Reason.NO_HEADER
    header = decoded.get("header") if isinstance(decoded, dict) else None
    if not isinstance(header, dict) or not isinstance(header.get("schema"), int):
        return None, Reason.NO_HEADER
    if header["schema"] > SCHEMA_VERSION:
        return None, Reason.NEWER_SCHEMA
    if any(name not in header for name in HEADER_FIELDS):
        return None, Reason.NO_HEADER
    return header, Reason.NO_HEADER


def lines_of(path: Path) -> Iterator[bytes]:
    """The non-empty lines of a file, without line ends."""
    with path.open("rb") as file:
        while line := file.readline(LINE_BYTES_MAX):
            if line.strip():
                yield line.rstrip(b"\n")


def event_of(line: bytes) -> tuple[dict[str, Any] | None, Reason | None, list[str]]:
    """Decode a line. Returns (event, reason, problems); the reason is None for a usable event."""
    try:
        event = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        cut_off = line.startswith(b"{") and not line.rstrip().endswith(b"}")
        return None, Reason.TORN if cut_off else Reason.NOT_JSON, []
    if not isinstance(event, dict):
        return None, Reason.NOT_JSON, []
    wrong = problems(event)
    return event, Reason.FLAWED if wrong else None, wrong
