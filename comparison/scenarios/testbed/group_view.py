"""The runner's view of the group, from the members' own events: who owns what, as the members believe.

Pure. The runner uses it to decide when a step is over; verdicts are made elsewhere.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from comparison.failures import each_once
from comparison.ownership.fold import CLAIMS, Ownership, Unit
from comparison.scenarios.processes.lines import NEVER_JOINS, POLLING_STOPPED, REFUSED
from comparison.scenarios.testbed.member_sessions import MemberSessions
from kernel.designs import DESIGNS
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from comparison.scenarios.plan.request import RunRequest

#: A group is quiet when no member rebalances and there was no event about ownership for this long. Then the effects of
#: a change are over, and do not merge with those of the next one.
QUIET_MS = 300
#: A member gives up with one heartbeat what another takes with its next one.
HEARTBEATS = 3


class GroupView:
    """What all members believe to own, in the processes that are present: not killed, left or frozen."""

    def __init__(
        self,
        partitions: Iterable[TopicPartition],
        *,
        heartbeat_ms: int = 0,
        claims_in_sessions: bool = False,
        several_each: bool = False,
    ) -> None:
        """`heartbeat_ms`: of designs in which members get their partitions step by step; 0: they get them at once.

        `claims_in_sessions`: what members have is claimed in their ZooKeeper sessions, and gone with them.
        `several_each`: a process has several members.
        """
        self.partitions = frozenset(partitions)
        self._heartbeat_ms = heartbeat_ms
        self._several_each = several_each
        self.sessions = MemberSessions(claim=claims_in_sessions)
        self.delivered: dict[TopicPartition, int] = {}  #: the next offset to be delivered
        self.committed: dict[TopicPartition, int] = {}  #: as members received it
        #: The topics of each process. A process that is not in it may own anything.
        self.subscribed: dict[str, frozenset[str]] = {}
        self.failures: list[str] = []
        #: Member id and generation of each process's last assignment, in designs that have them.
        self.identities: dict[str, tuple[str, int]] = {}
        self.decider = ""  #: the process that assigned last
        self.stopped_polling: set[str] = set()  #: processes that have stopped polling when asked to
        self.never_joining: dict[str, str] = {}  #: processes with a member that could not start, and why
        self.refused: dict[str, str] = {}  #: processes with a member that the group has refused for good, and why
        self._ownership = Ownership(lambda *_: "")  #: of the one group whose members report here
        self._absent: set[str] = set()
        #: By process: a member may start its first rebalance without an id and end it with one.
        self._open_rebalances: Counter[str] = Counter()
        self._begun_rebalances: Counter[str] = Counter()
        self._ended_rebalances: Counter[str] = Counter()
        self._arrived: set[tuple[str, str]] = set()  #: memberships that have completed a rebalance; see `_membership`
        #: The generation of the last rebalance that each membership completed, in designs that have generations.
        self._generations: dict[tuple[str, str], int] = {}
        self.moved_ns = 0  #: time of the last event about ownership

    def apply(self, event: Mapping[str, object]) -> None:
        """Apply one event of a member."""
        kind, process = str(event["kind"]), str(event["process"])
        unit = Unit(process, str(event.get("member") or ""), _number(event.get("stream")))
        self.sessions.take(event)
        if kind in CLAIMS:
            self._ownership.take(event, _number(event["ns"]))
            if kind == "partitions_assigned" and isinstance(event.get("generation"), int):
                self.identities[process] = (unit.member, _number(event["generation"]))
        elif kind == "rebalance_started":
            if not unit.member:  # it is in the group no more, if it ever was
                self._arrived.discard(self._membership(unit))
            self._open_rebalances[process] += 1
            self._begun_rebalances[process] += 1
        elif kind == "rebalance_ended":
            self._complete(unit, event)
        elif kind == "member_failed":
            self.failures.append(f"{process}: {event['error']}")
        elif kind == "member_closed":
            self._ownership.take(event, _number(event["ns"]))
            self._arrived.discard(self._membership(unit))
        else:
            self._note(kind, process, event)
            return
        self.moved_ns = _number(event["ns"])

    def _note(self, kind: str, process: str, event: Mapping[str, object]) -> None:
        """Apply what does not concern ownership."""
        if kind == "records_delivered":
            self._advance(self.delivered, event, _number(event["last"]) + 1)
        elif kind == "position_reset":
            self._advance(self.delivered, event, _number(event["offset"]))
        elif kind == "commit_answered":
            if event["outcome"] == "accepted":
                self._advance(self.committed, event, _number(event["offset"]))
        elif kind == "phase_entered":
            self.decider = process
        elif kind == POLLING_STOPPED:
            self.stopped_polling.add(process)
        elif kind == NEVER_JOINS:
            self.never_joining[process] = str(event["error"])
        elif kind == REFUSED:
            self.refused[process] = str(event["error"])

    def _complete(self, unit: Unit, event: Mapping[str, object]) -> None:
        """A member's rebalance has ended."""
        self._open_rebalances[unit.process] -= 1
        self._ended_rebalances[unit.process] += 1
        if event["outcome"] == "ok":
            self._arrived.add(self._membership(unit))
            if isinstance(event.get("generation"), int):
                self._generations[self._membership(unit)] = _number(event["generation"])

    def _membership(self, unit: Unit) -> tuple[str, str]:
        """A process, and where it has several members, one of them: ids change when a coordinator forgets a member."""
        return unit.process, unit.member if self._several_each else ""

    def _advance(self, offsets: dict[TopicPartition, int], event: Mapping[str, object], offset: int) -> None:
        tp = TopicPartition(str(event["topic"]), _number(event["partition"]))
        offsets[tp] = max(offset, offsets.get(tp, 0))

    def arrived(self) -> set[str]:
        """The processes with a member that has completed a rebalance, and is in the group since."""
        return {process for process, _ in self._arrived}

    def grow(self, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions, of which nothing is known yet, whatever was before they were created again."""
        new = frozenset(partitions)
        self.partitions |= new
        for tp in new:
            self.delivered.pop(tp, None)
            self.committed.pop(tp, None)

    def shrink(self, partitions: Iterable[TopicPartition]) -> None:
        """Do without partitions that are being deleted."""
        self.partitions -= frozenset(partitions)

    def subscribe(self, process: str, topics: frozenset[str] | None) -> None:
        """A process subscribes to these topics; None: by a pattern, so that it may own anything."""
        if topics is None:
            self.subscribed.pop(process, None)
        else:
            self.subscribed[process] = topics

    def leave_out(self, process: str) -> None:
        """Ignore what a process believes: it is dead, leaving or frozen."""
        self._absent.add(process)

    def take_back(self, process: str) -> None:
        """Count a process again, with what it believes."""
        self._absent.discard(process)

    def owners(self) -> dict[TopicPartition, list[Unit]]:
        """The units that believe to own each partition, sorted by process, member and stream."""
        owners: dict[TopicPartition, list[Unit]] = {tp: [] for tp in sorted(self.partitions)}
        for key, units in sorted(self._ownership.believed.items()):
            if present := sorted(unit for unit in units if unit.process not in self._absent):
                owners[TopicPartition(key.topic, key.partition)] = present
        return owners

    def held_by(self, process: str) -> frozenset[TopicPartition]:
        """The partitions that a process believes to own, present or not."""
        return frozenset(
            TopicPartition(key.topic, key.partition)
            for key, units in self._ownership.believed.items()
            if any(unit.process == process for unit in units)
        )

    def owning_processes(self) -> list[str]:
        """The processes that own at least one partition."""
        return sorted({unit.process for units in self.owners().values() for unit in units})

    def settled(self, units: int, memberships: int, now_ns: int = 0) -> bool:
        """Whether each partition has one subscribed owner, all memberships have joined, and it is what was decided.

        It is if as many units own something as every strategy of ours would have it. Another strategy may leave members
        without partitions: then it is what was decided if all memberships have it from the same, newest generation, and
        nothing is under way. Only the end of its first rebalance shows that a member without partitions has joined.

        It is not as long as a member may have lost what it believes in: see `MemberSessions`.

        Where members are told one by one, the partitions may each have one owner before the last of them has moved: so
        until the shares are even, or nothing has happened for some heartbeats.
        """
        owners = self.owners()
        busy = {unit for held in owners.values() for unit in held}
        arrived = sum(process not in self._absent for process, _ in self._arrived)
        once = all(len(held) == 1 and self._wants(held[0], tp) for tp, held in owners.items())
        if not once or arrived < memberships or self._unsure():
            return False
        if self._heartbeat_ms:
            return self._is_even(units) or self.quiet(now_ns, HEARTBEATS * self._heartbeat_ms)
        return len(busy) >= self._busy_at_least(units) or self._decided(memberships, now_ns)

    def _unsure(self) -> list[str]:
        return sorted(self.sessions.unsure() - self._absent)

    def _busy_at_least(self, units: int) -> int:
        """How many units own something, whatever strategy of ours is used.

        `range` assigns each topic by itself, so of several topics with the same subscribers the widest one counts.
        Topics that share no subscriber count for themselves.
        """
        widths = Counter(tp.topic for tp in self.partitions)
        known = {
            process: topics for process, topics in self.subscribed.items() if process not in self._absent and topics
        }
        if not known:
            return min(units, max(widths.values(), default=0))
        each = -(-units // len(known))
        least, left = 0, set(widths)
        while left:
            together, processes = {left.pop()}, set[str]()
            while more := {name for name in known.keys() - processes if known[name] & together}:
                processes |= more
                together |= {topic for name in more for topic in known[name]}
            left -= together
            shared = {
                topic: sum(topic in known[name] for name in processes) * each for topic in together & widths.keys()
            }
            least += max(min(count, widths[topic]) for topic, count in shared.items())
        return min(units, least)

    def _is_even(self, units: int) -> bool:
        """Whether shares differ by one at most, in a group whose members subscribe to the same."""
        present = {topics for process, topics in self.subscribed.items() if process not in self._absent}
        shares = Counter(unit for held in self.owners().values() for unit in held)
        least = min(shares.values(), default=0) if len(shares) >= units else 0
        return len(present) <= 1 and max(shares.values(), default=0) - least <= 1

    def _decided(self, memberships: int, now_ns: int) -> bool:
        """Whether all memberships have completed the newest generation, and nothing has happened since for a while."""
        present = [made for (process, _), made in self._generations.items() if process not in self._absent]
        return present.count(max(present, default=0)) >= memberships and self.quiet(now_ns, QUIET_MS)

    def _wants(self, unit: Unit, partition: TopicPartition) -> bool:
        subscribed = self.subscribed.get(unit.process)
        return subscribed is None or partition.topic in subscribed

    def quiet(self, now_ns: int, for_ms: int, since_ns: int = 0) -> bool:
        """Whether no member is in a rebalance, and the last event about ownership is `for_ms` old, as is `since_ns`."""
        return not self.rebalancing() and now_ns - max(self.moved_ns, since_ns) >= for_ms * 1_000_000

    def begun(self) -> dict[str, int]:
        """How many rebalances each present process has begun that owns something, or has begun one."""
        processes = {*self.owning_processes(), *self._begun_rebalances} - self._absent
        return {process: self._begun_rebalances[process] for process in sorted(processes)}

    def rebalanced(self) -> dict[str, int]:
        """The number of completed rebalances of each present process."""
        return {process: ended for process, ended in self._ended_rebalances.items() if process not in self._absent}

    def rebalancing(self) -> list[str]:
        """The present processes in which a rebalance is under way."""
        return sorted(p for p, begun in self._open_rebalances.items() if begun > 0 and p not in self._absent)

    def summary(self) -> str:
        """One line for the message of a wait that timed out."""
        owners = self.owners()
        unowned = [str(tp) for tp, units in owners.items() if not units]
        doubled = [str(tp) for tp, units in owners.items() if len(units) > 1]
        busy = {unit for units in owners.values() for unit in units}
        parts = [f"{len(busy)} owners", f"unowned: {', '.join(unowned) or 'none'}"]
        if doubled:
            parts.append(f"owned twice: {', '.join(doubled)}")
        if unwanted := [str(tp) for tp, units in owners.items() for unit in units if not self._wants(unit, tp)]:
            parts.append(f"owned by an unsubscribed member: {', '.join(unwanted)}")
        if rebalancing := self.rebalancing():
            parts.append(f"rebalancing: {', '.join(rebalancing)}")
        if unsure := self._unsure():
            parts.append(f"without the session of what they own: {', '.join(unsure)}")
        parts += each_once([*self.failures, *(f"{name}: {why}" for name, why in self.refused.items())])[-2:]
        return "; ".join(parts)


def view_of(request: RunRequest, partitions: Iterable[TopicPartition]) -> GroupView:
    """The view of a run's group."""
    design = DESIGNS[request.design]
    return GroupView(
        (tp for tp in partitions if request.wants(tp.topic)),
        heartbeat_ms=request.configuration.heartbeat_ms if design.stepwise else 0,
        claims_in_sessions=not design.coordinator,
        several_each=memberships_each(request) * request.scenario.members_per_process > 1,
    )


def memberships_each(request: RunRequest) -> int:
    """In some designs the streams of a member are its threads, in the others each is a member."""
    return 1 if DESIGNS[request.design].streams_are_threads else request.parameters.streams


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
