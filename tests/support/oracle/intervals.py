"""Events in order, the groups that they are about, and the intervals that the plain fold makes of them.

Two groups on one topic are independent: all intervals are kept by group. An event of a member belongs to the group that
its process joined under that id; if it joined none, to the only group that its process joined at all, or to the only
one of the run; if there are several, to the group '', which should own nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from comparison.ownership.fold import ownership_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comparison.ownership.fold import Interval

Event = dict[str, Any]
#: A partition of a group: group, topic, partition.
Key = tuple[str, str, int]

CLAIM_KINDS = ("partitions_assigned", "partitions_revoked", "partitions_lost")
#: The kinds that name the groups of a run.
GROUP_KINDS = ("member_started", "authority_named", "offset_written", "final_offset", "group_changed")


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


def groups_of(events: Iterable[Event]) -> list[str]:
    return sorted({event["group"] for event in of(events, *GROUP_KINDS)})


class Groups:
    """The group of each member, and the topics that each group reads."""

    def __init__(self, events: list[Event]) -> None:
        self.all = groups_of(events)
        self._started = of(events, "member_started")
        self._topics = {
            (event["group"], event["topic"])
            for event in of(events, "authority_named", "offset_written", "final_offset")
        } | {
            (self.group_of(event), place["topic"])
            for event in of(events, "partitions_assigned")
            for place in event["partitions"]
        }

    def group_of(self, event: Event) -> str:
        of_process = [each for each in self._started if each["process"] == event["process"]]
        of_member = [each for each in of_process if each["member"] == event["member"]]
        joined = {each["group"] for each in of_member or of_process} or set(self.all)
        return str(joined.pop()) if len(joined) == 1 else ""

    def readers(self, topic: str) -> list[str]:
        """The groups that should have all of a topic: those seen to read it, and those seen to read nothing."""
        if len(self.all) < 2:
            return self.all or [""]
        idle = [group for group in self.all if not any(reader == group for reader, _ in self._topics)]
        readers = [group for group in self.all if (group, topic) in self._topics]
        return sorted(idle + readers) or self.all

    def key_of(self, event: Event) -> Key:
        """The partition that a member's event is about."""
        return self.group_of(event), event["topic"], event["partition"]


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
