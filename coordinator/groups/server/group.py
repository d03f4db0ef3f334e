"""What the coordinator knows of one group of the server design, and the questions that decide its rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from coordinator.groups.records import ServerRecord
from coordinator.groups.server.states import TRANSITIONS, State, Trigger
from coordinator.protocol.server_commands import ANY_STRATEGY, NO_GENERATION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from coordinator.groups.outcome import Turn
    from coordinator.groups.records import ServerMember
    from coordinator.groups.server.requests import Decide
    from kernel.assignors.subscription import Assignor


class Rules(NamedTuple):
    """The broker's settings that the machine obeys; they change only with a restart."""

    strategy: str  #: group.server.assignment.strategy
    assign: Assignor  #: that strategy; one that was plugged in may raise anything, and take any time
    known: frozenset[str]  #: names of all strategies that this broker has
    rebalance_timeout_ms: int  #: group.server.rebalance.timeout.ms
    retry_ms: int = 1_000  #: between tries to store an assignment


NEVER_ASSIGNED = ServerRecord(0, ANY_STRATEGY, (), ())


@dataclass(slots=True)
class Surroundings:
    """What decides together with a group's own state."""

    rules: Rules
    #: How many partitions a topic has in the broker's view of the cluster; 0: there is none of that name.
    size_of: Callable[[str], int]
    #: The committed offset of (group, topic, partition), NO_OFFSET where there is none.
    offset_of: Callable[[str, str, int], int]


@dataclass(slots=True)
class Asking:
    """A member's last question. `token` is None once it is answered."""

    token: int | None
    runs: int
    client_id: str
    client_host: str


@dataclass(slots=True)
class ServerGroup:
    """Hard state is `record`; everything else is learnt anew by whoever takes over.

    Who may run what: `running` are the members that may run the stored generation, because they were told to start it
    (or it was loaded, and they may have been). What a member runs of older generations is its own affair: it was
    dropped then, and is told to stop when it asks.
    """

    id: str
    state: State = State.EMPTY
    record: ServerRecord = NEVER_ASSIGNED
    members: dict[str, ServerMember] = field(default_factory=dict)  #: of the record, by id
    deciding: Decide | None = None  #: the strategy is at work on the next generation
    proposal: ServerRecord | None = None  #: on its way to the log
    empty_since_ms: int = 0  #: monotonic, and as far as this coordinator knows
    retrying: bool = False  #: assigning or storing has failed; the round's timer tries again
    seen: dict[str, tuple[str, ...]] | None = None  #: {id: topics} in ZooKeeper; None: not read yet
    watched: bool = False
    asking: dict[str, Asking] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)  #: in the ids, but not heard of in time
    running: set[str] = field(default_factory=set)
    started: set[str] = field(default_factory=set)  #: of the stored generation: said so themselves
    resending: set[str] = field(default_factory=set)  #: are told the start again once the storage has agreed

    @classmethod
    def from_record(cls, group_id: str, record: ServerRecord) -> ServerGroup:
        """As loaded: whoever is in the assignment may have been started."""
        group = cls(group_id, State.STABLE if record.members else State.EMPTY)
        group.take(record)
        group.running.update(group.members)
        return group

    def take(self, record: ServerRecord) -> None:
        """This generation counts from now on, and nobody runs it yet."""
        self.record = record
        self.members = {member.member_id: member for member in record.members}
        self.running, self.started = set(), set()

    def move(self, trigger: Trigger, turn: Turn) -> None:
        """Take the transition of the table; the only place where a state changes."""
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

    @property
    def generation(self) -> int:
        """The one that is stored; 0 before the first."""
        return self.record.generation

    @property
    def eligible(self) -> dict[str, tuple[str, ...]]:
        """Who takes part in the next generation, by what ZooKeeper says: {id: topics}."""
        return {member_id: topics for member_id, topics in (self.seen or {}).items() if member_id not in self.dropped}

    def is_eligible(self, member_id: str) -> bool:
        return member_id not in self.dropped and self.seen is not None and member_id in self.seen

    @property
    def is_stopping(self) -> bool:
        """Whether the next generation is still to be decided."""
        return self.state is State.STOPPING and self.deciding is None and self.proposal is None

    @property
    def has_stopped(self) -> bool:
        """Whether everybody who takes part in the next generation has acknowledged the stop of this one."""
        return not any(self.is_eligible(member_id) for member_id in self.running)

    @property
    def has_started(self) -> bool:
        """Whether everybody has come back with the stored generation."""
        return len(self.started) == len(self.members)

    @property
    def late(self) -> list[str]:
        """Who is waited for: to stop, or to start."""
        awaited = self.running if self.state is State.STOPPING else self.members.keys() - self.started
        return sorted(filter(self.is_eligible, awaited))

    @property
    def in_use(self) -> bool:
        """Whether the group id belongs to this design now: somebody is a member, or wants to be one."""
        if self.state is State.DEAD:
            return False
        parked = any(asking.token is not None for asking in self.asking.values())
        return parked or self.state is not State.EMPTY or bool(self.seen)

    def heard(self, member_id: str, runs: int) -> None:
        """A member says what it runs."""
        if runs == self.generation and member_id in self.members:
            self.running.add(member_id)
            self.started.add(member_id)
        else:
            self.running.discard(member_id)
            self.started.discard(member_id)
        if runs == NO_GENERATION:
            self.dropped.discard(member_id)


def sizes_of(subscribed: Mapping[str, tuple[str, ...]], size_of: Callable[[str], int]) -> tuple[tuple[str, int], ...]:
    """The topics of {member: topics} that exist, with the number of their partitions."""
    topics = sorted({topic for of_member in subscribed.values() for topic in of_member})
    return tuple((topic, size) for topic in topics if (size := size_of(topic)) > 0)


def reason_for_a_round(group: ServerGroup, around: Surroundings) -> Trigger | None:
    """What makes the stored assignment out of date; None: nothing, or ZooKeeper has not been read yet."""
    if group.seen is None:
        return None
    eligible = group.eligible
    subscribed = {member_id: member.topics for member_id, member in group.members.items()}
    if eligible.keys() != subscribed.keys():
        return Trigger.MEMBERS_CHANGED
    if not eligible:
        return None
    if eligible != subscribed:
        return Trigger.SUBSCRIPTIONS_CHANGED
    if sizes_of(eligible, around.size_of) != group.record.sizes:
        return Trigger.PARTITIONS_CHANGED
    return None if group.record.strategy == around.rules.strategy else Trigger.STRATEGY_CHANGED
