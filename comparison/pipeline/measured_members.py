"""What was measured of members that their groups refused, or gave up; a part of `Measured`."""

from __future__ import annotations

import msgspec


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A member's group refused it for good.

    `was_in`: a process at its place had been in that group before. `admitted_ns` is when one was next in a group.
    """

    process: str
    group: str
    api: str
    error: str
    t_ns: int
    was_in: bool = False
    admitted_ns: int | None = None


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """A member's session was ended, so long at most after its authority last heard from it."""

    t_ns: int
    longest_ns: int
