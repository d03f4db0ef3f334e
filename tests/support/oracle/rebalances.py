"""Rebalances, the slow way: phases of members, rounds of the group, and deliveries during them."""

from __future__ import annotations

from typing import Any

from comparison.ownership.fold import Interval
from comparison.ownership.groups import Memberships
from comparison.pipeline.measured import AttemptEnded, KeptThrough, MemberPhase, Round
from tests.support.oracle.intervals import Event, in_process, in_time, key_of, of, owner_of


def phases_of(events: list[Event]) -> list[MemberPhase]:
    """A phase lasts until the member's next rebalance event; a whole rebalance until its end."""
    kinds = ("phase_entered", "attempt_ended", "rebalance_ended", "rebalance_started")
    relevant = of(events, *kinds)
    groups = Memberships.of_events(events)
    found = []
    for event in relevant:
        member = _next_member(event, relevant)
        later = [
            each
            for each in in_process(relevant)
            if each["process"] == event["process"]
            and each["seq"] > event["seq"]
            and _next_member(each, relevant) == member
        ]
        if event["kind"] == "rebalance_started":
            phase, ends = "rebalance", [each["t_ns"] for each in of(later, "rebalance_ended")]
        elif event["kind"] == "phase_entered":
            phase, ends = event["phase"], [each["t_ns"] for each in later]
        else:
            continue
        if ends:
            found.append(
                MemberPhase(
                    process=event["process"],
                    member=member,
                    phase=phase,
                    from_ns=event["t_ns"],
                    until_ns=ends[0],
                    group=groups.group(event["process"], member),
                )
            )
    return found


def _next_member(event: Event, relevant: list[Event]) -> Any:
    """The event's member. A stream's events before it received an id count for its next id."""
    from_here = [
        each["member"]
        for each in in_process(relevant)
        if (each["process"], each["stream"]) == (event["process"], event["stream"])
        and each["seq"] >= event["seq"]
        and each["member"] is not None
    ]
    return from_here[0] if from_here else None


def attempts_of(events: list[Event]) -> list[AttemptEnded]:
    """How the attempts of members ended that a change is about."""
    targets = {(event.get("detail") or {}).get("target") for event in of(events, "change_started")}
    return [
        AttemptEnded(process=event["process"], t_ns=event["t_ns"], outcome=event["outcome"])
        for event in of(events, "attempt_ended")
        if event["process"] in targets
    ]


def rounds_of(events: list[Event], phases: list[MemberPhase]) -> list[Round]:
    """A coordinator's generations or epochs, or, without one, stretches in which members' rebalances overlap."""
    changed = in_time(event for event in of(events, "group_changed") if event["role"] == "broker")
    found = []
    for group in {event["group"] for event in changed}:
        found += _of_group([event for event in changed if event["group"] == group])
    for group in {phase.group for phase in phases} if not changed else ():
        found += _stretches(group, [phase for phase in phases if phase.group == group])
    return sorted(found, key=lambda each: (each.from_ns, each.group))


def _of_group(changed: list[Event]) -> list[Round]:
    """Those of generations up to the first state of another type, and so on; of one type if it was never classic."""
    states = [event["state"] for event in changed]
    if not {"PreparingRebalance", "CompletingRebalance"}.intersection(states):
        return _epochs(changed) if {"Assigning", "Reconciling"}.intersection(states) else []
    parts: list[tuple[bool, list[Event]]] = [(False, [])]
    for event in changed:
        types = {"Assigning": True, "Reconciling": True, "PreparingRebalance": False, "CompletingRebalance": False}
        type_ = types.get(event["state"], parts[-1][0])
        if type_ != parts[-1][0]:
            parts.append((type_, []))
        parts[-1][1].append(event)
    return [each for by_epochs, part in parts for each in (_epochs(part) if by_epochs else _generations(part))]


def _epochs(changed: list[Event]) -> list[Round]:
    """Each epoch of a group with members, from the first event with it until it is stable, or no longer the epoch."""
    with_members = ("Assigning", "Reconciling", "Stable")
    found = []
    for number, event in enumerate(changed):
        before = [each["generation"] for each in changed[:number] if each["state"] in with_members]
        if event["generation"] in before[-1:] or event["state"] not in with_members:
            continue
        until_ns = None
        for later in changed[number:]:
            if later["state"] not in with_members:
                break
            if later["state"] == "Stable" or later["generation"] != event["generation"]:
                until_ns = later["t_ns"]
                break
        found.append(Round(event["t_ns"], until_ns, None, event["generation"], event["members"], event["group"]))
    return found


def _stretches(group: str, phases: list[MemberPhase]) -> list[Round]:
    whole = sorted((each.from_ns, each.until_ns) for each in phases if each.phase == "rebalance")
    found: list[tuple[int, int]] = []
    for begin, end in whole:
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return [Round(begin, end, group=group) for begin, end in found]


def _generations(changed: list[Event]) -> list[Round]:
    """A round begins when a group without a round prepares or completes, and is gathered when it completes. It ends
    when the group then prepares again, or changes to another state. Only gathered rounds are returned.
    """
    found: list[Round] = []
    begun: int | None = None
    gathered: Event | None = None
    for event in changed:
        state = event["state"]
        if state == "PreparingRebalance":
            if gathered is not None:
                found.append(_round(begun, gathered, event["t_ns"]))
                begun, gathered = event["t_ns"], None
            elif begun is None:
                begun = event["t_ns"]
        elif state == "CompletingRebalance":
            begun = event["t_ns"] if begun is None else begun
            gathered = event
        else:
            if gathered is not None:
                found.append(_round(begun, gathered, event["t_ns"] if state == "Stable" else None))
            begun, gathered = None, None
    if gathered is not None:
        found.append(_round(begun, gathered, None))
    return found


def _round(begun: int | None, gathered: Event, until_ns: int | None) -> Round:
    return Round(begun or 0, until_ns, gathered["t_ns"], gathered["generation"], gathered["members"], gathered["group"])


def kept_through(events: list[Event], believed: list[Interval], rounds: list[Round]) -> dict[int, KeptThrough]:
    """Partitions of a round's group that one stream kept throughout the round, and those that it delivered from."""
    groups, found = Memberships.of_events(events), {}
    for number, each in enumerate(rounds):
        if each.until_ns is None:
            continue
        through = [
            interval
            for interval in believed
            if interval.key[0] == each.group
            and interval.from_ns <= each.from_ns
            and (interval.until_ns is None or interval.until_ns > each.until_ns)
        ]
        meanwhile = {
            (owner_of(event), key_of(event, groups))
            for event in of(events, "records_delivered")
            if each.from_ns <= event["t_ns"] < each.until_ns
        }
        if through:
            delivered = sum((interval.owner, interval.key) in meanwhile for interval in through)
            found[number] = KeptThrough(kept=len(through), delivered=delivered)
    return found
