"""What a group of the zookeeper design did, read from traces: its members, its rounds of rebalances, who had what.

A *round* is a set of rebalances of different members that overlap: what one change of the group sets off. It begins
with what told its members (a registration, a notification) and ends when the last of them is done and has looked for
leaders. Rounds are counted from 1 in the order of time. Times are seconds since the first event of all.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel.errors import UserError
from kernel.trace.reader import in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kernel.trace.reader import Trace

Event = dict[str, Any]

#: Steps outside of a rebalance that lead to one, and the one that follows it.
BEFORE = frozenset({"register", "subscribe", "delivery"})
AFTER = "leader-finder"
#: A member whose rebalances are less apart than this has not been at rest between them.
REST_NS = 1_000_000
#: For how long a rebalance is followed after its end: until the fetchers deliver, but not longer than this.
FOLLOWED_NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberStory:
    """One member: `name` as diagrams call it, `id` as ZooKeeper does, and its events in order."""

    name: str
    id: str
    process: str
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRebalance:
    """One member's rebalance with what led to it and what followed it; `attempts` are (outcome, error)."""

    member: MemberStory
    trigger: str
    outcome: str  #: ok, failed, or '' when the trace ends before it does
    attempts: tuple[tuple[str, str], ...]
    began_ns: int
    ended_ns: int
    events: tuple[Event, ...]

    def operations(self) -> tuple[int, int]:
        """ZooKeeper (reads, writes), refused ones among them."""
        reads = sum(e["kind"] == "zk_op" and is_read(e["op"]) for e in self.events)
        return reads, sum(e["kind"] == "zk_op" for e in self.events) - reads


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Rebalances that overlap, by the time of their beginning."""

    number: int
    rebalances: tuple[MemberRebalance, ...]

    @property
    def began_ns(self) -> int:
        return min(int(each.events[0]["ns"]) for each in self.rebalances)

    @property
    def ended_ns(self) -> int:
        return max(int(each.events[-1]["ns"]) for each in self.rebalances)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One run of one group. `events` are everybody's, runner and observer included."""

    group: str
    members: tuple[MemberStory, ...]
    rounds: tuple[Round, ...]
    events: tuple[Event, ...]

    @property
    def zero_ns(self) -> int:
        return int(self.events[0]["ns"])

    def seconds(self, ns: int) -> float:
        return (ns - self.zero_ns) / 1e9

    def member_named(self, name: str) -> MemberStory:
        """By name or id. Raises `UserError` that lists them."""
        for member in self.members:
            if name in (member.name, member.id, member.process):
                return member
        raise UserError(f"no member {name!r} in these traces, only {', '.join(m.name for m in self.members)}")

    def round_numbered(self, number: int) -> Round:
        if not 1 <= number <= len(self.rounds):
            raise UserError(f"no rebalance {number} in these traces: they have 1 to {len(self.rounds)}")
        return self.rounds[number - 1]

    def change_ns(self) -> int | None:
        """When the group was first changed or hurt, as the runner says; None without a runner's trace."""
        return next((e["ns"] for e in self.events if e["kind"] in ("change_started", "fault_started")), None)

    def chosen_round(self) -> Round:
        """The first one after the first change; without a change the last one."""
        change = self.change_ns()
        after = [
            each for each in self.rounds if change is not None and any(r.began_ns > change for r in each.rebalances)
        ]
        return after[0] if after else self.rounds[-1]


def is_read(operation: str) -> bool:
    return operation in ("exists", "getData", "getChildren", "sync")


def tell(traces: Sequence[Trace]) -> Story:
    """The story of these traces. Raises `UserError` when they are of several runs, or without any rebalance."""
    headers = [trace.header for trace in traces if trace.header is not None]
    if not headers:
        raise UserError("none of these files is a trace: give the trace/*.jsonl of a run, or its folder")
    if len({(header["run"], header["boot_id"]) for header in headers}) > 1:
        runs = sorted({str(header["run"]) for header in headers})
        raise UserError(f"these traces are of several runs ({', '.join(runs)}): give those of one")
    designs = sorted({str(header["design"]) for header in headers} - {"", "zookeeper"})
    if designs:
        raise UserError(f"these traces are of the design {', '.join(designs)}: diagrams are made of zookeeper's")
    events = tuple(in_order(traces))
    members = _members(events)
    rounds = _rounds([rebalance for member in members for rebalance in _rebalances(member)])
    if not rounds:
        raise UserError("nobody rebalances in these traces: give those of the members (m1.jsonl, ...) as well")
    group = next((str(e["group"]) for e in events if e["kind"] == "member_started"), "")
    return Story(group=group, members=members, rounds=rounds, events=events)


