"""What a group did, read from traces: its members and their rounds of rebalances.

A *round* is a set of overlapping rebalances of different members: all that one change of the group causes, in several
generations if the design needs them. Where members reconcile one by one, it is all that one epoch of the group causes.
It begins with what notified the members (a registration, a watch event, a response of the coordinator) and ends when
the last member is done and its fetchers have started. Rounds count from 1 in the order of time. Times are seconds since
the first event.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from comparison.ownership.cover import TOLERANCE_ACROSS_BOOTS_NS, TOLERANCE_NS
from comparison.report.history.brokers import broker_ids, broker_of
from comparison.report.history.rebalance_context import COORDINATED, RECONCILED, WATCHED
from comparison.screen.natural_order import natural
from kernel.designs import RECONCILING, ZOOKEEPER
from kernel.errors import UserError
from kernel.suggestions import unknown
from kernel.trace.run_clock import events_in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.report.history.rebalance_context import RebalanceContext
    from kernel.trace.reader import Trace

Event = dict[str, Any]

#: Members' requests to a coordinator in a rebalance.
_REBALANCE_REQUESTS = frozenset(
    {"JoinGroup", "SyncGroup", "OffsetFetch", "OffsetCommit", "AwaitCommand", "CommitOwned", "ConsumerGroupHeartbeat"}
)
#: A member with less time than this between two rebalances was not at rest.
REST_NS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberHistory:
    """One member: its `name` in diagrams, its `ids` in the group one after the other, and its events in order.

    In the zookeeper design a member is a consumer with all its threads; a coordinator treats each stream as a member.
    """

    name: str
    ids: tuple[str, ...]
    process: str
    events: tuple[Event, ...]

    @property
    def place(self) -> str:
        """The process without its restart number: `m1` for `m1.2`."""
        return re.sub(r"\.\d+$", "", self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRebalance:
    """One member's rebalance with what led to it and what followed it; `attempts` are (outcome, error)."""

    member: MemberHistory
    trigger: str
    outcome: str  #: ok, failed, or '' if the trace ends first
    attempts: tuple[tuple[str, str], ...]
    began_ns: int
    ended_ns: int
    events: tuple[Event, ...]

    def operations(self) -> tuple[int, int]:
        """ZooKeeper (reads, writes), refused ones included."""
        reads = sum(e["kind"] == "zk_op" and is_read(e["op"]) for e in self.events)
        return reads, sum(e["kind"] == "zk_op" for e in self.events) - reads

    def requests(self) -> int:
        """Answered requests to the coordinator, without heartbeats."""
        return sum(e["kind"] == "request_answered" and e["api"] in _REBALANCE_REQUESTS for e in self.events)

    def generation(self) -> int | None:
        """The generation at its end; None without generations, or if the member was refused."""
        return next((e.get("generation") for e in reversed(self.events) if e["kind"] == "rebalance_ended"), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Overlapping rebalances, in the order of their starts."""

    number: int
    rebalances: tuple[MemberRebalance, ...]

    @property
    def began_ns(self) -> int:
        return min(int(each.events[0]["ns"]) for each in self.rebalances)

    @property
    def ended_ns(self) -> int:
        return max(int(each.events[-1]["ns"]) for each in self.rebalances)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHistory:
    """One run of one group. `events` are those of all processes, runner and observer included."""

    group: str
    design: str
    members: tuple[MemberHistory, ...]
    rounds: tuple[Round, ...]
    events: tuple[Event, ...]
    brokers: Mapping[str, int]  #: their ids, by process
    tolerance_ns: int = TOLERANCE_NS  #: what the times of its events are known to

    @property
    def zero_ns(self) -> int:
        return int(self.events[0]["ns"])

    def seconds(self, ns: int) -> float:
        return (ns - self.zero_ns) / 1e9

    @property
    def coordinated(self) -> bool:
        """Whether a broker coordinates the group; otherwise its members watch ZooKeeper."""
        return self.design != ZOOKEEPER

    def names(self) -> dict[str, str]:
        """The names in diagrams by member id."""
        return {each: member.name for member in self.members for each in member.ids}

    def member_named(self, name: str) -> MemberHistory:
        """A member by name or id. Raises `UserError`, which lists the members."""
        for member in self.members:
            if name in (member.name, member.process, *member.ids):
                return member
        raise UserError(unknown("member", name, [each.name for each in self.members]))

    def round_numbered(self, number: int) -> Round:
        if not 1 <= number <= len(self.rounds):
            raise UserError(f"no rebalance {number} in these traces. Give one from 1 to {len(self.rounds)}")
        return self.rounds[number - 1]

    def broker_of(self, event: Event) -> int | None:
        """The id of the broker that traced an event; None if another process did."""
        return broker_of(str(event["process"]), self.brokers)

    def change_ns(self) -> int | None:
        """When the runner made its first change or fault; None without a runner's trace."""
        return next((e["ns"] for e in self.events if e["kind"] in ("change_started", "fault_started")), None)

    def chosen_round(self) -> Round:
        """The first round after the first change; without a change, the last round."""
        change = self.change_ns()
        after = [
            each for each in self.rounds if change is not None and any(r.began_ns > change for r in each.rebalances)
        ]
        return after[0] if after else self.rounds[-1]


def is_read(operation: str) -> bool:
    return operation in ("exists", "getData", "getChildren", "sync")


def read_history(traces: Sequence[Trace]) -> GroupHistory:
    """The history of these traces. Raises `UserError` if they are of several runs, or have no rebalance."""
    headers = [trace.header for trace in traces if trace.header is not None]
    if not headers:
        raise UserError("none of these files is a trace. Give the trace/*.jsonl of a run, or its folder")
    if len(runs := sorted({str(header["run"]) for header in headers})) > 1:
        raise UserError(f"these traces are of several runs ({', '.join(runs)}). Give those of one")
    designs = sorted({str(header["design"]) for header in headers} - {""}) or [ZOOKEEPER]
    if len(designs) > 1:
        raise UserError(f"these traces are of several designs ({', '.join(designs)}). Give those of one")
    (design,) = designs
    history = history_of(tuple(events_in_order(traces)), design)
    if len({header["boot_id"] for header in headers}) > 1:
        history = replace(history, tolerance_ns=TOLERANCE_ACROSS_BOOTS_NS)
    if not history.rounds:
        raise UserError("nobody rebalances in these traces. Give those of the members (m1.jsonl, ...) as well")
    return history


def history_of(events: tuple[Event, ...], design: str) -> GroupHistory:
    """The history of a run's events, which are in the order of time."""
    members = _members(events) if design == ZOOKEEPER else _streams(events)
    context = WATCHED if design == ZOOKEEPER else RECONCILED if design in RECONCILING else COORDINATED
    rebalances = [rebalance for member in members for rebalance in _rebalances(member, context)]
    rounds = _of_epochs(rebalances, events) if design in RECONCILING else _rounds(rebalances)
    group = next((str(e["group"]) for e in events if e["kind"] == "member_started"), "")
    return GroupHistory(
        group=group, design=design, members=members, rounds=rounds, events=events, brokers=broker_ids(events)
    )


def _members(events: Iterable[Event]) -> tuple[MemberHistory, ...]:
    """The members by process name; a broker request without a member counts for its process's only one."""
    ids: defaultdict[str, dict[str, None]] = defaultdict(dict)
    kept = list(events)
    for event in kept:
        if event["member"] and event["kind"] in ("member_started", "rebalance_started", "zk_op"):
            ids[event["process"]][event["member"]] = None
    # Only members of a group rebalance; a runner's own session has no member.
    found = []
    for process in sorted(ids, key=natural):
        for number, member in enumerate(ids[process]):
            own = tuple(
                e
                for e in kept
                if e["process"] == process and (e["member"] == member or (not e["member"] and len(ids[process]) == 1))
            )
            name = process if len(ids[process]) == 1 else f"{process}-{number}"
            found.append(MemberHistory(name=name, ids=(member,), process=process, events=own))
    return tuple(found)


def _streams(events: Iterable[Event]) -> tuple[MemberHistory, ...]:
    """Each stream of a process is a member; events of the whole process count for its only stream."""
    kept = list(events)
    ids: defaultdict[str, dict[int, dict[str, None]]] = defaultdict(dict)
    for event in kept:
        if event["kind"] in ("rebalance_started", "member_started"):
            known = ids[event["process"]].setdefault(event["stream"] or 0, {})
            if event["member"]:
                known[event["member"]] = None
    found = []
    for process in sorted(ids, key=natural):
        for stream, known in sorted(ids[process].items()):
            alone = len(ids[process]) == 1
            own = tuple(
                e
                for e in kept
                if e["process"] == process
                and (e["stream"] == stream or (e["stream"] is None and (alone or e["member"] in known)))
            )
            name = process if alone else f"{process}-{stream}"
            found.append(MemberHistory(name=name, ids=tuple(known), process=process, events=own))
    return tuple(found)


def _rebalances(member: MemberHistory, context: RebalanceContext) -> list[MemberRebalance]:
    """Each `rebalance_started` to its end; with the events before and after that belong to it."""
    starts = [i for i, event in enumerate(member.events) if event["kind"] == "rebalance_started"]
    found: list[MemberRebalance] = []
    first_free = 0
    for number, start in enumerate(starts):
        limit = starts[number + 1] if number + 1 < len(starts) else len(member.events)
        end = next((i for i in range(start, limit) if member.events[i]["kind"] == "rebalance_ended"), limit - 1)
        led = context.leading(member.events[first_free:start])
        inside = list(member.events[start : end + 1])
        followed, after = context.following(member.events[end + 1 : limit], inside)
        first_free = end + 1 + after
        ended = member.events[end]
        found.append(
            MemberRebalance(
                member=member,
                trigger=str(member.events[start]["trigger"]),
                outcome=str(ended["outcome"]) if ended["kind"] == "rebalance_ended" else "",
                attempts=tuple(
                    (str(e["outcome"]), str(e.get("error") or "")) for e in inside if e["kind"] == "attempt_ended"
                ),
                began_ns=member.events[start]["ns"],
                ended_ns=ended["ns"],
                events=(*led, *inside, *followed),
            )
        )
    return found


def _of_epochs(rebalances: Sequence[MemberRebalance], events: Iterable[Event]) -> tuple[Round, ...]:
    """Rebalances by the group's epoch at their end; by overlap where no coordinator was traced."""
    begun = [e["ns"] for e in events if e["kind"] == "group_changed" and e["state"] == "Assigning"]
    if not begun:
        return _rounds(rebalances)
    by_epoch: defaultdict[int, list[MemberRebalance]] = defaultdict(list)
    for each in sorted(rebalances, key=lambda each: (each.began_ns, each.member.name)):
        by_epoch[bisect_right(begun, each.ended_ns)].append(each)
    found = [tuple(by_epoch[epoch]) for epoch in sorted(by_epoch)]
    return tuple(Round(number=number, rebalances=each) for number, each in enumerate(found, start=1))


def _rounds(rebalances: Sequence[MemberRebalance]) -> tuple[Round, ...]:
    """Group overlapping rebalances, each from what led to it: a joiner's may start after all others have ended."""
    rounds: list[list[MemberRebalance]] = []
    reach = -1
    for rebalance in sorted(rebalances, key=lambda each: (each.began_ns, each.member.name)):
        if rounds and rebalance.events[0]["ns"] <= reach + REST_NS:
            rounds[-1].append(rebalance)
        else:
            rounds.append([rebalance])
        reach = max(reach, rebalance.ended_ns)
    return tuple(Round(number=number, rebalances=tuple(each)) for number, each in enumerate(rounds, start=1))


def listing(history: GroupHistory) -> list[Mapping[str, Any]]:
    """One table row per round: number, seconds, members with trigger and outcome, operations."""
    rows: list[Mapping[str, Any]] = []
    for each in history.rounds:
        reads, writes = (sum(r.operations()[which] for r in each.rebalances) for which in (0, 1))
        rows.append(
            {
                "number": each.number,
                "from_s": history.seconds(each.began_ns),
                "to_s": history.seconds(each.ended_ns),
                "members": [
                    f"{r.member.name}: {r.trigger}, {r.outcome or 'cut off'}"
                    + (f" after {len(r.attempts)} attempts" if len(r.attempts) > 1 else "")
                    for r in sorted(each.rebalances, key=lambda r: (natural(r.member.name), r.began_ns))
                ],
                "reads": reads,
                "writes": writes,
                "requests": sum(r.requests() for r in each.rebalances),
                "generations": sorted({r.generation() or 0 for r in each.rebalances} - {0}),
            }
        )
    return rows
