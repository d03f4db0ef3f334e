"""The clock of a run: nanoseconds since the header of the run's runner, of its first process without one.

Moments of one boot compare exactly, on the monotonic clock; those of others are aligned by the wall clocks in their
headers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kernel.trace.check import is_time
from kernel.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kernel.trace.reader import Trace

    Header = Mapping[str, Any]

_NS_PER_YEAR = 31_556_952_000_000_000


class Placed(NamedTuple):
    """An event with its time on the run's clock, and the header of its file."""

    t_ns: int
    header: Header
    event: dict[str, Any]


def reference_of(headers: Iterable[Header]) -> Header | None:
    """The header whose moment is 0; None without any."""
    return min(headers, key=lambda header: (header["role"] != Role.RUNNER, header["monotonic_ns"]), default=None)


def offset_ns(header: Header, reference: Header) -> int:
    """What to add to a file's nanoseconds to get nanoseconds on the run's clock."""
    if header["boot_id"] == reference["boot_id"]:
        return -int(reference["monotonic_ns"])
    return int(header["wall_ns"]) - int(header["monotonic_ns"]) - int(reference["wall_ns"])


def clock_problem(offset: int) -> str:
    """Why the times of a file do not fit beside those of the other files; '' if they do."""
    return "" if is_time(offset) else f"its clock is {abs(offset) // _NS_PER_YEAR} years from that of the run"


def in_order(traces: Sequence[Trace]) -> list[Placed]:
    """The events of one run's files on its clock, by time, then by process and sequence number.

    Those of a file whose clock is impossible are left out.
    """
    reference = reference_of(trace.header for trace in traces if trace.header is not None)
    found: list[Placed] = []
    for trace in traces:
        if trace.header is None or reference is None:
            continue
        ahead_ns = offset_ns(trace.header, reference)
        if not clock_problem(ahead_ns):
            found += [Placed(event["ns"] + ahead_ns, trace.header, event) for event in trace.events]
    return sorted(found, key=lambda each: (each.t_ns, each.event["process"], each.event["seq"]))


def events_in_order(traces: Sequence[Trace]) -> list[dict[str, Any]]:
    """The events as `in_order` has them, with their times on the run's clock as `ns`."""
    return [{**each.event, "ns": each.t_ns} for each in in_order(traces)]
