"""The clock of a run: nanoseconds since the header of the run's runner, of its first process without one.

Moments of one boot compare exactly, on the monotonic clock; those of others are aligned by the wall clocks in their
headers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Header = Mapping[str, Any]


def reference_of(headers: Iterable[Header]) -> Header | None:
    """The header whose moment is 0; None without any."""
    return min(headers, key=lambda header: (header["role"] != Role.RUNNER, header["monotonic_ns"]), default=None)


def offset_ns(header: Header, reference: Header) -> int:
    """What to add to a file's nanoseconds to get nanoseconds on the run's clock."""
    if header["boot_id"] == reference["boot_id"]:
        return -int(reference["monotonic_ns"])
    return int(header["wall_ns"]) - int(header["monotonic_ns"]) - int(reference["wall_ns"])
