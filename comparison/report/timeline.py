"""A timeline: each member's phases, and each partition's owner by the authority and by the members' own belief.

Two views are traced separately: the authority's (the owner nodes in ZooKeeper's transaction log, or the coordinator's
assignment of a generation), and the members' belief. If a member delivers a partition that the authority does not
assign to it, the two bars differ: a zombie, or a partition that a cooperative member keeps while its group is between
two generations.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.report.group_history import GroupHistory, MemberHistory, Round

#: On both sides of a round, as a share of its length.
MARGIN = 0.05
_TICKS_MAX = 10


@dataclass(frozen=True, slots=True)
class Span:
    """A time span with the name of a phase or a member."""

    what: str
    began_ns: int
    ended_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What is drawn between two moments. `marks` are the runner's changes and faults."""

    began_ns: int
    ended_ns: int
    members: tuple[str, ...]
    places: Mapping[str, str]  #: by member; a restarted member keeps its first incarnation's
    authority: str  #: in words: the authority
    phases: Mapping[str, tuple[Span, ...]]  #: by member
    partitions: tuple[str, ...]  #: `topic number`
    named: Mapping[str, tuple[Span, ...]]  #: by partition: the owner by the authority
    delivered: Mapping[str, tuple[Span, ...]]  #: by partition: every member that delivers it
    marks: tuple[Span, ...]


def around(chosen: Round) -> tuple[int, int]:
    """A round with some margin."""
    margin = max(1_000_000, int((chosen.ended_ns - chosen.began_ns) * MARGIN))
    return chosen.began_ns - margin, chosen.ended_ns + margin


def timeline(history: GroupHistory, began_ns: int, ended_ns: int, only: Iterable[str] = ()) -> Timeline:
    """Everything between two moments; with `only`, only these members' phases.

    Raises `UserError` if there is nothing.
    """
    assert began_ns < ended_ns, "a window ends after it begins"
    there = [member for member in history.members if _lives(member, began_ns, ended_ns)]
    chosen = [member for member in there if not only or member.name in set(only)]
    window = (began_ns, ended_ns)
    phases = {member.name: _cut(_phases(member), window) for member in chosen}
    named, delivered = _by_partition(_named(history), window), _by_partition(_delivered(history), window)
    if not any(phases.values()) and not named and not delivered:
        raise UserError(
            f"nothing happens between {history.seconds(began_ns):.3f} and {history.seconds(ended_ns):.3f} s: "
            f"the traces last from 0 to {history.seconds(history.events[-1]['ns']):.3f} s"
        )
    return Timeline(
        began_ns=began_ns,
        ended_ns=ended_ns,
        members=tuple(member.name for member in there),
        places={member.name: member.place for member in there},
        authority="the coordinator" if history.coordinated else "owner node",
        phases=phases,
        partitions=tuple(sorted({*named, *delivered}, key=_by_number)),
        named=named,
        delivered=delivered,
        marks=_cut(_marks(history), window),
    )


def _lives(member: MemberHistory, began_ns: int, ended_ns: int) -> bool:
    """The members without restarts, and those with an incarnation in the window."""
    return member.name == member.place or (
        bool(member.events) and member.events[0]["ns"] < ended_ns and member.events[-1]["ns"] > began_ns
    )


def _by_number(partition: str) -> tuple[str, int]:
    topic, _, number = partition.rpartition(" ")
    return topic, int(number)


def _cut(spans: Iterable[Span], window: tuple[int, int]) -> tuple[Span, ...]:
    return tuple(
        Span(span.what, max(span.began_ns, window[0]), min(span.ended_ns, window[1]))
        for span in spans
        if span.began_ns < window[1] and span.ended_ns > window[0]
    )


def _by_partition(spans: Iterable[tuple[str, Span]], window: tuple[int, int]) -> dict[str, tuple[Span, ...]]:
    found: defaultdict[str, list[Span]] = defaultdict(list)
    for partition, span in spans:
        found[partition].append(span)
    cut = {partition: _cut(each, window) for partition, each in found.items()}
    return {partition: each for partition, each in cut.items() if each}


