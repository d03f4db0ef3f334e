"""A classic group: its members, its generation, and the counters that keep every join at O(1).

`Group` keeps its data consistent; the request modules decide what happens when. Members are always iterated in the
order of admission (in Kafka, in hash map order), so that the leader's successor and the order of answers are defined.
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from coordinator.groups.classic.member import Member, SessionTimer
from coordinator.groups.classic.states import REBALANCEABLE, TRANSITIONS, GroupState, GroupTrigger
from coordinator.groups.errors import Error
from coordinator.groups.records import GroupRecord, MemberRecord, Profile
from coordinator.groups.requests import Protocol
from coordinator.protocol import consumer_protocol
from kernel.assignors.hash_order import texts_in_hash_order

if TYPE_CHECKING:
    from coordinator.groups.answers import JoinAnswer
    from coordinator.groups.authority import Owner
    from coordinator.groups.effects import Turn
    from coordinator.groups.requests import Join

Counted = TypeVar("Counted", str, tuple[str, ...])


@dataclass(slots=True)
class InitialDelay:
    """The current part of group.initial.rebalance.delay.ms (KIP-134), and the time left for further parts."""

    delay_ms: int
    remaining_ms: int
    member_added: bool = False  #: in this part, so that another part follows


@dataclass
class Subscribed:
    """One generation's topics. Decoded on first use, which is rare, each distinct subscription once."""

    profiles: tuple[Profile, ...]

    @functools.cached_property
    def topics(self) -> frozenset[str] | None:
        """None if a subscription cannot be decoded."""
        topics: set[str] = set()
        for subscription in {profile.subscription for profile in self.profiles}:
            try:
                topics.update(consumer_protocol.decode_subscription(subscription).topics)
            except consumer_protocol.MalformedMetadata:
                return None
        return frozenset(topics)


