"""One group of the `consumer` design: what its records say, and what follows from them.

The state changes only by `apply`, one record at a time, in any order: when a request is decided, and when the log is
replayed. `stored` is its inverse.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from coordinator.groups.consumer.member import NEVER_RECONCILED, ConsumerMember
from coordinator.groups.consumer.states import ConsumerGroupState, ConsumerMemberState
from coordinator.groups.consumer_records import (
    ClientKey,
    ClientRecord,
    ConsumerKey,
    ConsumerRecord,
    CurrentKey,
    CurrentRecord,
    EpochKey,
    EpochRecord,
    RegexKey,
    RegexRecord,
    TargetEpochKey,
    TargetEpochRecord,
    TargetKey,
    TargetRecord,
)
from coordinator.groups.partitions import NONE, Partitions, each
from kernel.assignors.hash_order import texts_in_hash_order

if TYPE_CHECKING:
    from coordinator.groups.classic.member import SessionTimer
    from coordinator.groups.consumer.conversion import Conversion
    from coordinator.groups.consumer.member import Subscription
    from coordinator.groups.consumer.target_table import TargetTable
    from coordinator.groups.consumer_records import ConsumerChange
    from coordinator.groups.effects import TimerKey
    from coordinator.groups.partitions import TopicId


_NO_VOTES = frozenset({None})
_STATES = frozenset(ConsumerMemberState)
Value = TypeVar("Value")


@dataclass(slots=True, eq=False)
class Batch:
    """Records that are applied and stored together, and what they replaced."""

    changes: list[ConsumerChange] = field(default_factory=list)
    before: list[ConsumerChange] = field(default_factory=list)
    conversion: Conversion | None = None  #: that is stored with them
    is_undone: bool = False


@dataclass(slots=True)
class ConsumerGroup:
    """`epoch` grows with every reason for a new target, `target_epoch` when the target is computed.

    A partition has one owner at most: the member to which it is assigned, or which has not given it up yet.
    """

    id: str
    epoch: int = 0
    metadata_hash: int = 0
    target_epoch: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)  #: instance id -> member id
    targets: dict[str, Partitions] = field(default_factory=dict)  #: by member id
    owners: dict[tuple[TopicId, int], str] = field(default_factory=dict)  #: member ids
    regexes: dict[str, RegexRecord] = field(default_factory=dict)

    # What follows from these, so that no request looks at all members.
    subscriptions: dict[Subscription, int] = field(default_factory=dict, init=False)  #: how many members have each
    regex_uses: dict[str, int] = field(default_factory=dict, init=False)  #: by how many each expression is used
    votes: dict[str | None, int] = field(default_factory=dict, init=False)  #: preferred assignors, and by how many
    table: TargetTable | None = field(default=None, init=False, compare=False, repr=False)
    _is_alike: bool | None = field(default=None, init=False, compare=False, repr=False)

    # Soft state, lost with the coordinator.
    sessions: dict[str, SessionTimer] = field(default_factory=dict)
    revocations: dict[str, int] = field(default_factory=dict)  #: members with a rebalance timer, and their epochs
    deadlines: set[TimerKey] = field(default_factory=set)  #: for members of the classic protocol to rejoin or sync
    topics_due_ms: int = 0  #: when the topics have to be looked at again; 0 at once
    topics_view: object = None  #: as they were looked at last
    seen_hash: int | None = None  #: of the topics, if the group has changed what it subscribes to within its epoch
    is_searching: bool = False  #: for topics that match regular expressions
    search_failed_wall_ms: int = 0  #: when a search failed last
    batches: list[Batch] = field(default_factory=list)  #: not durable yet, oldest first
    standing: tuple[ConsumerGroupState, int] | None = None  #: state and epoch as traced last
    topic_names: dict[TopicId, str] = field(default_factory=dict)  #: for the trace

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        reconciled = all(member.is_at(self.target_epoch) for member in self.members.values())
        return ConsumerGroupState.STABLE if reconciled else ConsumerGroupState.RECONCILING

    def is_settled_at(self, epoch: int) -> bool:
        """Whether the group has its target of this epoch, and nothing is being stored or may have to be searched."""
        return self.epoch == self.target_epoch == epoch and not self.batches and not self.regex_uses

    def is_free(self, topic: TopicId, number: int, *, mine: str | None = None) -> bool:
        """Whether no member has a partition, or only `mine`: that one may be about to give it up (KAFKA-19449)."""
        return self.owners.get((topic, number)) in (None, mine)

    def target_of(self, member_id: str) -> Partitions:
        return self.targets.get(member_id, NONE)

    def look_again(self) -> None:
        """Something was taken back: a change of the topics may have been among it."""
        self.topics_due_ms, self.seen_hash = 0, None

    def names_of(self, subscription: Subscription) -> frozenset[str]:
        """The names of the topics of a subscription, those that its regular expression matches included."""
        matched = self.regexes.get(subscription.regex)
        return subscription.topics if matched is None else subscription.topics | frozenset(matched.topics)

    def subscribed(self) -> frozenset[str]:
        """The names of all members' topics."""
        return frozenset().union(*map(self.names_of, self.subscriptions))

    @property
    def is_alike(self) -> bool:
        """Whether Kafka takes all members for subscribed alike: as it found when a member came, changed or went last.

        An expression that is found or forgotten afterwards does not make it count again.
        """
        if self._is_alike is None:
            self._is_alike = self.counts_alike()
        return self._is_alike

    def counts_alike(self) -> bool:
        """ConsumerGroup.subscriptionType of 4.1.1: it counts names and expressions, not what they come to.

        So two expressions that match the same topics differ, and so does an expression beside names, even if all
        members have both.
        """
        if len(self.subscriptions) > 1:
            return False
        matched = [topic for record in self.regexes.values() for topic in record.topics]
        for topics, regex in self.subscriptions:
            return not topics and len(matched) == len(set(matched)) if regex else topics.issuperset(matched)
        return not matched

    def assignor(self, known: tuple[str, ...], asking: ConsumerMember | None = None) -> str:
        """The one that most members prefer; else the broker's first.

        In case of a tie it is the first in hash order; for a heartbeat it is the one that only the `asking` member
        prefers: Kafka takes its former vote out and puts the present one in front (HashMap.compute).
        """
        if self.votes.keys() <= _NO_VOTES:
            return known[0]
        votes = {name: count for name, count in self.votes.items() if name is not None}
        in_order = texts_in_hash_order(votes)
        if asking is not None and asking.assignor is not None and votes[asking.assignor] == 1:
            in_order.insert(0, asking.assignor)
        return max(in_order, key=votes.__getitem__, default=known[0])

    def committed(self) -> ConsumerGroup:
        """The group as far as it is durable: itself, or a copy without the records that are on their way to the log."""
        if not self.batches:
            return self
        copy = ConsumerGroup(
            self.id,
            self.epoch,
            self.metadata_hash,
            self.target_epoch,
            dict(self.members),
            dict(self.instances),
            dict(self.targets),
            dict(self.owners),
            dict(self.regexes),
        )
        copy.subscriptions, copy.regex_uses = dict(self.subscriptions), dict(self.regex_uses)
        copy.votes = dict(self.votes)
        for batch in reversed(self.batches):
            if not batch.is_undone:
                for key, value in reversed(batch.before):
                    copy.apply(key, value)
        return copy

    # -- hard state -------------------------------------------------------------------------------------------------

    def apply(self, key: ConsumerKey, value: ConsumerRecord | None) -> None:
        """Take over one record, or its deletion."""
        match key, value:
            case EpochKey(), EpochRecord() | None:
                self.epoch, self.metadata_hash = value or (0, 0)
            case TargetEpochKey(), TargetEpochRecord() | None:
                (self.target_epoch,) = value or (0,)
            case ClientKey(_, member_id), ClientRecord():
                self._apply_client(self._member(member_id), value)
            case ClientKey(_, member_id), None:
                self._forget(member_id)
            case TargetKey(_, member_id), TargetRecord() | None:
                self._apply_target(member_id, value)
            case CurrentKey(_, member_id), CurrentRecord() | None:
                self._apply_current(member_id, value)
            case RegexKey(_, regex), RegexRecord() | None:
                self._apply_regex(regex, value)
            case _:
                raise AssertionError(f"{key} has no value like {value}")

    def stored(self, key: ConsumerKey) -> ConsumerRecord | None:
        """The record that the log has under `key`."""
        match key:
            case EpochKey():
                return EpochRecord(self.epoch, self.metadata_hash) if self.epoch else None
            case TargetEpochKey():
                return TargetEpochRecord(self.target_epoch) if self.target_epoch else None
            case ClientKey(_, member_id):
                member = self.members.get(member_id)
                return None if member is None else client_record(member)
            case TargetKey(_, member_id):
                target = self.targets.get(member_id)
                return None if target is None else TargetRecord(target)
            case CurrentKey(_, member_id):
                member = self.members.get(member_id)
                return None if member is None or member.previous_epoch == NEVER_RECONCILED else current_record(member)
            case RegexKey(_, regex):
                return self.regexes.get(regex)

    def _member(self, member_id: str) -> ConsumerMember:
        return self.members.get(member_id) or ConsumerMember(id=member_id)

    def _apply_client(self, member: ConsumerMember, record: ClientRecord) -> None:
        described = member._replace(
            instance_id=record.instance_id,
            rack_id=record.rack_id,
            client_id=record.client_id,
            client_host=record.client_host,
            topics=frozenset(record.topics),
            topic_regex=record.topic_regex,
            rebalance_timeout_ms=record.rebalance_timeout_ms,
            assignor=record.assignor,
            classic=record.classic,
        )
        self._put(described)
        if record.instance_id is not None:
            self.instances[record.instance_id] = member.id

    def _apply_regex(self, regex: str, record: RegexRecord | None) -> None:
        self._is_alike = self.is_alike
        if record is None:
            self.regexes.pop(regex, None)
        else:
            self.regexes[regex] = record

    def _put(self, member: ConsumerMember) -> None:
        """Add or replace a member."""
        self._is_alike = None
        former = self.members.get(member.id)
        self.members[member.id] = member
        if former is None or former.assignor != member.assignor or former.subscription != member.subscription:
            self._count(member, 1)
            if former is not None:
                self._count(former, -1)
            if self.table is not None:
                self.table.subscribe(member.id, member.subscription, self.targets.get(member.id))

    def _count(self, member: ConsumerMember, by: int) -> None:
        _add(self.subscriptions, member.subscription, by)
        if member.topic_regex:
            _add(self.regex_uses, member.topic_regex, by)
        _add(self.votes, member.assignor, by)

    def _apply_target(self, member_id: str, record: TargetRecord | None) -> None:
        former, target = self.targets.get(member_id), None if record is None else record.partitions
        if target is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = target
        if self.table is not None:
            self.table.place(member_id, former, target)

    def _forget(self, member_id: str) -> None:
        self._apply_current(member_id, None)
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._is_alike = None
        self._count(member, -1)
        if self.table is not None:
            self.table.forget(member_id, self.targets.get(member_id))
        if member.instance_id is not None and self.instances.get(member.instance_id) == member_id:
            del self.instances[member.instance_id]

    def _apply_current(self, member_id: str, record: CurrentRecord | None) -> None:
        former = self.members.get(member_id)
        if former is None and record is None:
            return
        epoch, previous_epoch, stored, assigned, revoking = record or current_record(ConsumerMember(id=member_id))
        state = ConsumerMemberState(stored) if stored in _STATES else ConsumerMemberState.UNKNOWN
        self.place(
            self._member(member_id)._replace(
                epoch=epoch,
                previous_epoch=previous_epoch,
                state=state,
                assigned=assigned,
                revoking=revoking,
            )
        )

    def place(self, member: ConsumerMember) -> None:
        """As `apply` of where a member is, which has just been decided."""
        former = self._member(member.id)
        self._put(member)
        if (member.assigned, member.revoking) == (former.assigned, former.revoking):
            return
        for place in (*each(former.assigned), *each(former.revoking)):
            if self.owners.get(place) == member.id:
                del self.owners[place]
        for place in (*each(member.assigned), *each(member.revoking)):
            self.owners[place] = member.id


def _add(counts: dict[Value, int], value: Value, by: int) -> None:
    counts[value] = counts.get(value, 0) + by
    if not counts[value]:
        del counts[value]


def client_record(member: ConsumerMember) -> ClientRecord:
    return ClientRecord(
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        tuple(sorted(member.topics)),
        member.topic_regex,
        member.rebalance_timeout_ms,
        member.assignor,
        member.classic,
    )


def current_record(member: ConsumerMember) -> CurrentRecord:
    return CurrentRecord(member.epoch, member.previous_epoch, member.state, member.assigned, member.revoking)
