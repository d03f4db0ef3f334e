"""What a group skipped when a position was set to the log's end, the slow way: offset by offset."""

from __future__ import annotations

from collections import defaultdict

from comparison.ownership.groups import Memberships
from comparison.pipeline.measured_offsets import Skip
from tests.support.oracle.intervals import Event, Key, in_time, key_of, of, owner_of
from tests.support.oracle.lives import LIFE, as_traced, life_of


def skips_of(events: list[Event]) -> tuple[list[Skip], dict[Key, set[int]]]:
    """The skips, and for each partition with a reset to the end the offsets of records that its group is not due."""
    groups = Memberships.of_events(events)
    handed, acked = _numbers(events, "records_delivered", groups), _acked(events)
    starts = in_time(of(events, "position_started"))
    resets: defaultdict[Key, list[Event]] = defaultdict(list)
    for event in of(events, "position_reset"):
        if event["reset"] in ("latest", "largest"):
            resets[key_of(event, groups)].append(event)
    skips, not_due = [], {}
    for key, of_one in sorted(resets.items()):
        first = next((each["offset"] for each in starts if key_of(each, groups) == key), 0)
        begin = 0 if _was_added(key, events, groups) else first
        not_due[key] = {offset for offset in acked.get(key[1:], ()) if offset < begin}
        for event in sorted(of_one, key=lambda each: (each["offset"], each["t_ns"], each["seq"])):
            low, life = event["offset"], life_of(event["offset"])
            begin = max(begin, life * LIFE)
            while low > begin and low - 1 not in handed[key]:
                low -= 1
            begin = max(begin, event["offset"])
            offsets = set(range(low, event["offset"]))
            written = offsets & acked[key[1:]] if key[1:] in acked else offsets
            if not written:
                continue
            not_due[key] |= offsets
            before = [each for each in in_time(of(events, "offset_written")) if each["t_ns"] < event["t_ns"]]
            commits = [each["offset"] for each in before if (each["group"], each["topic"], each["partition"]) == key]
            skips.append(
                Skip(
                    group=key[0],
                    topic=key[1],
                    partition=key[2],
                    first=low - life * LIFE,
                    end=event["offset"] - life * LIFE,
                    records=len(written),
                    reset=event["reset"],
                    committed=as_traced(commits[-1]) if commits else None,
                    by=owner_of(event),
                    t_ns=event["t_ns"],
                )
            )
    return skips, not_due


def _numbers(events: list[Event], kind: str, groups: Memberships) -> defaultdict[Key, set[int]]:
    found: defaultdict[Key, set[int]] = defaultdict(set)
    for event in of(events, kind):
        found[key_of(event, groups)] |= set(range(event["first"], event["last"] + 1))
    return found


def _acked(events: list[Event]) -> dict[tuple[str, int], set[int]]:
    found: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    for event in of(events, "records_acked"):
        found[event["topic"], event["partition"]] |= set(range(event["first"], event["last"] + 1))
    return dict(found)


def _was_added(key: Key, events: list[Event], groups: Memberships) -> bool:
    """Whether the partition was first led behind the start of the group's first member."""
    started = [
        each["t_ns"]
        for each in of(events, "member_started")
        if each["member"] and groups.group(each["process"], each["member"]) == key[0]
    ]
    led = [
        each["t_ns"]
        for each in of(events, "leader_changed")
        if each["leader"] >= 0 and (each["topic"], each["partition"]) == key[1:]
    ]
    return bool(started and led) and min(started) < min(led)