def _phases(member: MemberHistory) -> list[Span]:
    """A phase lasts until the next one or until the attempt ends."""
    found: list[Span] = []
    phase: tuple[str, int] | None = None
    for event in member.events:
        if event["kind"] in ("phase_entered", "attempt_ended", "member_closed"):
            if phase is not None:
                found.append(Span(phase[0], phase[1], event["ns"]))
            phase = (str(event["phase"]), event["ns"]) if event["kind"] == "phase_entered" else None
    if phase is not None:
        found.append(Span(phase[0], phase[1], member.events[-1]["ns"]))
    return found


def _named(history: GroupHistory) -> list[tuple[str, Span]]:
    """From `authority_named` to `authority_cleared`."""
    found: list[tuple[str, Span]] = []
    standing: dict[str, tuple[str, int]] = {}
    last = history.events[-1]["ns"]
    names = history.names()
    for event in history.events:
        if event["kind"] not in ("authority_named", "authority_cleared"):
            continue
        partition = _partition(event)
        if partition in standing:
            owner, since = standing.pop(partition)
            found.append((partition, Span(owner, since, event["ns"])))
        if event["kind"] == "authority_named":
            standing[partition] = (_owner(names, str(event["owner"])), event["ns"])
    found += [(partition, Span(owner, since, last)) for partition, (owner, since) in standing.items()]
    return found


def _owner(names: Mapping[str, str], owner: str) -> str:
    """The member of a coordinator's member id, or of a thread's id."""
    consumer, _, _ = owner.rpartition("-")
    return names.get(owner) or names.get(consumer) or consumer or owner


def _delivered(history: GroupHistory) -> list[tuple[str, Span]]:
    """What each stream believes it owns, until it stops or its process ends."""
    ends = {e["target"]: e["ns"] for e in history.events if e["kind"] == "process_ended" and e["how"] != "itself"}
    found: list[tuple[str, Span]] = []
    for member in history.members:
        standing: dict[tuple[int | None, str], int] = {}
        for event in member.events:
            if event["kind"] == "partitions_assigned":
                for each in event["partitions"]:
                    standing.setdefault((event["stream"], _partition(each)), event["ns"])
            elif event["kind"] in ("partitions_revoked", "partitions_lost"):
                for each in event["partitions"]:
                    began = standing.pop((event["stream"], _partition(each)), None)
                    if began is not None:
                        found.append((_partition(each), Span(member.name, began, event["ns"])))
        last = max(member.events[-1]["ns"], ends.get(member.process, 0))
        found += [(partition, Span(member.name, began, last)) for (_, partition), began in standing.items()]
    return found


def _partition(event: Mapping[str, Any]) -> str:
    return f"{event['topic']} {event['partition']}"


def _marks(history: GroupHistory) -> list[Span]:
    found: list[Span] = []
    faults: dict[tuple[str, str], int] = {}
    for event in history.events:
        if event["kind"] == "change_started":
            found.append(Span(str(event["change"]), event["ns"], event["ns"] + 1))
        elif event["kind"] == "fault_started":
            faults[event["fault"], event["target"]] = event["ns"]
        elif event["kind"] == "fault_ended":
            began = faults.pop((event["fault"], event["target"]), event["ns"])
            found.append(Span(f"{event['fault']} {event['target']}".strip(), began, event["ns"] + 1))
    found += [Span(f"{fault} {target}".strip(), ns, ns + 1) for (fault, target), ns in faults.items()]
    return sorted(found, key=lambda span: span.began_ns)


def ticks(length_ns: int) -> Sequence[int]:
    """Round distances from the start in ns, at most ten, in steps of 1, 2 or 5 times a power of ten."""
    step = 1_000
    while True:
        for factor in (1, 2, 5):
            if length_ns <= step * factor * _TICKS_MAX:
                return range(0, length_ns + 1, step * factor)
        step *= 10