def _members(events: Iterable[Event]) -> tuple[MemberStory, ...]:
    """In the order of their processes' names; requests to brokers that nobody was named for are their process's."""
    ids: defaultdict[str, dict[str, None]] = defaultdict(dict)
    kept = list(events)
    for event in kept:
        if event["member"] and event["kind"] in ("member_started", "rebalance_started", "zk_op"):
            ids[event["process"]][event["member"]] = None
    # Only members of a group rebalance; a runner's own session has no member.
    found = []
    for process in sorted(ids, key=_natural):
        for member in ids[process]:
            own = tuple(
                e
                for e in kept
                if e["process"] == process and (e["member"] == member or (not e["member"] and len(ids[process]) == 1))
            )
            name = process if len(ids[process]) == 1 else member.rpartition("_")[2]
            found.append(MemberStory(name=name, id=member, process=process, events=own))
    return tuple(found)


def _natural(name: str) -> tuple[str, int]:
    """m2 before m10."""
    head = name.rstrip("0123456789")
    return head, int(name[len(head) :] or 0)


def _rebalances(member: MemberStory) -> list[MemberRebalance]:
    """Each `rebalance_started` to its end; what led to it is taken from before, what followed it from after."""
    starts = [i for i, event in enumerate(member.events) if event["kind"] == "rebalance_started"]
    found: list[MemberRebalance] = []
    first_free = 0
    for number, start in enumerate(starts):
        limit = starts[number + 1] if number + 1 < len(starts) else len(member.events)
        end = next((i for i in range(start, limit) if member.events[i]["kind"] == "rebalance_ended"), limit - 1)
        led = [e for e in member.events[first_free:start] if _leads(e)]
        inside = list(member.events[start : end + 1])
        followed, after = _following(member.events[end + 1 : limit])
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


def _leads(event: Event) -> bool:
    if event["kind"] == "zk_op":
        return event["step"] in BEFORE
    return event["kind"] in ("zk_notified", "rebalance_triggered", "session_changed", "member_started")


def _following(events: Sequence[Event]) -> tuple[list[Event], int]:
    """The first look for leaders and what began with it; how many events were looked at."""
    followed: list[Event] = []
    for place, event in enumerate(events):
        late = event["ns"] > events[0]["ns"] + FOLLOWED_NS
        if late or event["kind"] == "zk_notified" or (event["kind"] == "zk_op" and event["step"] in BEFORE):
            return followed, place
        if event["kind"] == "records_delivered":
            return [*followed, event], place + 1
        wanted = event["kind"] in ("position_reset", "position_started", "request_answered")
        if wanted or (event["kind"] == "zk_op" and event["step"] == AFTER):
            followed.append(event)
    return followed, len(events)


def _rounds(rebalances: Sequence[MemberRebalance]) -> tuple[Round, ...]:
    """Those that overlap together; two of the same member belong together only if others overlap both."""
    rounds: list[list[MemberRebalance]] = []
    reach = -1
    for rebalance in sorted(rebalances, key=lambda each: (each.began_ns, each.member.name)):
        if rounds and rebalance.began_ns <= reach + REST_NS:
            rounds[-1].append(rebalance)
        else:
            rounds.append([rebalance])
        reach = max(reach, rebalance.ended_ns)
    return tuple(Round(number=number, rebalances=tuple(each)) for number, each in enumerate(rounds, start=1))


def listing(story: Story) -> list[Mapping[str, Any]]:
    """One row a round, for a table: number, seconds, members with trigger and outcome, operations."""
    rows: list[Mapping[str, Any]] = []
    for each in story.rounds:
        reads, writes = (sum(r.operations()[which] for r in each.rebalances) for which in (0, 1))
        rows.append(
            {
                "number": each.number,
                "from_s": story.seconds(each.began_ns),
                "to_s": story.seconds(each.ended_ns),
                "members": [
                    f"{r.member.name}: {r.trigger}, {r.outcome or 'cut off'}"
                    + (f" after {len(r.attempts)} attempts" if len(r.attempts) > 1 else "")
                    for r in each.rebalances
                ],
                "reads": reads,
                "writes": writes,
            }
        )
    return rows
