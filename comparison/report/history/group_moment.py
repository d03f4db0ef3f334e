"""A run's groups at one moment, from the events of its traces: who is a member, who owns what, offsets, state. Pure.

Owners, members and offsets are those of the authority: the coordinator's events, or those of ZooKeeper's transaction
log. A run played by hand may have no trace of it; then they are what the members believe, and a problem says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from comparison.group_readers.columns import GroupSeen, Keeper, MemberRow, PartitionRow, zookeeper_state
from comparison.ownership.fold import Ownership
from comparison.ownership.groups import Memberships
from comparison.report.history.brokers import UNLOADED, Coordinators, broker_ids
from kernel.designs import ZOOKEEPER
from kernel.topic_names import OFFSETS_TOPIC
from kernel.trace.events import Role
from kernel.trace.run_clock import events_in_order, reference_of
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kernel.trace.reader import Trace

Event = dict[str, Any]
BELIEVED = "nobody traced the authority: owners, members and offsets are what the members believe"
_NS_PER_S = 1_000_000_000


@dataclass(slots=True)
class _Known:
    """One group's members and offsets, as one of the two views knows them."""

    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    members: dict[str, None] = field(default_factory=dict)  #: as a set, in the order of joining


@dataclass(slots=True)
class _Group:
    authority: _Known = field(default_factory=_Known)
    believed: _Known = field(default_factory=_Known)
    state: str = ""
    generation: int | None = None
    broker: str = ""  #: the process that last said so


