"""Events in order, the partitions that they are about, and the intervals that the plain fold makes of them.

Two groups on one topic are independent: all intervals are kept by group. Which group an event of a member is about is
said by `comparison.ownership.groups`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from comparison.ownership.fold import Interval, ownership_of
from comparison.ownership.groups import Memberships

Event = dict[str, Any]
#: A partition of a group: group, topic, partition.
Key = tuple[str, str, int]

CLAIM_KINDS = ("partitions_assigned", "partitions_revoked", "partitions_lost")


def of(events: Iterable[Event], *kinds: str) -> list[Event]:
    return [event for event in events if event["kind"] in kinds]


def in_time(events: Iterable[Event]) -> list[Event]:
    """In order of time; at equal times in order of `seq`."""
    return sorted(events, key=lambda event: (event["t_ns"], event["seq"], event["process"]))


def in_process(events: Iterable[Event]) -> list[Event]:
    """The events of one process, in order of `seq`."""
    return sorted(events, key=lambda event: event["seq"])


def owner_of(event: Event) -> str:
    """The unit of ownership among members."""
    return f"{event['process']}/{event['member'] or ''}/{event['stream'] or 0}"


def stream_of(event: Event) -> tuple[str, str | None, int | None]:
    return event["process"], event["member"], event["stream"]


def names_partition(event: Event, topic: str, partition: int) -> bool:
    return {"topic": topic, "partition": partition} in event["partitions"]


def key_of(event: Event, groups: Memberships) -> Key:
    """The partition that a member's event is about."""
    return groups.group(event["process"], event["member"]), event["topic"], event["partition"]


def intervals_of(events: list[Event], view: str) -> list[Interval]:
    """The intervals of one view, folded one event after the other in the order of time."""
    found = ownership_of((event["t_ns"], event) for event in sorted(events, key=_place))
    return [each for each in found.intervals if each.view == view]


def _place(event: Event) -> tuple[int, str, int]:
    """The order of `kernel.trace.run_clock.in_order`."""
    return event["t_ns"], event["process"], event["seq"]


def namings(events: Iterable[Event], key: Key) -> list[Event]:
    """The authority's events about one partition, in order."""
    return in_time(
        event
        for event in of(events, "authority_named", "authority_cleared")
        if (event["group"], event["topic"], event["partition"]) == key
    )


def is_the_owner(owner: str, by: str) -> bool:
    """Whether a member is the authority's owner; ZooKeeper's owners are threads of consumers, `<consumer id>-<n>`."""
    return by in (owner, re.sub(r"-\d+$", "", owner))
