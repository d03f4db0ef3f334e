"""Commits and deliveries compared with the authority, the slow way: each searches all earlier events again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from comparison.ownership.groups import Memberships
from comparison.pipeline.measured import Acting, CommitTotals, Takeover
from comparison.pipeline.measured_offsets import FinalOffsets
from tests.support.oracle.intervals import Event, Key, in_time, is_the_owner, key_of, namings, of

FENCING_ERRORS = (
    "ILLEGAL_GENERATION",
    "UNKNOWN_MEMBER_ID",
    "FENCED_INSTANCE_ID",
    "FENCED_MEMBER_EPOCH",
    "STALE_MEMBER_EPOCH",
    "UNKNOWN_CONSUMER",
    "PARTITION_NOT_ASSIGNED",
)
BETWEEN_GENERATIONS = ("PreparingRebalance", "CompletingRebalance")
IN_FLIGHT_NS = 100_000_000
OFFSETS_TOPIC = "__consumer_offsets"


@dataclass(frozen=True)
class Clocks:
    """The boot of each process, and what their clocks are known to."""

    boots: Mapping[str, str]
    tolerance_ns: int

    def last_before(self, event: Event, others: Iterable[Event]) -> list[Event]:
        """Those of the others that may be the last one before an event; none if perhaps none is before it."""
        ordered = in_time([event, *(each for each in others if each is not event)])
        at = {id(each): number for number, each in enumerate(ordered)}

        def certainly(one: Event, other: Event) -> bool:
            """Whether one event is before another, wherever within the tolerance both lie."""
            boots = [self.boots.get(each["process"], "") for each in (one, other)]
            if boots[0] == boots[1]:
                return at[id(one)] < at[id(other)]
            return bool(one["t_ns"] + self.tolerance_ns < other["t_ns"])

        rest = [each for each in ordered if each is not event]
        before = [each for each in rest if certainly(each, event)]
        if not before:
            return []
        return [
            each
            for each in rest
            if not certainly(event, each) and not any(certainly(each, between) for between in before)
        ]


ONE_BOOT: Mapping[str, str] = MappingProxyType({})
ONE_CLOCK = Clocks(ONE_BOOT, 0)


def commit_totals(events: list[Event], tolerance_ns: int, boots: Mapping[str, str] = ONE_BOOT) -> CommitTotals | None:
    """None without commits, deliveries or starts of deliveries."""
    written, refused = of(events, "offset_written"), of(events, "offset_refused")
    delivered, started = of(events, "records_delivered"), of(events, "position_started")
    if not (written or refused or delivered or started):
        return None
    groups = Memberships.of_events(events)
    named = of(events, "authority_named", "authority_cleared")
    clocks = Clocks(boots, tolerance_ns)
    back = [moved_back_by(event, written, clocks) for event in written]
    return CommitTotals(
        written=len(written),
        stale_writes=sum(is_stale_write(event, named, clocks) for event in written),
        moved_back=sum(1 for each in back if each > 0),
        moved_back_records=sum(back),
        old_accepted=sum(is_old(event, events, clocks) for event in written),
        refused=len(refused),
        fenced=sum(is_fenced(event, events) for event in refused),
        stale_delivered=sum(
            event["last"] - event["first"] + 1
            for event in delivered
            if is_stale_delivery(event, key_of(event, groups), named, tolerance_ns)
        ),
        started_behind=sum(starts_behind(event, key_of(event, groups), written) for event in started),
        reset_behind=sum(starts_behind(each, key_of(each, groups), written) for each in of(events, "position_reset")),
        of_ended_sessions=of_ended_sessions(events, written),
    )


def of_ended_sessions(events: list[Event], written: list[Event]) -> int | None:
    """None if ZooKeeper expired no session."""
    ends = [
        event
        for event in of(events, "group_member_left")
        if event["reason"] == "session" and event.get("session") and event["role"] in ("broker", "observer")
    ]
    if not ends:
        return None
    late = [
        event
        for event in written
        if any(
            end["session"] == event.get("session") and (event["t_ns"], event["seq"]) > (end["t_ns"], end["seq"])
            for end in ends
        )
    ]
    return len(late)


def _key(event: Event) -> Key:
    return event["group"], event["topic"], event["partition"]


def _before(event: Event, others: Iterable[Event]) -> list[Event]:
    """The other events before this one, in the run's order."""
    ordered = in_time([event, *(each for each in others if each is not event)])
    return ordered[: next(number for number, each in enumerate(ordered) if each is event)]


def is_stale_write(event: Event, named: list[Event], clocks: Clocks = ONE_CLOCK) -> bool:
    """Whether another member is the owner by then. Without an owner, no write is stale."""
    last = clocks.last_before(event, namings(named, _key(event)))
    if not last or not event["by"]:
        return False
    return not any(
        move["kind"] == "authority_cleared" or not move["owner"] or is_the_owner(move["owner"], event["by"])
        for move in last
    )


