"""Small runs with all kinds of events, for hypothesis: `traces()` draws steps, and turns them into a trace.

A trace is valid by the schema and possible by its order: `seq` counts in each process's file, a process's times never
go back, a process that has ended emits nothing, and two processes of the authority never emit at the same moment.
Everything else is allowed: partitions are assigned to several members, records are delivered by any member, repeatedly,
with gaps and without serial numbers, owners are named at the moment of a poll, commits are old.

A step is (time since the previous step, action, number, number), so that hypothesis can leave steps out; a number picks
one of the existing things.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.support.oracle.twin import numbered
from tests.support.trace.traces import MS, e

Step = tuple[int, str, int, int]

#: Times between steps, in nanoseconds: ties, and both sides of every limit.
PAUSES_NS = (
    *(0, 0, 0, 1, MS - 1, MS, MS + 1, 3 * MS, 20 * MS, 50 * MS, 50 * MS + 1, 100 * MS, 100 * MS + 1),
    *(400 * MS, 1_000 * MS, 1_000 * MS + 1),
)
PARTITIONS = (("t", 0), ("t", 1), ("u", 0))
_ERRORS = ("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "UNKNOWN_CONSUMER")
_STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Empty")
_EPOCH_STATES = ("Assigning", "Reconciling", "Stable", "Empty")
_PATHS = ("/consumers/g/owners/t/0", "/x/consumers/g/offsets/t/0", "/brokers/ids", "/brokers/topics/t", "/", "/admin")
_OPERATIONS = ("getData", "create", "sync", "setData", "getChildren")
_SERIALS_AHEAD = 100


@dataclass(eq=False)
class _Member:
    """One member in a separate process."""

    process: str
    id: str
    group: str
    streams: int
    is_over: bool = False
    positions: dict[tuple[int, str, int], int] = field(default_factory=lambda: defaultdict(int))


class _Play:
    """Builds the trace: each action is a method, which chooses by its two numbers."""

    def __init__(self, *, authorities: Sequence[str], groups: Sequence[str]) -> None:
        self.events: list[dict[str, Any]] = []
        self._now_ns = 0
        self._authorities, self._groups = authorities, groups
        self._authority = 0
        self._spoke = ""
        self._members: list[_Member] = []
        self._ended: set[str] = set()
        self._ends: dict[tuple[str, int], int] = defaultdict(int)
        self._generations: dict[str, int] = defaultdict(int)
        self._epochs = 0
        self._changes = self._labels = 0

    def step(self, step: Step) -> None:
        pause_ns, verb, a, b = step
        self._now_ns += pause_ns
        VERBS[verb](self, a, b)

    def emit(self, process: str, kind: str, **fields: Any) -> None:
        self.events.append(e(0, process, kind, **fields) | {"t_ns": self._now_ns, "ns": self._now_ns})

    def _by_authority(self, kind: str, **fields: Any) -> None:
        process = self._authorities[self._authority % len(self._authorities)]
        if self._spoke not in ("", process):
            self._now_ns += 1  # the order of two processes at one moment is undefined
        self._spoke = process
        self.emit(process, kind, **fields)

    def _alive(self, a: int) -> _Member | None:
        alive = [member for member in self._members if not member.is_over]
        return alive[a % len(alive)] if alive else None

    def _by_stream(self, member: _Member, number: int, kind: str, **fields: Any) -> None:
        self.emit(member.process, kind, member=member.id, stream=number % member.streams, **fields)

    @property
    def _is_zookeeper(self) -> bool:
        return self._authorities[0] == "observer"

    # -- members ---------------------------------------------------------------------------------------------------

    def join(self, a: int, b: int) -> None:
        """Start a new process, or another incarnation of one that has ended."""
        over = [member.process for member in self._members if member.process in self._ended]
        base = over[a % len(over)].partition(".")[0] if over and b % 2 else f"m{1 + len(self._members)}"
        lives = sum(member.process.partition(".")[0] == base for member in self._members)
        process = f"{base}.{lives + 1}" if lives else base
        group = self._groups[a % len(self._groups)]
        member = _Member(process, f"{group}_{process}", group, 1 + b % 2)
        self._members.append(member)
        if not self._is_zookeeper and a % 2:  # it does not know its id yet
            self.emit(process, "rebalance_started", stream=0, trigger="join")
            self.emit(process, "phase_entered", stream=0, phase="join", attempt=1)
        if (a, b) != (7, 7):  # otherwise the line is lost, and with it the group
            self.emit(process, "member_started", member=member.id, group=group)

    def join_again(self, a: int, b: int) -> None:
        """A member leaves and joins again in its process, under its id or another one, perhaps in another group."""
        self.leave(a, 0)
        if gone := [member for member in self._members if member.is_over and member.process not in self._ended]:
            old = gone[a % len(gone)]
            self._start(old.process, old.id if b % 2 else f"{old.id}-{b}", self._groups[b % len(self._groups)])

    def join_beside(self, a: int, b: int) -> None:
        """Start another member of a running process, or one of a new process with the same id."""
        if (member := self._alive(a)) is not None:
            process = member.process if b % 2 else f"m{1 + len(self._members)}"
            if process in self._ended or (process != member.process and process in {m.process for m in self._members}):
                return
            group = self._groups[b // 2 % len(self._groups)]
            self._start(process, f"{member.id}-{b}" if b % 2 else member.id, group)

    def _start(self, process: str, name: str, group: str) -> None:
        self._members.append(_Member(process, name, group, 1))
        self.emit(process, "member_started", member=name, group=group)

    def come(self, a: int, b: int) -> None:
        """The authority adds or removes a member."""
        if (member := self._alive(a)) is not None:
            if b % 3:
                self._by_authority("group_member_joined", group=member.group, id=member.id)
            else:
                self._by_authority("group_member_left", group=member.group, id=member.id, reason="session")

    def leave(self, a: int, b: int) -> None:
        if (member := self._alive(a)) is not None:
            member.is_over = True
            self.emit(member.process, "member_closed", member=member.id, group=member.group)
            if b % 2:
                self._end(member.process, "leave")

    def kill(self, a: int, b: int) -> None:
        if (member := self._alive(a)) is not None:
            self._end(member.process, "kill" if b else "itself")

    def _end(self, process: str, how: str) -> None:
        """A process ends, and all its members with it."""
        self._ended.add(process)
        for member in self._members:
            member.is_over |= member.process == process
        self.emit("runner", "process_ended", target=process, how=how)

    def fail(self, a: int, b: int) -> None:
        if (member := self._alive(a)) is not None:
            self.emit(member.process, "member_failed", member=member.id, error=f"error {b}")

    def turn_away(self, a: int, b: int) -> None:
        if (member := self._alive(a)) is not None:
            about = {"group": member.group, "api": "JoinGroup", "error": f"error {b}"}
            self.emit(member.process, "member_refused", member=member.id, **about)

    def assign(self, a: int, b: int) -> None:
        self._notify_stream("assigned", a, b)

    def revoke(self, a: int, b: int) -> None:
        self._notify_stream("revoked", a, b)

    def lose(self, a: int, b: int) -> None:
        self._notify_stream("lost", a, b)

    def _notify_stream(self, what: str, a: int, b: int) -> None:
        if (member := self._alive(a)) is not None:
            named = PARTITIONS[b % 3 :][: 1 + b // 6]
            self._by_stream(member, a // 4, f"partitions_{what}", t=" ".join(f"{t}{p}" for t, p in named))

    def pause(self, a: int, b: int) -> None:
        if (member := self._alive(a)) is not None:
            topic, partition = PARTITIONS[b % 3]
            what, cause = (("paused", ""), ("resumed", "asked"), ("resumed", "rebalance"))[b // 3]
            self._by_stream(member, a // 4, f"partitions_{what}", t=f"{topic}{partition}", cause=cause)

    def rebalance(self, a: int, b: int) -> None:
        if (member := self._alive(a)) is not None:
            step: tuple[str, dict[str, Any]] = (
                ("rebalance_started", {"trigger": "children"}),
                ("phase_entered", {"phase": "join", "attempt": 1}),
                ("phase_entered", {"phase": "claim", "attempt": 1}),
                ("attempt_ended", {"attempt": 1, "outcome": "conflict"}),
                ("rebalance_ended", {"outcome": "ok"}),
            )[b % 5]
            self._by_stream(member, 0, step[0], **step[1])

    # -- records ---------------------------------------------------------------------------------------------------

    def acknowledge(self, a: int, b: int) -> None:
        topic, partition = PARTITIONS[a % 3]
        first, last = self._ends[topic, partition], self._ends[topic, partition] + b
        self._ends[topic, partition] = last + 1
        more = {"serial_first": first + _SERIALS_AHEAD, "serial_last": last + _SERIALS_AHEAD}
        more |= {"latency_ns": (a + b) * 50 * MS} if a % 2 else {}
        self.emit("runner", "records_acked", topic=topic, partition=partition, first=first, last=last, **more)

    def deliver(self, a: int, b: int) -> None:
        """Deliver the next records; sometimes some are skipped, repeated, or have no serial numbers."""
        if (member := self._alive(a)) is None:
            return
        topic, partition = PARTITIONS[(a // 3) % 3]
        place = (0 if member.streams == 1 else (a // 4) % member.streams, topic, partition)
        first = max(0, member.positions[place] + (0, 0, 0, 0, 0, 2, -2, -5)[b])
        last = first + (b * 3) % 5
        member.positions[place] = last + 1
        serials: dict[str, Any] = {"serial_first": first + _SERIALS_AHEAD, "serial_last": last + _SERIALS_AHEAD}
        if b == 4:
            serials = {"serial_first": None, "serial_last": None}
        numbers = {"topic": topic, "partition": partition, "first": first, "last": last, **serials}
        self._by_stream(member, place[0], "records_delivered", **numbers)

    def refuse_fetch(self, a: int, b: int) -> None:
        if (member := self._alive(a)) is not None:
            topic, partition = PARTITIONS[b % 3]
            error = "NOT_LEADER_OR_FOLLOWER"
            self._by_stream(member, 0, "fetch_refused", topic=topic, partition=partition, error=error)

    def start(self, a: int, b: int) -> None:
        if (member := self._alive(a)) is not None:
            topic, partition = PARTITIONS[(a // 3) % 3]
            place = (0 if member.streams == 1 else (a // 4) % member.streams, topic, partition)
            member.positions[place] = b * 2
            if a % 2:
                reset = "earliest" if b == 0 else "latest"
                self._by_stream(
                    member, place[0], "position_reset", topic=topic, partition=partition, offset=b * 2, reset=reset
                )
            self._by_stream(member, place[0], "position_started", topic=topic, partition=partition, offset=b * 2)

    # -- the authority ---------------------------------------------------------------------------------------------

    def _named(self, member: _Member | None) -> str:
        if member is None:
            return "somebody"
        return f"{member.id}-0" if self._is_zookeeper else member.id

    def _where(self, member: _Member | None, b: int) -> dict[str, Any]:
        group = member.group if member is not None else self._groups[0]
        topic, partition = PARTITIONS[b % 3]
        return {"group": group, "topic": topic, "partition": partition}

    def name(self, a: int, b: int) -> None:
        member = self._alive(a)
        self._epochs += 1
        self._by_authority("authority_named", **self._where(member, b), owner=self._named(member), epoch=self._epochs)

    def clear(self, a: int, b: int) -> None:
        member = self._alive(a)
        fields = {"owner": self._named(member), "epoch": self._epochs, "reason": "session" if b % 2 else "delete"}
        self._by_authority("authority_cleared", **self._where(member, b), **fields)

    def commit(self, a: int, b: int) -> None:
        member = self._alive(a)
        by = "" if member is None or a == b == 0 else member.id
        where = self._where(member, b)
        epoch = self._generations[where["group"]] - b // 3 if not self._is_zookeeper else b
        self._by_authority("offset_written", **where, offset=(a * 5 + b) % 13, by=by, epoch=epoch)

    def refuse(self, a: int, b: int) -> None:
        member = self._alive(a)
        by = member.id if member is not None else "tool"
        where, error = self._where(member, b), _ERRORS[b % 4]
        epoch = self._generations[where["group"]] - a // 4
        self._by_authority("offset_refused", **where, offset=1, by=by, epoch=epoch, error=error)

    def change_epoch(self, a: int, b: int) -> None:
        """A KIP-848 group changes."""
        group = self._groups[a % len(self._groups)]
        self._generations[group] += b // 4
        fields = {"state": _EPOCH_STATES[b % 4], "generation": self._generations[group], "reason": "", "members": a}
        self._by_authority("group_changed", group=group, **fields)

    def advance(self, a: int, b: int) -> None:
        """A member of such a group gets an epoch."""
        if (member := self._alive(a)) is not None:
            epoch = self._generations[member.group] - b // 4
            self._by_authority("group_member_advanced", group=member.group, id=member.id, epoch=epoch)

    def change_group(self, a: int, b: int, members: int | None = None) -> None:
        group = self._groups[a % len(self._groups)]
        state = _STATES[b % 4]
        self._generations[group] += state == "CompletingRebalance"
        fields = {"state": state, "generation": self._generations[group], "reason": ""}
        fields["members"] = a if members is None else members
        self._by_authority("group_changed", group=group, **fields)

    def take_over(self, a: int, b: int) -> None:
        """Another broker becomes coordinator, or leads some partition of a topic."""
        if self._is_zookeeper:
            return
        self._authority += a % 2
        topic = "__consumer_offsets" if b % 3 else "t"
        own = int(self._authorities[self._authority % len(self._authorities)].partition("-")[2])
        leader = (own, own, 3 - own, -1, -2)[b % 5]
        self._by_authority("leader_changed", topic=topic, partition=a % 2, leader=leader, leader_epoch=self._epochs)

    # -- the runner and the environment ----------------------------------------------------------------------------

    def stage(self, a: int, b: int) -> None:
        del b
        self.emit("runner", "stage_entered", stage=("steady", "fault", "heal", "drain")[a % 4])

    def change(self, a: int, b: int) -> None:
        """A change begins or has settled; sometimes not the one that began last."""
        if b % 2:
            self._changes += 1
            kind, detail = "change_started", {"detail": {"target": "m1"}} if a % 2 else {}
        else:
            kind, detail = "change_settled", {}
        name = ("join", "leave", "form")[a % 3]
        self.emit("runner", kind, change=name, round=1 + (b // 2) % 2, members=1 + a, **detail)

    def fault(self, a: int, b: int) -> None:
        fault, target = ("freeze", "cut", "kill", "slow")[a % 4], f"m{1 + b % 3}"
        self.emit("runner", "fault_started" if b % 2 else "fault_ended", fault=fault, target=target)

    def want(self, a: int, b: int) -> None:
        self.emit("runner", "topic_wanted", topic="t" if a % 2 else "u", wanted=b % 3)

    def count(self, a: int, b: int) -> None:
        """A reading of a server's counters; pairs of readings occur by chance."""
        when = "after" if b % 2 else "before"
        self._labels += when == "before" and a == 0
        label = f"c{self._labels}:{when}"
        server = f"s{1 + b // 6}"
        fields = {"server": server, "namespace": "consumers", "reads": a, "writes": b, **self._latency(a)}
        self.emit("runner", "counters_read", **fields, at=label)

    def operate(self, a: int, b: int) -> None:
        if (member := self._alive(a)) is not None:
            path, op = _PATHS[b % 6], _OPERATIONS[(a + b) % 5]
            error = ({}, {"error": "NoNode"}, {"error": "ConnectionLost"})[a % 3]
            ok = {"ok": b % 3 > 0, **({} if b % 3 else error)}
            ok |= self._latency(b)
            self.emit(member.process, "zk_op", member=member.id, op=op, path=path, step=f"R{b}", **ok)

    def _latency(self, number: int) -> dict[str, int]:
        """How long it took, sometimes; not before the trace began."""
        latency_ns = PAUSES_NS[(2 * number + 1) % len(PAUSES_NS)]
        return {"latency_ns": min(latency_ns, self._now_ns)} if number % 4 else {}

    def answer(self, a: int, b: int) -> None:
        if (member := self._alive(a)) is not None:
            api = ("Fetch", "Heartbeat", "ConsumerGroupHeartbeat", "JoinGroup")[a % 4]
            error = "NOT_COORDINATOR" if b == 1 else ""
            fields = {"api": api, "version": 0, "correlation": a, "broker": 1, "error": error}
            self.emit(member.process, "request_answered", member=member.id, **fields)

    def finish(self, a: int, b: int) -> None:
        """The last reading of offsets, which ends the trace."""
        self.emit("runner", "stage_entered", stage="final")
        self._now_ns += PAUSES_NS[-1 - a]
        for group in self._groups:
            for number, (topic, partition) in enumerate(PARTITIONS[: b % 4]):
                where = {"group": group, "topic": topic, "partition": partition}
                self.emit(
                    "runner", "final_offset", **where, committed=(a + 3 * number) % 13, end=self._ends[topic, partition]
                )
        self.emit("runner", "run_ended", outcome="complete")

    # -- sequences that single steps would rarely form -------------------------------------------------------------

    def pass_on(self, a: int, b: int) -> None:
        """Move a partition to another member: assigned, named, delivered by both for a while, revoked."""
        old, new = self._alive(a), self._alive(a + 1)
        if old is None or new is None:
            return
        self.assign(a, b)
        self.name(a, b)
        self.deliver(a + 3 * (b % 3), 0)
        for member, pause_ns in ((a + 1, PAUSES_NS[b]), (a + 2, PAUSES_NS[2 * b])):
            self.assign(member, b)
            self.name(member, b)
            for wait_ns in (0, pause_ns):
                self._now_ns += wait_ns
                for who in (a, member):
                    self._by_stream(self._alive(who) or new, 0, "records_delivered", **self._polled(b))
            self.commit(member - b % 2, b)
            self.revoke(member if a % 2 else a, b)
        self.revoke(a, b)

    def _polled(self, b: int) -> dict[str, Any]:
        topic, partition = PARTITIONS[b % 3]
        numbers = {"first": b, "last": b + 2, "serial_first": None, "serial_last": None}
        return {"topic": topic, "partition": partition, **numbers}

    def change_and_settle(self, a: int, b: int) -> None:
        name, number = ("join", "leave", "crash")[a % 3], 1 + b % 2
        self.emit("runner", "change_started", change=name, round=number, members=2, detail={})
        self.pass_on(a, b)
        self.emit("runner", "change_settled", change=name, round=number, members=2)

    def suffer(self, a: int, b: int) -> None:
        """A fault that heals, with a rebalance during it."""
        self.emit("runner", "fault_started", fault="freeze", target=f"m{a}")
        self.rebalance(b, 0)
        self._now_ns += PAUSES_NS[2 * a]
        self.lose(a, b)
        self.assign(a, b)
        self.rebalance(b, 4)
        self.emit("runner", "fault_ended", fault="freeze", target=f"m{a}")

    def rebalance_on(self, a: int, b: int) -> None:
        """A round of the group in which one member keeps a partition and continues to deliver."""
        if (member := self._alive(a)) is None:
            return
        self.assign(a, b)
        self._now_ns += PAUSES_NS[b]
        states: tuple[int | None, ...] = (None,) if self._is_zookeeper else (0, 1, 2)
        for number, state in enumerate(states):
            if state is not None:
                self.change_group(self._groups.index(member.group), state)
            else:
                self.rebalance(a, 0)
            self._now_ns += PAUSES_NS[2 * b]
            if number < len(states) - 1 or state is None:
                self._by_stream(member, a // 4, "records_delivered", **self._polled(b))
        self._now_ns += PAUSES_NS[b]
        self.rebalance(a, 4)
        self._now_ns += PAUSES_NS[b]
        self.revoke(a, b)

    def gather(self, a: int, b: int) -> None:
        """A coordinator's round, for which members join one after the other; one may leave or not come."""
        if (member := self._alive(a)) is None or self._is_zookeeper:
            return
        group = self._groups.index(member.group)
        mine = [each for each in self._members if not each.is_over and each.group == member.group]
        for each in mine[: 1 + b % 4]:
            self._by_stream(each, 0, "phase_entered", phase="claim", attempt=1)
        self.change_group(group, 0)
        came = [each for number, each in enumerate(mine) if (number + a) % 4]
        for each in came:
            self._now_ns += PAUSES_NS[(a + b) % len(PAUSES_NS)]
            self._by_stream(each, 0, "phase_entered", phase="join", attempt=1)
        if b % 3 == 0:
            self._now_ns += PAUSES_NS[a]
            self._by_stream(member, 0, "rebalance_triggered", trigger=("poll-overdue", "poll-timeout", "fenced")[a % 3])
            reason = ("session", "not rejoined", "not revoked in time")[(a + b) % 3]
            self._by_authority("group_member_left", group=member.group, id=member.id, reason=reason)
        self._now_ns += PAUSES_NS[2 * b]
        self.change_group(group, 1, len(came))
        for each in came:
            self._by_stream(each, 0, "attempt_ended", attempt=1, outcome="ok")
        self.change_group(group, 2)

    def stand_by(self, a: int, b: int) -> None:
        """The bystander's operations, one after the other or at once."""
        for number in range(1 + a):
            self._now_ns += PAUSES_NS[b]
            latency_ns = PAUSES_NS[(a + 3 * number) % len(PAUSES_NS)]
            fields = {"op": _OPERATIONS[3 * (number % 2)], "ok": (a, b) != (3, 3), "latency_ns": latency_ns}
            self.emit("bystander", "bystander_op", **fields, error=None)

    def rest_and_change(self, a: int, b: int) -> None:
        """The group is left alone, changes, and settles, beside the bystander."""
        change = {"change": "join", "round": 1 + a % 2, "members": a}
        self.emit("runner", "stage_entered", stage="steady")
        self.stand_by(a, b)
        self.emit("runner", "change_started", **change, detail={})
        self.stand_by(b, a)
        self.emit("runner", "change_settled", **change)
        self.stand_by(b, b)

    def read_counters(self, a: int, b: int) -> None:
        self._labels += 1
        for when in ("before", "after"):
            for server in ("s1", "s2")[: 1 + a % 2]:
                fields = {
                    "server": server,
                    "namespace": "consumers",
                    "reads": a,
                    "writes": b,
                    "latency_ns": PAUSES_NS[a],
                }
                self.emit("runner", "counters_read", **fields, at=f"c{self._labels}:{when}")
            for number in range(3 if when == "before" else 1):
                self._now_ns += PAUSES_NS[2 * b]
                self.operate(a + number, b + number)


_VERBS = (
    "join join_again join_beside come leave kill fail turn_away assign revoke lose pause rebalance acknowledge "
    "deliver refuse_fetch start name clear commit refuse change_group change_epoch advance take_over stage change "
    "fault want count operate answer pass_on change_and_settle suffer rebalance_on gather read_counters stand_by "
    "rest_and_change"
)
#: The actions; each takes two numbers that choose its objects.
VERBS: dict[str, Callable[[_Play, int, int], None]] = {name: getattr(_Play, name) for name in _VERBS.split()}
#: The most frequent actions.
_OFTEN = (
    *("join", "assign", "assign", "revoke", "lose", "deliver", "deliver", "deliver", "name", "commit", "start"),
    *("join_again", "rebalance_on", "rebalance_on", "gather", "gather", "pause", "pause"),
)
_NUMBERS = st.integers(0, 7)
_STEP = st.tuples(st.sampled_from(PAUSES_NS), st.sampled_from([*VERBS, *_OFTEN]), _NUMBERS, _NUMBERS)
_STEPS_MAX = 40


@st.composite
def traces(draw: st.DrawFn, *, groups_max: int = 2) -> list[dict[str, Any]]:
    """The events of a run, in order, as `tests.support.trace.traces.e` makes them, with `seq` and `file` by process."""
    authorities = draw(st.sampled_from((("observer",), ("broker-1",), ("broker-1", "broker-2"))))
    groups = draw(st.sampled_from((("g",), ("g", "h"))[:groups_max]))
    play = _Play(authorities=authorities, groups=groups)
    play.emit("runner", "run_started", parameters={"members": 2})
    for number in range(draw(st.integers(0, 4))):
        play.join(number // 2, number)
    # Lists of arbitrary length would mostly be short.
    steps = draw(st.integers(0, _STEPS_MAX))
    for step in draw(st.lists(_STEP, min_size=steps, max_size=steps)):
        play.step(step)
    if draw(st.booleans()):
        play.finish(draw(_NUMBERS), draw(_NUMBERS))
    return numbered(play.events)
