"""Read traces in plain Python: for the report, `doctor` and tests. The pipeline has its own ingest.

No line is dropped silently: an unusable one becomes a `Quarantined` with a reason. The pipeline
(`comparison.pipeline.bronze.decode`) uses the same reasons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kernel.platform.places import opened
from kernel.trace.check import TIME_OUT_OF_RANGE, end_problems, header_problems, is_time, problems
from kernel.trace.events import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kernel.platform.places import Place

#: No usable line is longer; the limit keeps a corrupt file from filling the memory.
LINE_BYTES_MAX = 16 * 1024 * 1024
_SHOWN_CHARACTERS = 120
_END = b'{"end"'
_TRUNCATED = "Input data was truncated"  # as msgspec says it


class Reason(StrEnum):
    """Why a line is unusable."""

    TORN = "torn"  #: the write was cut off: the line begins like an event but does not end like one
    NOT_JSON = "not JSON"
    NO_HEADER = "no header"  #: the file does not begin with a usable header
    NEWER_SCHEMA = "newer schema"  #: written by a later version of this program
    FLAWED = "flawed event"  #: JSON, but a required field is missing or has the wrong type
    NESTED = "nested too deep"  #: JSON that the decoder refuses to follow
    TIME = "impossible time"  #: an event whose `ns` cannot be added to other times
    LONG = "line too long"  #: longer than LINE_BYTES_MAX
    UNREADABLE = "unreadable file"  #: a folder, a broken link, no permission: nothing of the file was read


@dataclass(frozen=True, slots=True)
class Quarantined:
    """An unusable line; `line` counts from 1 (0: the whole file), `text` is its beginning."""

    line: int
    reason: Reason
    text: str
    detail: str = ""
    file: str = ""  #: the file's name


@dataclass(frozen=True, slots=True)
class EndMarker:
    """The last line of a file whose process ended cleanly."""

    events: int  #: in the file
    monotonic_ns: int


class HeaderLine(NamedTuple):
    """The first line of a file. Without a usable header, `header` is None, and `detail` says what is wrong with it."""

    header: Mapping[str, Any] | None
    reason: Reason = Reason.NO_HEADER
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace file: its header (None if unusable), the usable events in order, and the quarantined lines.

    `end` is None in a file of schema 1, and in one whose process was killed or whose tail is lost.
    """

    path: Place
    header: Mapping[str, Any] | None
    events: tuple[dict[str, Any], ...] = ()
    quarantined: tuple[Quarantined, ...] = field(default=())
    end: EndMarker | None = None  #: the first one
    lines: int = 0  #: non-empty ones, header and end marker included
    after_end: int = 0  #: lines that follow the end marker

    @property
    def unreadable(self) -> str | None:
        """Why the file could not be read; None if it was."""
        whole = (each.detail for each in self.quarantined if each.reason is Reason.UNREADABLE)
        return next(whole, None)

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] in kinds]


def read_trace(path: Place) -> Trace:
    """Read one trace file. Neither bad content nor a file that cannot be read raises."""
    try:
        lines = list(lines_of(path))
    except OSError as error:
        whole = _unreadable(path, error)
        return Trace(path, None, quarantined=(whole,))
    first = header_of(lines[0]) if lines else HeaderLine(None)
    events: list[dict[str, Any]] = []
    quarantined: list[Quarantined] = []
    end, ended_at = None, len(lines)
    for number, line in enumerate(lines, start=1):
        if number == 1 and first.header is not None:
            continue
        if first.header is not None and (marker := end_of(line)) is not None:
            if end is None:
                end, ended_at = marker, number
            continue
        event, reason, wrong = event_of(line)
        if first.header is None:
            reason, wrong = first.reason, [first.detail]
        if reason is not None:
            shown = line[:_SHOWN_CHARACTERS].decode("utf-8", errors="replace")
            quarantined.append(Quarantined(number, reason, shown, "; ".join(wrong), path.name))
        elif event is not None:
            events.append(event)
    return Trace(path, first.header, tuple(events), tuple(quarantined), end, len(lines), len(lines) - ended_at)


