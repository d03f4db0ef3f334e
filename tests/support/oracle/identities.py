"""Which process used which member id, and when, the slow way."""

from __future__ import annotations

import itertools

from comparison.ownership.groups import Memberships
from comparison.pipeline.measured import RunSpan
from comparison.results.keys import BELIEVED, DELIVERING
from tests.support.oracle.cover import pieces_of
from tests.support.oracle.intervals import CLAIM_KINDS, Event, in_time, intervals_of, of


def mistakable(events: list[Event], span: RunSpan, tolerance_ns: int) -> list[str]:
    """Ids that two processes used at once, and processes in one of several groups whose events do not name it."""
    groups = Memberships.of_events(events)
    used = sorted(_uses(events, span))
    found = []
    for (group, member), several in itertools.groupby(used, key=lambda use: use[:2]):
        if names := _at_once([(low, high, process) for _, _, process, low, high in several], tolerance_ns):
            found.append(f"{_listed(names)} used the member id {member} of the group {group} at the same time")
    doing = [event for event in of(events, *CLAIM_KINDS) if event["partitions"]]
    doing += of(events, "records_delivered", "position_started")
    if len(groups.names) > 1:
        found += [
            f"{process} does not say in which of the groups {_listed(groups.names)} it is"
            for process in sorted(
                {event["process"] for event in doing if groups.group(event["process"], event["member"]) == ""}
            )
        ]
    return found


def members_of(events: list[Event]) -> dict[str, list[str]]:
    """The ids that each process started, in order."""
    found: dict[str, list[str]] = {}
    for event in in_time(of(events, "member_started")):
        ids = found.get(event["process"], [])
        found[event["process"]] = ids if event["member"] in ids else [*ids, event["member"]]
    return found


def _uses(events: list[Event], span: RunSpan) -> list[tuple[str, str, str, int, int]]:
    """(group, member, process, from_ns, until_ns) of every use."""
    found = []
    for event in of(events, "member_started"):
        ends = [
            each["t_ns"]
            for each in of(events, "member_closed")
            if (each["process"], each["member"]) == (event["process"], event["member"]) and each["seq"] > event["seq"]
        ]
        ends += [
            each["t_ns"]
            for each in of(events, "process_ended")
            if each["target"] == event["process"] and each["t_ns"] >= event["t_ns"]
        ]
        until_ns = min([*ends, span.end_ns])
        found.append((event["group"], event["member"], event["process"], event["t_ns"], until_ns))
    for interval in (*intervals_of(events, BELIEVED), *intervals_of(events, DELIVERING)):
        process, member, _ = interval.owner.split("/")
        until_ns = span.end_ns if interval.until_ns is None else min(interval.until_ns, span.end_ns)
        found.append((interval.key[0], member, process, interval.from_ns, until_ns))
    return [use for use in found if use[1]]


def _at_once(held: list[tuple[int, int, str]], tolerance_ns: int) -> list[str]:
    """The holders that held at the same time as another one, in an overlap longer than the tolerance."""
    stretches: list[tuple[int, int, set[str]]] = []
    for piece in pieces_of(held, []):
        names = set(piece.holders)
        if len(names) > 1 and stretches and stretches[-1][1] == piece.low:
            stretches[-1] = (stretches[-1][0], piece.high, stretches[-1][2] | names)
        elif len(names) > 1:
            stretches.append((piece.low, piece.high, names))
    return sorted({name for low, high, names in stretches if high - low > tolerance_ns for name in names})


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
