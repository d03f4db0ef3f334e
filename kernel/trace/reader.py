"""Reading traces back in plain Python: for the report, for `doctor` and for tests; the pipeline has its own ingest.

Nothing is dropped silently: a line that cannot be used becomes a `Quarantined` with its reason, and the readers
that judge (`comparison.pipeline.ingest`) use the same reasons.
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

#: A longer line is nothing that the writer wrote; reading stops there rather than fill the memory.
LINE_BYTES_MAX = 16 * 1024 * 1024
_SHOWN_CHARACTERS = 120


class Reason(StrEnum):
    """Why a line cannot be used."""

    TORN = "torn"  #: the write was cut off: it begins as an event and does not end as one
    NOT_JSON = "not JSON"
    NO_HEADER = "no header"  #: its file does not begin with a usable header
    NEWER_SCHEMA = "newer schema"  #: written by a later version of this program
    FLAWED = "flawed event"  #: JSON, but a required field is missing or has the wrong type


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A line that was set aside; `line` counts from 1, `text` is its beginning."""

    line: int
    reason: Reason
    text: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """One file: its header (None when it has no usable one), the usable events in order, and the rest."""

    path: Path
    header: Mapping[str, Any] | None
    events: tuple[dict[str, Any], ...] = ()
    quarantined: tuple[Quarantined, ...] = field(default=())

    @property
    def missing(self) -> int:
        """How many sequence numbers are absent; 0 in a trace that lost nothing."""
        if not self.events:
            return 0
        return int(self.events[-1]["seq"]) + 1 - len(self.events) - len(self.quarantined)

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] in kinds]


def read_trace(path: Path) -> Trace:
    """Read one trace file. Raises OSError when it cannot be read at all; its content never raises."""
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


def read_traces(folder: Path) -> list[Trace]:
    """Every `*.jsonl` of a trace folder, by name."""
    return [read_trace(path) for path in sorted(folder.glob("*.jsonl"))]


def read_header(path: Path) -> tuple[Mapping[str, Any] | None, Reason]:
    """The header alone, without reading the file: (header, why there is none)."""
    with path.open("rb") as file:
        return header_of(file.readline(LINE_BYTES_MAX))


def in_order(traces: Iterable[Trace]) -> Iterator[dict[str, Any]]:
    """The events of several processes of one machine by time; ties by process, then by sequence number."""
    everything = [event for trace in traces for event in trace.events]
    yield from sorted(everything, key=lambda event: (event["ns"], event["process"], event["seq"]))


def header_of(line: bytes) -> tuple[Mapping[str, Any] | None, Reason]:
    """(header, reason): the header of a first line, or None and why it is none."""
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
    """The lines of a file that are not empty, without their ends."""
    with path.open("rb") as file:
        while line := file.readline(LINE_BYTES_MAX):
            if line.strip():
                yield line.rstrip(b"\n")


def event_of(line: bytes) -> tuple[dict[str, Any] | None, Reason | None, list[str]]:
    """(event, reason, complaints): what a line holds, and why it cannot be used, None when it can."""
    try:
        event = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        cut_off = line.startswith(b"{") and not line.rstrip().endswith(b"}")
        return None, Reason.TORN if cut_off else Reason.NOT_JSON, []
    if not isinstance(event, dict):
        return None, Reason.NOT_JSON, []
    wrong = problems(event)
    return event, Reason.FLAWED if wrong else None, wrong