class RunEvents:
    """The events of one run, in order."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        headers = [trace.header for trace in traces if trace.header is not None]
        reference = reference_of(headers)
        assert reference is not None, "without a header there is no event"
        self.events: list[Event] = events_in_order(traces)
        self._brokers = broker_ids(self.events)
        self.design = next((str(each["design"]) for each in (reference, *headers) if each["design"]), "")
        self.scenario = str(reference["scenario"])
        authority = Role.OBSERVER if self.design == ZOOKEEPER else Role.BROKER
        self._authorities = {str(each["process"]) for each in headers if each["role"] == authority}

    @property
    def last_s(self) -> float:
        """The time of the last event, in seconds of the run."""
        return self.events[-1]["ns"] / _NS_PER_S if self.events else 0.0

    def default_s(self) -> float:
        """The moment to show unless asked for another: before the final reads, or before the last members leave."""
        leaving: int | None = None
        for event in self.events:
            if event["kind"] == "stage_entered" and event["stage"] in ("final", "stop"):
                return float(event["ns"] - 1) / _NS_PER_S
            if event["kind"] == "member_started":
                leaving = None
            elif event["kind"] in ("partitions_revoked", "partitions_lost", "member_closed"):
                leaving = leaving if leaving is not None else event["ns"]
            elif event["kind"] == "partitions_assigned":
                leaving = None
        return self.last_s if leaving is None else (leaving - 1) / _NS_PER_S

    def at(self, moment_s: float) -> list[GroupSeen]:
        """The groups at that second of the run."""
        until_ns = round(moment_s * _NS_PER_S)
        memberships = Memberships.of_events(self.events)
        fold = _Fold(self._authorities, self._brokers, memberships, coordinated=self.design != ZOOKEEPER)
        for event in self.events:
            if event["ns"] > until_ns:
                break
            fold.take(event)
        return fold.seen()


class _Fold:
    """What is known after the events so far."""

    def __init__(
        self, authorities: set[str], brokers: Mapping[str, int], memberships: Memberships, *, coordinated: bool
    ) -> None:
        self._is_traced = bool(authorities)
        self._coordinated = coordinated
        self._groups: dict[str, _Group] = {}
        self._ownership = Ownership(memberships.group)
        self._processes: dict[str, str] = {}  #: by member id
        self._ends: dict[TopicPartition, int] = {}
        self._broker_ids = brokers
        self._coordinators = Coordinators(brokers)
        self._strategy = ""

    def take(self, event: Event) -> None:
        self._ownership.take(event, event["ns"])
        match event["kind"]:
            case "run_started":
                self._strategy = str(event["parameters"].get("strategy", ""))
            case "records_acked":
                self._ends[_partition(event)] = event["last"] + 1
            case "final_offset":
                self._ends[_partition(event)] = event["end"]
            case "leader_changed":
                self._coordinators.take(event)
            case "member_started" | "member_closed" | "commit_answered":
                self._take_members_own(event)
            case _ if "group" in event and event["group"] is not None:
                self._take_authoritys(event)

    def _take_members_own(self, event: Event) -> None:
        group, member = self._group(event["group"]), str(event["member"] or "")
        if event["kind"] == "member_started":
            group.believed.members[member] = None
            self._processes[member] = event["process"]
        elif event["kind"] == "member_closed":
            group.believed.members.pop(member, None)
        elif event["outcome"] == "accepted":
            group.believed.offsets[_partition(event)] = event["offset"]

    def _take_authoritys(self, event: Event) -> None:
        group = self._group(event["group"])
        known = group.authority
        match event["kind"]:
            case "group_changed" if event["reason"] != UNLOADED:
                group.state, group.generation, group.broker = event["state"], event["generation"], event["process"]
            case "group_member_joined":
                known.members[event["id"]] = None
            case "group_member_left":
                known.members.pop(event["id"], None)
            case "offset_written":
                known.offsets[_partition(event)] = event["offset"]

    def _group(self, name: str) -> _Group:
        return self._groups.setdefault(name, _Group())

    # -- what was seen -----------------------------------------------------------------------------------------------

    def seen(self) -> list[GroupSeen]:
        return [self._seen(name, group) for name, group in sorted(self._groups.items()) if name]

    def _seen(self, name: str, group: _Group) -> GroupSeen:
        known, owners = group.authority if self._is_traced else group.believed, self._owners(name)
        rows = tuple(
            self._row(tp, owners.get(tp, ""), known.offsets.get(tp))
            for tp in sorted({*owners, *known.offsets, *self._ends})
            if tp.topic != OFFSETS_TOPIC
        )
        members = tuple(self._member(member, owners) for member in sorted(known.members))
        state = group.state if self._coordinated else zookeeper_state(known.members, rows)
        # The successor of a coordinator says nothing of a group that it need not change.
        broker = self._coordinators.of(name) or group.broker
        node = self._broker_ids.get(broker)
        return GroupSeen(
            group=name,
            keeper=Keeper.COORDINATOR if self._coordinated else Keeper.ZOOKEEPER,
            coordinator=f"{broker}{'' if node is None else f' ({node})'}" if self._coordinated else "",
            strategy=self._strategy if self._coordinated else "",
            state=state,
            generation=group.generation,
            members=members,
            partitions=rows,
            problem="" if self._is_traced else BELIEVED,
        )

    def _owners(self, group: str) -> dict[TopicPartition, str]:
        """Whom the authority names; if nobody traced it, who believes to own, in the authority's words."""
        if self._is_traced:
            named = self._ownership.named
            return {TopicPartition(*key[1:]): each.owner for key, each in named.items() if key.group == group}
        return {
            TopicPartition(*key[1:]): unit.member if self._coordinated else f"{unit.member}-{unit.stream}"
            for key, units in self._ownership.believed.items()
            if key.group == group
            for unit in sorted(units)
        }

    def _row(self, tp: TopicPartition, owner: str, offset: int | None) -> PartitionRow:
        return PartitionRow(
            partition=tp,
            current=offset,
            end=self._ends.get(tp),
            owner=owner,
            client=self._processes.get(owner, ""),
        )

    def _member(self, member: str, owners: Mapping[TopicPartition, str]) -> MemberRow:
        owned = tuple(sorted(tp for tp, owner in owners.items() if self._member_of(owner) == member))
        return MemberRow(member=member, client=self._processes.get(member, ""), owned=owned)

    def _member_of(self, owner: str) -> str:
        """In ZooKeeper a thread of the member owns."""
        return owner if self._coordinated else owner.rpartition("-")[0]


def _partition(event: Mapping[str, Any]) -> TopicPartition:
    return TopicPartition(event["topic"], event["partition"])
