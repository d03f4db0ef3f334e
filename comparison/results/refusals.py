"""Members that their groups refused for good: who, why, how often each asked, and whether it got in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A member that its group refused for good, with all that asked in its place."""

    place: str  #: such as m1, whichever of its processes asked
    group: str
    api: str  #: the request; `create` is ZooKeeper's operation
    error: str  #: Kafka's name of it, or ZooKeeper's
    asked: int  #: how often it was refused: each process asks once
    at_ms: float  #: the first time
    admitted_ms: float | None  #: since then, until a process at its place was in the group; None: never


def refused_in_words(refusals: Iterable[Refusal]) -> str:
    """`refused with ERROR: m1 (asked 2 times, in after 4.2 s), m2 (asked once, never in)`; '' if there are none."""
    by_error: dict[str, list[str]] = {}
    for each in refusals:
        asked = "once" if each.asked == 1 else f"{each.asked} times"
        admitted = "never in" if each.admitted_ms is None else f"in after {each.admitted_ms / 1000:.1f} s"
        by_error.setdefault(each.error, []).append(f"{each.place} (asked {asked}, {admitted})")
    return "; ".join(f"refused with {error}: {', '.join(members)}" for error, members in by_error.items())
