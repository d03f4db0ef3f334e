"""Which owner had which partition, and when, the slow way: the definitions of the views, in loops over sorted events.

Two groups on one topic are independent: all intervals are kept by group. An event of a member belongs to the group that
its process joined under that id; if it joined none, to the only group that its process joined at all, or to the only
one of the run; if there are several, to the group '', which should own nothing.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

Event = dict[str, Any]
#: A partition of a group: group, topic, partition.
Key = tuple[str, str, int]

BELIEVED, AUTHORITY, DELIVERING = "believed", "authority", "delivering"
SECOND_NS = 1_000_000_000
CLAIM_KINDS = ("partitions_assigned", "partitions_revoked", "partitions_lost")
_CLOSED_BY = {"partitions_assigned": "reassigned", "partitions_revoked": "revoked", "partitions_lost": "lost"}
#: The kinds that name the groups of a run.
GROUP_KINDS = ("member_started", "authority_named", "offset_written", "final_offset", "group_changed")


@dataclass(frozen=True)
class Interval:
    """An owner had a partition from `from_ns` until `until_ns`; None: until the end of the run."""

    key: Key
    owner: str
    from_ns: int
    until_ns: int | None
    closed_by: str
    gone_ns: int | None = None  #: when the owner itself ended, if it did
    seq: int = 0  #: of the event that opened it


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


def believed(events: list[Event]) -> list[Interval]:
    """From each assignment until the stream's next event about the partition, or until its member or process ends."""
    groups, found = Groups(events), []
    notifications = of(events, *CLAIM_KINDS)
    for event in notifications:
        if event["kind"] != "partitions_assigned":
            continue
        process_ns = min(
            (
                each["t_ns"]
                for each in of(events, "process_ended")
                if each["target"] == event["process"] and each["t_ns"] >= event["t_ns"]
            ),
            default=None,
        )
        # A member that closes and returns counts as running again.
        member_ns = min(
            (
                each["t_ns"]
                for each in of(events, "member_closed")
                if (each["process"], each["member"]) == (event["process"], event["member"])
                and each["seq"] > event["seq"]
            ),
            default=None,
        )
        later = [
            each
            for each in in_process(notifications)
            if stream_of(each) == stream_of(event) and each["seq"] > event["seq"]
        ]
        for place in event["partitions"]:
            key = (groups.group_of(event), place["topic"], place["partition"])
            following = [each for each in later if names_partition(each, key[1], key[2])]
            next_ns = following[0]["t_ns"] if following else None
            until_ns = _first(next_ns, process_ns, member_ns)
            if until_ns is None:
                closed_by = "end"
            elif until_ns == next_ns:
                closed_by = _CLOSED_BY[following[0]["kind"]]
            else:
                closed_by = "member" if until_ns == member_ns else "process"
            gone_ns = _first(process_ns, member_ns)
            found.append(Interval(key, owner_of(event), event["t_ns"], until_ns, closed_by, gone_ns, event["seq"]))
    return found


def _first(*moments: int | None) -> int | None:
    return min((moment for moment in moments if moment is not None), default=None)


def namings(events: Iterable[Event], key: Key) -> list[Event]:
    """The authority's events about one partition, in order."""
    return in_time(
        event
        for event in of(events, "authority_named", "authority_cleared")
        if (event["group"], event["topic"], event["partition"]) == key
    )


def authority(events: list[Event]) -> list[Interval]:
    """From each event that names an owner until the authority's next event about the partition."""
    moves = of(events, "authority_named", "authority_cleared")
    found = []
    for key in sorted({(event["group"], event["topic"], event["partition"]) for event in moves}):
        of_key = namings(moves, key)
        for number, event in enumerate(of_key):
            if event["kind"] == "authority_named":
                after = of_key[number + 1] if number + 1 < len(of_key) else None
                if after is None:
                    closed_by = "end"
                else:
                    closed_by = "renamed" if after["kind"] == "authority_named" else after["reason"]
                until_ns = after["t_ns"] if after is not None else None
                found.append(Interval(key, event["owner"], event["t_ns"], until_ns, closed_by))
    return found


def delivering(events: list[Event]) -> list[Interval]:
    """From the first to the last poll of each stretch: polls of one stream that are at most a second apart, with no
    change of the stream's claim on the partition in between.
    """
    groups, found = Groups(events), []
    polls, claims = of(events, "records_delivered"), of(events, *CLAIM_KINDS)
    lines = sorted({(owner_of(event), groups.key_of(event)) for event in polls})
    for owner, key in lines:
        mine = in_process(event for event in polls if owner_of(event) == owner and groups.key_of(event) == key)
        notifications = [
            event for event in claims if owner_of(event) == owner and names_partition(event, key[1], key[2])
        ]
        stretch = [mine[0]]
        for before, event in itertools.pairwise(mine):
            is_claim_between = any(before["seq"] < each["seq"] < event["seq"] for each in notifications)
            if is_claim_between or event["t_ns"] - before["t_ns"] > SECOND_NS:
                found.append(Interval(key, owner, stretch[0]["t_ns"], stretch[-1]["t_ns"], "pause"))
                stretch = []
            stretch.append(event)
        found.append(Interval(key, owner, stretch[0]["t_ns"], stretch[-1]["t_ns"], "pause"))
    return found


def is_the_owner(owner: str, by: str) -> bool:
    """Whether a member is the authority's owner; ZooKeeper's owners are threads of consumers, `<consumer id>-<n>`."""
    return by in (owner, re.sub(r"-\d+$", "", owner))