def is_stale_delivery(event: Event, key: Key, named: list[Event], tolerance_ns: int) -> bool:
    """Whether another member is the owner then, and the delivering member was not within the tolerance.

    An event of the authority at the exact moment of a poll counts as before it.
    """
    member, t_ns = event["member"], event["t_ns"]
    moves = namings(named, key)
    past = [move for move in moves if move["t_ns"] <= t_ns]
    if not member or not past or past[-1]["kind"] == "authority_cleared":
        return False
    at_first = [move for move in moves if move["t_ns"] <= t_ns - tolerance_ns][-1:]
    since = [move for move in moves if t_ns - tolerance_ns < move["t_ns"] <= t_ns + tolerance_ns]
    return not any(
        move["kind"] == "authority_named" and is_the_owner(move["owner"], member) for move in (*at_first, *since)
    )


def moved_back_by(event: Event, written: list[Event], clocks: Clocks = ONE_CLOCK) -> int:
    """The number of records by which a commit moved the committed offset back, or 0."""
    last = clocks.last_before(event, [each for each in written if _key(each) == _key(event)])
    return max(0, min(each["offset"] for each in last) - event["offset"]) if last else 0


def starts_behind(event: Event, key: Key, written: list[Event]) -> bool:
    """Whether delivery starts after the last committed offset, ignoring commits in flight."""
    accepted = [each for each in in_time(written) if _key(each) == key and each["t_ns"] <= event["t_ns"] - IN_FLIGHT_NS]
    return bool(accepted) and event["offset"] < accepted[-1]["offset"]


def is_old(event: Event, events: list[Event], clocks: Clocks = ONE_CLOCK) -> bool:
    """Whether an accepted commit has an older generation than the group's, ignoring commits in flight; in a group that
    gives its members epochs, an older one than its sender's.
    """
    advanced = epochs_given(event, events)
    mine = [each for each in advanced if each["id"] == event["by"]]
    generations = [
        each | {"epoch": each["generation"]} for each in of(events, "group_changed") if each["group"] == event["group"]
    ]
    later = [each | {"t_ns": each["t_ns"] + IN_FLIGHT_NS} for each in (mine if advanced else generations)]
    last = clocks.last_before(event, later)
    return bool(last) and event["epoch"] >= 0 and all(event["epoch"] < each["epoch"] for each in last)


def epochs_given(event: Event, events: list[Event]) -> list[Event]:
    """What the group of a commit has given its members."""
    return [each for each in of(events, "group_member_advanced") if each["group"] == event["group"]]


def is_fenced(event: Event, events: list[Event]) -> bool:
    """Whether a commit was refused because of its sender. A member between two generations is only too early, and so
    is one with a commit of an epoch that it has had since it joined.
    """
    in_group = [each for each in events if each.get("group") == event["group"]]
    states = _before(event, of(in_group, "group_changed"))
    kinds = "group_member_joined", "group_member_left", "group_member_advanced"
    known = _before(event, [each for each in of(in_group, *kinds) if each["id"] == event["by"]])
    is_known = bool(known) and known[-1]["kind"] != "group_member_left"
    is_between = bool(states) and states[-1]["state"] in BETWEEN_GENERATIONS
    if epochs_given(event, events):
        since = [number for number, each in enumerate(known) if each["kind"] != "group_member_advanced"]
        had = [each["epoch"] for each in known[since[-1] + 1 if since else 0 :]]
        is_between = bool(had) and event["epoch"] >= had[0]
    return event["error"] in FENCING_ERRORS and not (is_known and is_between)


def final_offsets(events: list[Event]) -> FinalOffsets | None:
    """None if no committed offset was read at the end."""
    read, written = in_time(of(events, "final_offset")), in_time(of(events, "offset_written"))
    keys = {_key(event) for event in read}
    behind = beyond = 0
    for key in keys:
        final = [event for event in read if _key(event) == key][-1]
        accepted = [each for each in written if _key(each) == key and each["t_ns"] <= final["t_ns"] - IN_FLIGHT_NS]
        behind += bool(accepted) and final["committed"] < accepted[-1]["offset"]
        beyond += final["committed"] > final["end"]
    return FinalOffsets(read=len(keys), behind=behind, beyond=beyond) if keys else None


def takeovers(events: list[Event]) -> list[Takeover]:
    """All takeovers of partitions of the offsets topic. A broker's own id is the first leader that it traces."""
    changed = [event for event in in_time(of(events, "leader_changed")) if event["leader"] >= 0]
    found = []
    for event in changed:
        own = next(each["leader"] for each in changed if each["process"] == event["process"])
        if event["topic"] == OFFSETS_TOPIC and event["leader"] == own:
            found.append(
                Takeover(
                    t_ns=event["t_ns"],
                    process=event["process"],
                    partition=event["partition"],
                    leader_epoch=event["leader_epoch"],
                )
            )
    return found


def acting(events: list[Event]) -> list[Acting]:
    """Stretches in which one broker alone accepted commits and named owners for a group."""
    accepted = [
        event for event in in_time(of(events, "offset_written", "authority_named")) if event["role"] == "broker"
    ]
    stretches: list[list[Event]] = []
    for group in sorted({event["group"] for event in accepted}):
        of_group = [event for event in accepted if event["group"] == group]
        for number, event in enumerate(of_group):
            if number == 0 or of_group[number - 1]["process"] != event["process"]:
                stretches.append([])
            stretches[-1].append(event)
    return [
        Acting(
            group=stretch[0]["group"],
            process=stretch[0]["process"],
            from_ns=stretch[0]["t_ns"],
            until_ns=stretch[-1]["t_ns"],
            commits=len(of(stretch, "offset_written")),
        )
        for stretch in stretches
    ]
