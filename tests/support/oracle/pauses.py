"""What rebalances did to pauses, the slow way: one pause at a time, each looked up in all events."""

from __future__ import annotations

from comparison.ownership.groups import Memberships
from comparison.pipeline.measured import Round, RunSpan
from comparison.pipeline.measured_members import Silence
from comparison.pipeline.measured_pauses import Pauses
from tests.support.oracle.intervals import Event, in_process, in_time, of


def pauses_of(events: list[Event], rounds: list[Round], span: RunSpan) -> Pauses | None:
    groups = Memberships.of_events(events)
    told = in_process(of(events, "partitions_paused", "partitions_resumed"))
    places = [(_place(event, each, groups), event) for event in told for each in event["partitions"]]
    found = Pauses()
    for number, (place, event) in enumerate(places):
        before = [each["kind"] for other, each in places[:number] if other == place]
        if event["kind"] == "partitions_resumed" or "partitions_paused" in before[-1:]:
            continue
        ends = [each for other, each in places[number:] if other == place and each["kind"] == "partitions_resumed"]
        until_ns = ends[0]["t_ns"] if ends else span.end_ns
        whole = [each for each in rounds if each.group == place[2] and each.until_ns is not None]
        if any(each.from_ns >= event["t_ns"] and (each.until_ns or 0) <= until_ns for each in whole):
            found += Pauses(outlasting=1)
        if ends and ends[0]["cause"] == "rebalance":
            found += _given_to(place, ends[0], events, groups)
    return found if places else None


def _given_to(place: tuple[object, ...], end: Event, events: list[Event], groups: Memberships) -> Pauses:
    later = [
        (event["t_ns"], event["seq"], _place(event, each, groups))
        for event in of(events, "partitions_assigned")
        for each in event["partitions"]
        if (event["t_ns"], event["seq"]) >= (end["t_ns"], end["seq"])
    ]
    mine = min((each for each in later if each[2][2:] == place[2:]), default=None, key=lambda each: each[:2])
    return Pauses(dropped=1) if mine is not None and mine[2] == place else Pauses(moved=1)


def _place(event: Event, partition: Event, groups: Memberships) -> tuple[object, ...]:
    group = groups.group(event["process"], event["member"])
    return event["process"], event["stream"], group, partition["topic"], partition["partition"]


# How long members can have been silent when their sessions ended, from one end of a session at a time.

_HEARTBEATS = ("Heartbeat", "ConsumerGroupHeartbeat")
_ACCEPTED = ("", "REBALANCE_IN_PROGRESS")


def silences_of(events: list[Event], tolerance_ns: int) -> list[Silence]:
    """Behind the last heartbeat but one that a coordinator accepted; in ZooKeeper behind the session's last commit."""
    ended = [
        event
        for event in in_time(of(events, "group_member_left"))
        if event["reason"] == "session" and event["role"] in ("broker", "observer")
    ]
    found = set()
    for member, end_ns in {(event["id"], event["t_ns"]) for event in ended if event["role"] == "broker"}:
        heard = sorted(
            event["t_ns"]
            for event in of(events, "request_answered")
            if event["member"] == member
            and event["api"] in _HEARTBEATS
            and event["error"] in _ACCEPTED
            and event["t_ns"] < end_ns
        )
        if len(heard) > 1:
            found.add((end_ns, heard[-2]))
    for session, end_ns in {event["session"]: event["t_ns"] for event in ended if event.get("session")}.items():
        stored = [event["t_ns"] for event in of(events, "offset_written") if event.get("session") == session]
        if before := [t_ns for t_ns in stored if t_ns < end_ns]:
            found.add((end_ns, max(before)))
    return [Silence(t_ns=end_ns, longest_ns=end_ns - heard_ns + tolerance_ns) for end_ns, heard_ns in found]
