"""How long members can have been silent when their sessions ended, from one end of a session at a time."""

from __future__ import annotations

from comparison.pipeline.measured_members import Silence
from tests.support.oracle.intervals import Event, in_time, of

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
