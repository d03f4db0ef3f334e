"""Members that their groups refused for good: who, why, how often each asked, and whether it was in or got in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The error of a group that has as many members as it may have.
FULL = "GROUP_MAX_SIZE_REACHED"
#: Why a member is refused that the group's own settings keep out: it is full, or another one has the instance id.
AS_SET = (FULL, "FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID", "NodeExists")


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A member that its group refused for good, with all that asked in its place."""

    place: str  #: such as m1, whichever of its processes asked
    group: str
    api: str  #: the request; `create` is ZooKeeper's operation
    error: str  #: Kafka's name of it, or ZooKeeper's
    asked: int  #: how often it was refused: each process asks once
    at_ms: float  #: the first time
    was_in: bool  #: a process at its place had been in the group before
    admitted_ms: float | None  #: since then, until a process at its place was in the group; None: never


def refused_as_set(refusal: Refusal) -> bool:
    """Whether the group's limit, or another member's instance id, kept it out, as somebody has set."""
    return refusal.error in AS_SET


def refused_in_words(refusals: Iterable[Refusal]) -> str:
    """`refused with ERROR: m1 (asked 2 times, in after 4.2 s), m2 (asked once, never in)`; '' if there are none.

    Of members that had been in: `m3 (asked once, had been in, out since)`. If the group was full, others joined before
    them: over its limit, a group keeps those that join the rebalance first (KIP-389).
    """
    by_error: dict[str, list[Refusal]] = {}
    for each in refusals:
        by_error.setdefault(each.error, []).append(each)
    return "; ".join(_of_error(error, members) for error, members in by_error.items())


def _of_error(error: str, refusals: Iterable[Refusal]) -> str:
    told = ", ".join(f"{each.place} ({_outcome(each)})" for each in refusals)
    displaced = [each.place for each in refusals if each.was_in and each.error == FULL]
    lost = f"; at the limit {' and '.join(displaced)} lost out to others that joined first" if displaced else ""
    return f"refused with {error}: {told}{lost}"


def _outcome(refusal: Refusal) -> str:
    asked = "once" if refusal.asked == 1 else f"{refusal.asked} times"
    if refusal.admitted_ms is None:
        return f"asked {asked}, {'had been in, out since' if refusal.was_in else 'never in'}"
    seconds = f"{refusal.admitted_ms / 1000:.1f} s"
    return f"asked {asked}, {f'had been in, in again after {seconds}' if refusal.was_in else f'in after {seconds}'}"