@dataclass(slots=True)
class Group:
    """One group. Parked requests, pending ids and timers are soft state, lost with the coordinator."""

    id: str
    state: GroupState = GroupState.EMPTY
    state_wall_ms: int = 0
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)  #: instance id -> member id (KIP-345)
    pending: dict[str, SessionTimer] = field(default_factory=dict)  #: ids handed out with MEMBER_ID_REQUIRED
    unsynced: dict[str, None] = field(default_factory=dict)  #: members without a SyncGroup in this generation, as a set
    joined: int = 0  #: members with a parked JoinGroup
    supporters: Counter[str] = field(default_factory=Counter)  #: protocol name -> members that support it
    #: Protocol names in order of preference -> members with that order. Usually there is only one.
    preferences: Counter[tuple[str, ...]] = field(default_factory=Counter)
    size: int = 0  #: of all members, in bytes (`Join.size`)
    initial_delay: InitialDelay | None = None
    subscribed: Subscribed | None = None  #: in this generation; None for groups that are not consumers'
    named: list[Owner] = field(default_factory=list)  #: as traced

    # -- moving -----------------------------------------------------------------------------------------------

    def move(self, trigger: GroupTrigger, turn: Turn) -> None:
        """Take a transition of the table. The only place where the state changes."""
        target = TRANSITIONS[self.state].get(trigger)
        assert target is not None, f"group {self.id!r} cannot be moved from {self.state.value} by {trigger.name}"
        self.state = target
        self.state_wall_ms = turn.now.wall_ms
        turn.trace(
            "group_changed",
            cause=f"generation:{self.generation}",
            group=self.id,
            state=target.value,
            generation=self.generation,
            members=len(self.members),
            reason=trigger.value,
        )

    @property
    def may_rebalance(self) -> bool:
        return self.state in REBALANCEABLE

    @property
    def all_joined(self) -> bool:
        """Whether every member has a parked JoinGroup, and no pending id is outstanding (KAFKA-7909)."""
        return self.joined == len(self.members) and not self.pending

    # -- members ----------------------------------------------------------------------------------------------

    def add(self, member: Member, protocol_type: str, token: int) -> None:
        """Admit a member and park its JoinGroup. The first member leads and sets the protocol type."""
        assert member.id not in self.members, f"member {member.id} is in group {self.id!r} already"
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.id
        self.pending.pop(member.id, None)
        self.members[member.id] = member
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.id
        self._count(member, +1)
        # Made now, one by one, rather than for thousands of members when the generation begins.
        member.profile(self.protocol_name or member.protocols[0].name)
        self.park_join(member, token)

    def admit(self, member: Member) -> None:
        """Take over a member that has joined before, here or in a group of another type. The first one leads."""
        self.members[member.id] = member
        if self.leader is None:
            self.leader = member.id
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.id
        self._count(member, +1)

    def remove(self, member_id: str) -> Member | None:
        """Remove a member or a pending id. The oldest member succeeds a leader."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member, -1)
            if member.parked_join is not None:
                self.joined -= 1
            if member.instance_id is not None:
                self.instances.pop(member.instance_id, None)
        if member_id == self.leader:
            self.leader = next(iter(self.members), None)
        self.pending.pop(member_id, None)
        self.unsynced.pop(member_id, None)
        return member

    def update(self, member: Member, request: Join) -> None:
        """Update a rejoining member's protocols and timeouts."""
        self._set_terms(member, request)

    def take_back(self, member: Member, former: Member) -> None:
        """Undo `update` on a member whose replacement could not be stored."""
        self._set_terms(member, former)

    def _set_terms(self, member: Member, source: Join | Member) -> None:
        """Most members rejoin unchanged; then the counters stay as they are."""
        terms = (source.rebalance_timeout_ms, source.session_timeout_ms, source.protocols)
        if terms != (member.rebalance_timeout_ms, member.session_timeout_ms, member.protocols):
            self._count(member, -1)
            member.set_terms(*terms)
            self._count(member, +1)

    def replace(self, former: Member, member_id: str) -> Member:
        """Replace a static member, leadership included, by a new member id."""
        assert former.instance_id is not None, f"member {former.id} has no instance id"
        successor = Member(
            id=member_id,
            instance_id=former.instance_id,
            client_id=former.client_id,
            client_host=former.client_host,
            rebalance_timeout_ms=former.rebalance_timeout_ms,
            session_timeout_ms=former.session_timeout_ms,
            protocols=former.protocols,
            assignment=former.assignment,
        )
        if former.parked_join is not None:
            self.joined -= 1
        del self.members[former.id]
        self.members[member_id] = successor
        self.instances[former.instance_id] = member_id
        if self.leader == former.id:
            self.leader = member_id
        return successor

    def park_join(self, member: Member, token: int) -> None:
        if member.parked_join is None:
            self.joined += 1
        member.parked_join = token

    def answer_join(self, member: Member, answer: JoinAnswer, turn: Turn) -> None:
        """Answer the member's parked JoinGroup, if any."""
        if member.parked_join is not None:
            turn.reply(member.parked_join, answer)
            member.parked_join = None
            self.joined -= 1

    def refusal(self, member_id: str, instance_id: str | None) -> Error | None:
        """The error for a request of this member, if any (KIP-345: the instance id is checked first)."""
        if instance_id is not None:
            known = self.instances.get(instance_id)
            if known is None:
                return Error.UNKNOWN_MEMBER_ID
            if known != member_id:
                return Error.FENCED_INSTANCE_ID
        return None if member_id in self.members else Error.UNKNOWN_MEMBER_ID

    def refusal_at(self, generation: int, member_id: str, instance_id: str | None) -> Error | None:
        """As `refusal`, and then whether the generation is the current one."""
        refused = self.refusal(member_id, instance_id)
        if refused is None and generation != self.generation:
            return Error.ILLEGAL_GENERATION
        return refused

    def rebalance_timeout_ms(self) -> int:
        """The longest of all members; computed once per rebalance."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # -- protocols --------------------------------------------------------------------------------------------

    def accepts(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Whether a joining member is compatible: the same type, and a protocol that all members support."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        all_members = len(self.members)
        return self.protocol_type == protocol_type and any(
            self.supporters[name] == all_members for name, _ in protocols
        )

    def elected_protocol(self) -> str:
        """Each member votes for its first protocol that all members support; the most votes win.

        A tie goes to the first in the order of Kafka's HashMap: with one vote each `range` beats `roundrobin`.
        """
        all_members = len(self.members)
        votes: Counter[str] = Counter()
        for names, voters in self.preferences.items():
            votes[next(name for name in names if self.supporters[name] == all_members)] += voters
        return max(texts_in_hash_order(votes), key=votes.__getitem__)

    def begin_generation(self) -> None:
        """Set the next generation's number, protocol and subscriptions. The caller moves the state."""
        self.generation += 1
        self.choose_protocol()
        self.unsynced.clear()

    def choose_protocol(self) -> None:
        self.protocol_name = self.elected_protocol() if self.members else None
        self._know_subscriptions()

    def profiles(self) -> tuple[Profile, ...]:
        """The members of this generation."""
        name = self.protocol_name
        return tuple([member.profile(name) for member in self.members.values()])

    def _know_subscriptions(self) -> None:
        is_consumers = self.protocol_type == consumer_protocol.CONSUMER_PROTOCOL_TYPE
        self.subscribed = Subscribed(self.profiles()) if is_consumers else None

    @property
    def topics(self) -> frozenset[str] | None:
        """The topics this generation is subscribed to; None if they cannot be decoded."""
        return None if self.subscribed is None else self.subscribed.topics

    def _count(self, member: Member, step: int) -> None:
        self.size += step * member.size
        names = tuple(dict.fromkeys(protocol.name for protocol in member.protocols))
        _add(self.preferences, names, step)
        for name in names:
            _add(self.supporters, name, step)

    # -- hard state -------------------------------------------------------------------------------------------

    def record(self, assignments: dict[str, bytes], wall_ms: int) -> GroupRecord:
        """The group's record with `assignments`, by member id."""
        return GroupRecord(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol_name=self.protocol_name,
            leader=self.leader,
            state_wall_ms=wall_ms,
            members=tuple([MemberRecord(p, assignments.get(p.member_id, b"")) for p in self.profiles()]),
        )

    def apply(self, record: GroupRecord) -> None:
        """Apply a record: when it has become durable, or to a new group on load."""
        self.generation = record.generation
        self.protocol_type = record.protocol_type or None
        self.protocol_name = record.protocol_name
        self.leader = record.leader
        for profile, assignment in record.members:
            member = self.members.get(profile.member_id)
            if member is None:
                self._restore(profile, assignment)
            else:
                member.assignment = assignment

    @classmethod
    def from_record(cls, group_id: str, record: GroupRecord) -> Group:
        """A group as last stored: Stable, or Empty if the record has no members."""
        group = cls(group_id)
        group.apply(record)
        group._know_subscriptions()
        group.state = GroupState.STABLE if group.members else GroupState.EMPTY
        group.state_wall_ms = record.state_wall_ms
        return group

    def _restore(self, profile: Profile, assignment: bytes) -> None:
        member = Member(
            id=profile.member_id,
            instance_id=profile.instance_id,
            client_id=profile.client_id,
            client_host=profile.client_host,
            rebalance_timeout_ms=profile.rebalance_timeout_ms,
            session_timeout_ms=profile.session_timeout_ms,
            protocols=(Protocol(self.protocol_name or "", profile.subscription),),
            assignment=assignment,
        )
        if self.protocol_name is not None:
            member.known_as(self.protocol_name, profile)
        self.admit(member)


def _add(counter: Counter[Counted], what: Counted, step: int) -> None:
    counter[what] += step
    if not counter[what]:
        del counter[what]