def read_header(path: Place) -> HeaderLine:
    """Read only the header of a file. Never raises."""
    try:
        with opened(path) as file:
            return header_of(file.readline(LINE_BYTES_MAX))
    except OSError as error:
        return HeaderLine(None, Reason.UNREADABLE, _unreadable(path, error).detail)


def header_of(line: bytes) -> HeaderLine:
    """Decode the first line of a file."""
    try:
        decoded = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return HeaderLine(None, detail=str(error))
    header = decoded.get("header") if isinstance(decoded, dict) else None
    if not isinstance(header, dict):
        return HeaderLine(None, detail="header is missing")
    wrong = header_problems(header)
    # A later schema may have other fields.
    if not any(each.startswith("schema ") for each in wrong):
        if header["schema"] > SCHEMA_VERSION:
            return HeaderLine(None, Reason.NEWER_SCHEMA, f"schema is {header['schema']}, not 1 to {SCHEMA_VERSION}")
        if header["schema"] < 1:
            wrong.append(f"schema is {header['schema']}, not 1 to {SCHEMA_VERSION}")
    return HeaderLine(None, detail="; ".join(wrong)) if wrong else HeaderLine(header)


def lines_of(path: Place) -> Iterator[bytes]:
    """The non-empty lines of a file, without line ends; the beginning of those that are too long.

    Raises OSError if the file cannot be read.
    """
    with opened(path) as file:
        while line := file.readline(LINE_BYTES_MAX + 1):
            rest = line
            while len(rest) > LINE_BYTES_MAX and not rest.endswith(b"\n"):
                rest = file.readline(LINE_BYTES_MAX + 1)
            if line.strip():
                yield line.rstrip(b"\n")


def end_of(line: bytes) -> EndMarker | None:
    """The end marker in a line; None if the line is something else, or a flawed marker."""
    if not line.startswith(_END):
        return None
    try:
        end = msgspec.json.decode(line)["end"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(end, dict) or end_problems(end):
        return None
    return EndMarker(end["events"], end["monotonic_ns"])


def event_of(line: bytes) -> tuple[dict[str, Any] | None, Reason | None, list[str]]:
    """Decode a line. Returns (event, reason, problems); the reason is None for a usable event.

    An end marker is not an event: call `end_of` first.
    """
    if len(line) > LINE_BYTES_MAX:
        return None, Reason.LONG, [f"longer than {LINE_BYTES_MAX} bytes"]
    if not _may_be_json(line):
        return None, Reason.NOT_JSON, ["neither an object nor a list"]
    try:
        event = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return None, Reason.TORN if _is_torn(line, str(error)) else Reason.NOT_JSON, [str(error)]
    except RecursionError:
        return None, Reason.NESTED, []
    if not isinstance(event, dict):
        return None, Reason.NOT_JSON, ["not an object"]
    wrong = problems(event)
    if wrong:
        return event, Reason.FLAWED, wrong
    if not is_time(event["ns"]):
        return event, Reason.TIME, [f"ns {TIME_OUT_OF_RANGE}"]
    return event, None, []


def _is_torn(line: bytes, error: str) -> bool:
    """Whether a line that cannot be decoded is the beginning of an object; an inner one may end where it was cut."""
    return line.startswith(b"{") and (not line.rstrip().endswith(b"}") or error == _TRUNCATED)


def _may_be_json(line: bytes) -> bool:
    """Whether it begins like an object or a list. To decode what does not is slow: it raises."""
    return line.lstrip()[:1] in (b"{", b"[")


def _unreadable(path: Place, error: OSError) -> Quarantined:
    return Quarantined(0, Reason.UNREADABLE, "", error.strerror or str(error), path.name)
