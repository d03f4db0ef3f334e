"""Several pure members and a small model of a classic coordinator, moved one step at a time by a test.

The model keeps no time: the test decides which member is declared dead and when a rebalance stops waiting. Answers,
callbacks and polls happen only when the test says so, so it can try every order.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from coordinator.membership.classic import effects, events
from coordinator.membership.classic.member import ALIVE, Member, MemberState
from coordinator.membership.classic.reactions import reaction
from coordinator.membership.classic.table import step
from coordinator.membership.effects import Effect, Emit, FindCoordinator, Identity, Revoke
from coordinator.membership.events import CoordinatorFound, Event, Polled, Resumed, Stopped
from kernel.assignors.cooperative_sticky import assign_cooperative_sticky
from kernel.assignors.sticky_data import encode_cooperative
from kernel.assignors.subscription import MemberSubscription
from kernel.values import TopicPartition
from tests.coordinator.membership.classic.membership import SETTINGS, partitions_of

SIZES = {"t": 5, "u": 2}
EVERYTHING = frozenset(TopicPartition(topic, n) for topic, size in SIZES.items() for n in range(size))
COOPERATIVE = replace(SETTINGS, cooperative=True)

Owned = frozenset[TopicPartition]


@dataclass
class Entry:
    """What the coordinator knows about a member."""

    client: int
    subscription: MemberSubscription
    join: int | None = None  #: stamp of a parked JoinGroup
    sync: int | None = None  #: stamp of a parked SyncGroup


@dataclass
class Client:
    """A member, and the responses and callbacks on their way to it."""

    member: Member
    answers: deque[Event] = field(default_factory=deque)
    callbacks: deque[Event] = field(default_factory=deque)
    taken: tuple[int, Owned] = (-1, frozenset())  #: generation and partitions of the last assignment taken over
    rounds: int = 0
    gave_up: Owned = frozenset()  #: since the last check


class World:
    """Clients by number, and the coordinator: `group` are the members it knows, `phase` is Kafka's state name."""

    def __init__(self) -> None:
        self.clients: list[Client] = []
        self.group: dict[str, Entry] = {}
        self.named: dict[str, int] = {}  #: ids handed out and not used yet
        self.phase = "Empty"
        self.generation = 0
        self.leader = ""
        self.gathered: dict[str, MemberSubscription] = {}  #: the subscriptions that this generation's leader receives
        self.decided: dict[str, list[TopicPartition]] = {}  #: by the assignor that ran last
        self.assignment: dict[str, list[TopicPartition]] = {}

    # -- what a test triggers -----------------------------------------------------------------------------------------

    def start(self, *topics: str) -> None:
        self.clients.append(Client(Member(settings=COOPERATIVE, topics=frozenset(topics or ("t",)))))

    def say(self, number: int, event: Event) -> None:
        client = self.clients[number]
        before = client.member
        client.member, wanted = step(before, event, 0)
        for effect in wanted:
            if isinstance(effect, Emit):
                self._hear(client, before, effect)
            else:
                self._perform(number, client, effect)
        self.check()

    def answer(self, number: int) -> None:
        """Deliver the next response."""
        if self.clients[number].answers:
            self.say(number, self.clients[number].answers.popleft())

    def callback(self, number: int) -> None:
        """Let the next callback return."""
        if self.clients[number].callbacks:
            self.say(number, self.clients[number].callbacks.popleft())

    def heartbeat(self, number: int) -> None:
        member = self.clients[number].member
        if member.state in ALIVE and member.identity is not None:
            error = self._fault(member.identity) or ("REBALANCE_IN_PROGRESS" if self.phase == "Preparing" else "")
            if error:
                self._refuse(number, "Heartbeat", error, member.stamp, at_once=True)

    def expel(self, number: int) -> None:
        """Expire its session at the coordinator; the member does not know."""
        self.remove(self.clients[number].member.member_id)

    def hurry(self) -> None:
        """The rebalance timeout expires."""
        if self.phase == "Preparing":
            for member_id in [member_id for member_id, entry in self.group.items() if entry.join is None]:
                del self.group[member_id]
            self._complete()

    def go_well(self, rounds: int = 40) -> None:
        """Answer everything, and let all members poll."""
        for _ in range(rounds):
            for number, client in enumerate(self.clients):
                while client.answers or client.callbacks:
                    self.answer(number)
                    self.callback(number)
                self.say(number, Polled())
                self.heartbeat(number)

    # -- invariants ---------------------------------------------------------------------------------------------------

    def known(self, client: Client) -> bool:
        """Whether the group still counts the client as a member, so its partitions are its own."""
        return client.member.member_id in self.group

    def check(self) -> None:
        seen: set[TopicPartition] = set()
        for client in self.clients:
            member = client.member
            assert member.identity is not None or member.owned == member.releasing, member
            if self.known(client):
                assert not seen & client.member.owned, [c.member for c in self.clients]
                seen |= client.member.owned

    def _hear(self, client: Client, before: Member, emitted: Emit) -> None:
        if emitted.kind == "partitions_revoked" and before.state not in (
            MemberState.CLOSING,
            MemberState.UNSUBSCRIBING,
        ):
            gone = partitions_of(emitted, "partitions")
            client.gave_up |= gone
            kept = before.assigned if before.state is MemberState.RELEASING else frozenset()
            assert not gone & kept
        if emitted.kind == "partitions_lost":
            assert (
                not self.known(client)
                or before.state in (MemberState.CLOSING, MemberState.UNSUBSCRIBING)
                or not before.topics
            )

    # -- effects ------------------------------------------------------------------------------------------------------

    def _perform(self, number: int, client: Client, effect: Effect) -> None:
        match effect:
            case FindCoordinator():
                client.answers.append(CoordinatorFound(1))
            case effects.SendJoin():
                self._join(number, client, effect)
            case effects.RunAssignor():
                given = assign_cooperative_sticky(SIZES, self.gathered)
                client.answers.append(events.Decided(effect.stamp, dict.fromkeys(given, b"")))
                self.decided = given
            case effects.SendSync():
                self._sync(number, effect)
            case effects.SendLeave():
                self.remove(effect.member_id)
            case Revoke():
                if client.member.state is MemberState.STOPPING:
                    assert all(tp.topic not in (client.member.topics or ()) for tp in effect.partitions)
                client.callbacks.append(Stopped())
            case effects.Assign():
                client.taken = (client.member.generation, client.member.owned)
                client.rounds += 1
                client.callbacks.append(Resumed(effect.stamp))

    def _fault(self, identity: Identity) -> str:
        if identity.member_id not in self.group:
            return "UNKNOWN_MEMBER_ID"
        return "ILLEGAL_GENERATION" if identity.generation != self.generation else ""

    def _refuse(self, number: int, api: str, error: str, stamp: int, *, at_once: bool = False) -> None:
        event = reaction(api, error, stamp=stamp, sent_ns=0)
        assert event is not None
        if at_once:
            self.say(number, event)
        else:
            self.clients[number].answers.append(event)

    def _join(self, number: int, client: Client, effect: effects.SendJoin) -> None:
        if not effect.member_id:
            given = f"m{number}-{effect.stamp}"
            self.named[given] = number
            client.answers.append(events.MemberIdGiven(effect.stamp, given))
            return
        if effect.member_id not in self.group and effect.member_id not in self.named:
            self._refuse(number, "JoinGroup", "UNKNOWN_MEMBER_ID", effect.stamp)
            return
        self.named.pop(effect.member_id, None)
        member = client.member
        subscription = MemberSubscription(
            topics=tuple(sorted(member.topics or ())),
            owned=tuple(sorted(member.owned)),
            generation=None if member.generation < 0 else member.generation,
            user_data=encode_cooperative(client.taken[0]),
        )
        self.group[effect.member_id] = Entry(number, subscription, join=effect.stamp)
        self._prepare()
        self._complete()

    def _prepare(self) -> None:
        if self.phase == "Completing":
            for entry in self.group.values():
                if entry.sync is not None:
                    self._refuse(entry.client, "SyncGroup", "REBALANCE_IN_PROGRESS", entry.sync)
                entry.sync = None
        self.phase = "Preparing"

    def _complete(self) -> None:
        if self.phase != "Preparing" or any(entry.join is None for entry in self.group.values()):
            return
        self.generation += 1
        if not self.group:
            self.phase = "Empty"
            return
        self.phase, self.assignment = "Completing", {}
        if self.leader not in self.group:
            self.leader = next(iter(self.group))
        self.gathered = {member_id: entry.subscription for member_id, entry in self.group.items()}
        members = tuple(events.GroupMember(member_id, None, b"") for member_id in self.group)
        for member_id, entry in self.group.items():
            stamp, entry.join = entry.join, None
            assert stamp is not None
            listed = members if member_id == self.leader else ()
            joined = events.Joined(stamp, member_id, self.generation, "cooperative-sticky", self.leader, listed)
            self.clients[entry.client].answers.append(joined)

    def _sync(self, number: int, effect: effects.SendSync) -> None:
        error = self._fault(effect.identity) or ("REBALANCE_IN_PROGRESS" if self.phase == "Preparing" else "")
        if error:
            self._refuse(number, "SyncGroup", error, effect.stamp)
            return
        member_id = effect.identity.member_id
        self.group[member_id].sync = effect.stamp
        if self.phase == "Completing" and member_id == self.leader:
            self.phase, self.assignment = "Stable", self.decided
        if self.phase == "Stable":
            for other, entry in self.group.items():
                if entry.sync is not None:
                    mine = frozenset(self.assignment.get(other, ()))
                    self.clients[entry.client].answers.append(events.Synced(entry.sync, mine))
                    entry.sync = None

    def remove(self, member_id: str) -> None:
        self.named.pop(member_id, None)
        gone = self.group.pop(member_id, None)
        if gone is not None:
            for api, stamp in (("JoinGroup", gone.join), ("SyncGroup", gone.sync)):
                if stamp is not None:
                    self._refuse(gone.client, api, "UNKNOWN_MEMBER_ID", stamp)
            self._prepare()
            self._complete()
