"""The stream as JSON lines: what a trace file has, with the seconds of the run, all files merged and in order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from comparison.report.export.stream import Recorded, Stream

_FIRST = ("process", "kind", "member", "stream", "cause")
#: How a line is found in the trace again.
_LAST = ("seq", "ns")


def lines(stream: Stream) -> Iterator[str]:
    """One line an event, without line ends.

    In ASCII, so that a name in a trace cannot move the terminal's cursor or reverse what follows.
    """
    for each in stream.events:
        yield json.dumps(_fields(each), separators=(",", ":"))


def _fields(recorded: Recorded) -> Mapping[str, Any]:
    event = recorded.event
    own = {name: value for name, value in event.items() if name not in (*_FIRST, *_LAST)}
    return {
        "s": recorded.seconds,
        "role": recorded.role,
        **{name: event[name] for name in _FIRST},
        **own,
        **{name: event[name] for name in _LAST},
    }
