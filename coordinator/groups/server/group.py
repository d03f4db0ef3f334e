"""One group of the server design: its data, and the conditions that drive its rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from coordinator.groups.authority import Owner
from coordinator.groups.records import ServerRecord
from coordinator.groups.server.states import TRANSITIONS, ServerGroupState, ServerGroupTrigger
from coordinator.protocol.server.commands import ANY_STRATEGY, NO_GENERATION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from coordinator.groups.effects import Decide, Turn
    from coordinator.groups.records import ServerMember
    from kernel.assignors.subscription import Assignor


class AssignmentSettings(NamedTuple):
    """The broker's settings for assignment; they change only with a restart."""

    strategy: str  #: group.server.assignment.strategy
    assign: Assignor  #: that strategy; a plugged-in one may raise anything and take any time
    known: frozenset[str]  #: the names of all strategies of this broker
    rebalance_timeout_ms: int  #: group.server.rebalance.timeout.ms
    retry_ms: int = 1_000  #: before retrying to assign or store


NEVER_ASSIGNED = ServerRecord(0, ANY_STRATEGY, (), ())


@dataclass(slots=True)
class GroupContext:
    """What a group's rounds need besides its state."""

    settings: AssignmentSettings
    size_of: Callable[[str], int]  #: a topic's number of partitions in the broker's view, 0 if it does not exist
    offset_of: Callable[[str, str, int], int]  #: committed for (group, topic, partition), or NO_OFFSET
    tidy: Callable[[ServerGroup, Turn], None]  #: forgets what a group no longer needs


@dataclass(slots=True)
class LastAwait:
    """A member's last AwaitCommand. `token` is None once it is answered."""

    token: int | None
    runs: int
    client_id: str
    client_host: str


