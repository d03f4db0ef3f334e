"""Offsets of recreated topics told apart, the slow way: for each event, all that brokers had traced before it."""

from __future__ import annotations

from comparison.ownership.groups import Memberships
from tests.support.oracle.intervals import Event, Key, in_time, key_of, of

#: No life of a topic has as many records.
LIFE = 1 << 40
DELETED = -2
_COLUMNS = {
    **dict.fromkeys(("records_delivered", "records_acked"), ("first", "last")),
    **dict.fromkeys(("offset_written", "offset_refused", "position_started", "position_reset"), ("offset",)),
    "final_offset": ("committed", "end"),
}


def told_apart(events: list[Event]) -> list[Event]:
    """The events, with the offsets of each later life of a topic beyond those of the one before."""
    led = in_time(of(events, "leader_changed"))
    return [_moved(event, led) if event["kind"] in _COLUMNS else event for event in events]


def _moved(event: Event, led: list[Event]) -> Event:
    is_start = event["kind"] in ("position_started", "position_reset")
    before = lives_before(event["topic"], event["partition"], event["t_ns"], led, is_start=is_start)
    columns = _COLUMNS[event["kind"]]
    return {**event, **{name: event[name] + before * LIFE for name in columns if event.get(name) is not None}}


def lives_before(topic: str, partition: int, t_ns: int, led: list[Event], *, is_start: bool) -> int:
    """How often the partition was deleted and led again by then, or, for a start, was deleted to be led again."""
    found, deleted_ns = 0, None
    for event in led:
        if (event["topic"], event["partition"]) == (topic, partition):
            if event["leader"] == DELETED and deleted_ns is None:
                deleted_ns = event["t_ns"]
            elif event["leader"] >= 0 and deleted_ns is not None:
                found += (deleted_ns if is_start else event["t_ns"]) <= t_ns
                deleted_ns = None
    return found


def life_of(offset: int) -> int:
    return (offset + LIFE // 2) // LIFE


def as_traced(offset: int) -> int:
    return offset - life_of(offset) * LIFE


def old_offsets_used(events: list[Event]) -> int | None:
    """Partitions of a new topic in which deliveries began at the offset last committed of an old one."""
    groups = Memberships.of_events(events)
    begun: dict[tuple[Key, int], Event] = {}
    for event in in_time(of(events, "position_started")):
        begun.setdefault((key_of(event, groups), life_of(event["offset"])), event)
    used: list[bool] = []
    for (key, life), event in begun.items():
        commits = [
            each["offset"]
            for each in in_time(of(events, "offset_written"))
            if (each["group"], each["topic"], each["partition"]) == key and each["t_ns"] < event["t_ns"]
        ]
        if life:
            is_earlier = bool(commits) and life_of(commits[-1]) < life
            used.append(is_earlier and 0 < as_traced(event["offset"]) == as_traced(commits[-1]))
    return sum(used) if used else None
