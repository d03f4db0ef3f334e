"""What was measured of members that their groups refused; a part of `Measured`."""

from __future__ import annotations

import msgspec


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A member's group refused it for good; `admitted_ns` is when a process at its place was next in a group."""

    process: str
    group: str
    api: str
    error: str
    t_ns: int
    admitted_ns: int | None = None