@dataclass(slots=True)
class ServerGroup:
    """Hard state is `record`; a successor rebuilds everything else.

    `running` are the members that may run the stored generation: they were commanded to start it, or may have been
    before it was loaded. A member that still runs an older generation was dropped, and is commanded to stop when it
    asks.
    """

    id: str
    state: ServerGroupState = ServerGroupState.EMPTY
    record: ServerRecord = NEVER_ASSIGNED
    members: dict[str, ServerMember] = field(default_factory=dict)  #: of the record, by id
    deciding: Decide | None = None  #: the strategy is at work on the next generation
    proposal: ServerRecord | None = None  #: being stored
    empty_since_ms: int = 0  #: monotonic; since loading at the earliest
    retrying: bool = False  #: assigning or storing failed; the round's timer retries
    seen: dict[str, tuple[str, ...]] | None = None  #: {id: topics} in ZooKeeper; None: not read yet
    watched: bool = False
    last_awaits: dict[str, LastAwait] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)  #: registered, but did not respond in time
    running: set[str] = field(default_factory=set)
    started: set[str] = field(default_factory=set)  #: confirmed by an AwaitCommand in the stored generation
    resending: set[str] = field(default_factory=set)  #: waiting for a write that allows their start

    @classmethod
    def from_record(cls, group_id: str, record: ServerRecord) -> ServerGroup:
        """As loaded: every assigned member may be running."""
        group = cls(group_id, ServerGroupState.STABLE if record.members else ServerGroupState.EMPTY)
        group.take(record)
        group.running.update(group.members)
        return group

    def take(self, record: ServerRecord) -> None:
        """Enter this generation; no member runs it yet."""
        self.record = record
        self.members = {member.member_id: member for member in record.members}
        self.running, self.started = set(), set()

    def move(self, trigger: ServerGroupTrigger, turn: Turn) -> None:
        """Take a transition of the table. The only place where the state changes."""
        target = TRANSITIONS[self.state].get(trigger)
        assert target is not None, f"group {self.id!r} cannot be moved from {self.state.value} by {trigger.name}"
        self.state = target
        turn.trace(
            "group_changed",
            cause=f"generation:{self.generation}",
            group=self.id,
            state=target.value,
            generation=self.generation,
            members=len(self.record.members),
            reason=trigger.value,
        )

    def owners(self) -> Iterator[Owner]:
        """The owners that the stored generation names."""
        for member in self.record.members:
            for topic, partition in member.partitions:
                yield Owner(topic, partition, member.member_id)

    @property
    def generation(self) -> int:
        """The stored one; 0 before the first."""
        return self.record.generation

    @property
    def eligible(self) -> dict[str, tuple[str, ...]]:
        """The members of the next generation, by what ZooKeeper shows: {id: topics}."""
        return {member_id: topics for member_id, topics in (self.seen or {}).items() if member_id not in self.dropped}

    def is_eligible(self, member_id: str) -> bool:
        return member_id not in self.dropped and self.seen is not None and member_id in self.seen

    @property
    def is_stopping(self) -> bool:
        """Whether members are being stopped and the next generation is undecided."""
        return self.state is ServerGroupState.STOPPING and self.deciding is None and self.proposal is None

    @property
    def has_stopped(self) -> bool:
        """Whether all members of the next generation have stopped this one."""
        return not any(self.is_eligible(member_id) for member_id in self.running)

    @property
    def has_started(self) -> bool:
        """Whether all members have confirmed the stored generation."""
        return len(self.started) == len(self.members)

    @property
    def late(self) -> list[str]:
        """The members still expected to stop, or to start."""
        awaited = self.running if self.state is ServerGroupState.STOPPING else self.members.keys() - self.started
        return sorted(filter(self.is_eligible, awaited))

    @property
    def in_use(self) -> bool:
        """Whether the group id belongs to this design now: it has members, or a client that wants to be one."""
        if self.state is ServerGroupState.DEAD:
            return False
        parked = any(last.token is not None for last in self.last_awaits.values())
        return parked or self.state is not ServerGroupState.EMPTY or bool(self.seen)

    def is_waiting(self, member_id: str) -> bool:
        """Whether an AwaitCommand of the member waits."""
        last = self.last_awaits.get(member_id)
        return last is not None and last.token is not None

    def forget_strangers(self) -> None:
        """Forget what non-members ran, unless they still ask."""
        for member_id in [m for m in self.last_awaits if m not in (self.seen or {}) and m not in self.members]:
            if not self.is_waiting(member_id):
                del self.last_awaits[member_id]

    def note_running(self, member_id: str, runs: int) -> None:
        """Note which generation a member says it runs."""
        if runs == self.generation and member_id in self.members:
            self.running.add(member_id)
            self.started.add(member_id)
        else:
            self.running.discard(member_id)
            self.started.discard(member_id)
        if runs == NO_GENERATION:
            self.dropped.discard(member_id)


def sizes_of(subscribed: Mapping[str, tuple[str, ...]], size_of: Callable[[str], int]) -> tuple[tuple[str, int], ...]:
    """The existing topics of {member: topics}, with their partition counts."""
    topics = sorted({topic for of_member in subscribed.values() for topic in of_member})
    return tuple((topic, size) for topic in topics if (size := size_of(topic)) > 0)


def reason_for_a_round(group: ServerGroup, context: GroupContext) -> ServerGroupTrigger | None:
    """What makes the stored assignment outdated. None: nothing, or ZooKeeper has not been read yet."""
    if group.seen is None:
        return None
    eligible = group.eligible
    subscribed = {member_id: member.topics for member_id, member in group.members.items()}
    if eligible.keys() != subscribed.keys():
        return ServerGroupTrigger.MEMBERS_CHANGED
    if not eligible:
        return None
    if eligible != subscribed:
        return ServerGroupTrigger.SUBSCRIPTIONS_CHANGED
    if sizes_of(eligible, context.size_of) != group.record.sizes:
        return ServerGroupTrigger.PARTITIONS_CHANGED
    return None if group.record.strategy == context.settings.strategy else ServerGroupTrigger.STRATEGY_CHANGED
