"""Actions on a model group, whose choices are drawn by Hypothesis or by a seeded generator.

An impossible action does nothing. `choose(n)` returns a number from 0 to n-1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

from kernel.zookeeper import paths
from tests.support.model.group import ModelGroup
from tests.support.model.member import GROUP, ModelMember
from tests.support.model.zookeeper import Call, ModelZooKeeper, Session
from zkconsumer.znodes.payloads import STATIC

Choose = Callable[[int], int]
T = TypeVar("T")

TOPIC, SECOND_TOPIC = "t", "u"
#: The subscriptions that members may have, and by which pattern.
PLAIN: tuple[tuple[dict[str, int], str], ...] = (({TOPIC: 1}, STATIC), ({TOPIC: 2}, STATIC))
VARIED = (*PLAIN, ({TOPIC: 1, SECOND_TOPIC: 2}, STATIC), ({"t|u": 1}, "white_list"), ({"x": 2}, "black_list"))
UNREADABLE = paths.member_id(GROUP, "not-a-consumer")
MEMBERS_MAX = 5
PARTITIONS_MAX = 7
SERVERS = 3


@dataclass
class Actions:
    """The group, and the actions so far; every public method is an action."""

    group: ModelGroup
    choose: Choose
    config: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    fence: str = "none"
    varied: bool = False  #: members may subscribe to two topics, or to all that match a pattern
    joined: int = 0
    held: list[ModelMember] = field(default_factory=list)
    strangers: list[Session] = field(default_factory=list)

    def join(self) -> None:
        if self.joined < MEMBERS_MAX:
            wanted, pattern = self._one(VARIED if self.varied else PLAIN)
            self.group.join(
                f"c{self.joined}",
                wanted,
                pattern=pattern,
                fence=self.fence,
                server=self.choose(len(self.group.zookeeper.servers)),
                **self.config,
            )
            self.joined += 1

    def go_on(self) -> None:
        """One member takes a few steps."""
        if not (members := [member for member in self.group.members if member.ready() and member not in self.held]):
            return
        member = self._one(members)
        for _ in range(1 + self.choose(12)):
            if not (names := member.ready()):
                return
            self.group.go_on(member, self._one(names))

    def go_on_everybody(self) -> None:
        """Each member takes a few steps in turn."""
        for _ in range(1 + self.choose(20)):
            for member in self.group.members:
                if member not in self.held and (names := member.ready()):
                    self.group.go_on(member, self._one(names))

    def hold(self) -> None:
        """Hold a member's next call while all others continue."""
        if members := [member for member in self.group.members if member.ready()]:
            self.held.append(self._one(members))

    def let_go(self) -> None:
        self.held.clear()

    def close(self) -> None:
        if members := self._living():
            self._one(members).close()

    def crash(self) -> None:
        if members := self._living():
            self._one(members).crash()

    def expire_crashed(self) -> None:
        """Expire the session of a crashed member."""
        if dead := [m for m in self.group.members if not m.alive and not m.session.ended]:
            self.group.zookeeper.expire(self._one(dead).session)

    def restart(self) -> None:
        """A crashed member returns under its id, whether or not its old session has ended."""
        if dead := [m for m in self.group.members if not m.alive]:
            member = self._one(dead)
            if not any(other.alive and other.consumer_id == member.consumer_id for other in self.group.members):
                self.group.join(
                    member.name, member.options.wanted, pattern=member.options.pattern, fence=self.fence, **self.config
                )

    def cut(self) -> None:
        if members := self._connected():
            self._one(members).cut()

    def lose_answer(self) -> None:
        """Perform a call, and break the connection before its answer."""
        waiting = [(m, name) for m in self._connected() for name, w in m.wants().items() if isinstance(w, Call)]
        if waiting:
            member, name = self._one(waiting)
            member.lose_answer(name)

    def reach(self) -> None:
        if members := [m for m in self.group.members if m.alive and not m.connected]:
            self._one(members).reach(self.choose(len(self.group.zookeeper.servers)))

    def expire(self) -> None:
        if members := [m for m in self._living() if not m.session.ended]:
            self._one(members).expire()

    def lag(self) -> None:
        if len(self.group.zookeeper.servers) > 1:
            self.group.zookeeper.lag(1 + self.choose(len(self.group.zookeeper.servers) - 1))

    def follow(self) -> None:
        server = self.choose(len(self.group.zookeeper.servers))
        self.group.zookeeper.follow(server, self.choose(4) or None)

    def grow(self) -> None:
        more = len(self.group.partitions(TOPIC)) + 1 + self.choose(2)
        if more <= PARTITIONS_MAX:
            self.group.set_topic(TOPIC, more)

    def topic_comes(self) -> None:
        if not self.group.partitions(SECOND_TOPIC):
            self.group.set_topic(SECOND_TOPIC, 1 + self.choose(3))

    def topic_goes(self) -> None:
        self.group.zookeeper.remove(paths.topic(SECOND_TOPIC))

    def broker_goes(self) -> None:
        self.group.zookeeper.remove(paths.broker(self.choose(2)))

    def broker_comes(self) -> None:
        self.group.set_broker(self.choose(2))

    def unreadable_member_comes(self) -> None:
        """Create an id node with data that no consumer writes."""
        payload = (b"", b"not json", b"[]", b'{"pattern":"static"}', b'{"pattern":"static","subscription":{"t":"2"}}')
        self.group.zookeeper.put(UNREADABLE, self._one(payload))

    def unreadable_member_goes(self) -> None:
        self.group.zookeeper.remove(UNREADABLE)

    def stranger_claims(self) -> None:
        """Another session creates an owner node with a member's thread id (a second member of that name)."""
        path = paths.owner(GROUP, TOPIC, self._one(self.group.partitions(TOPIC)))
        if self.group.members and self.group.zookeeper.data(path) is None:
            self.strangers.append(self.group.zookeeper.open())
            thread = f"{self._one(self.group.members).consumer_id}-0"
            self.group.zookeeper.put(path, thread.encode(), self.strangers[-1].number)

    def strangers_go(self) -> None:
        while self.strangers:
            self.group.zookeeper.expire(self.strangers.pop())

    def consume(self) -> None:
        if delivering := list(self.group.delivering()):
            partition, member = self._one(delivering)
            member.consume(partition, 1 + self.choose(3))

    def commit(self) -> None:
        if members := self._living():
            self._one(members).commit()

    def listener_turns(self) -> None:
        """Let its listener raise from now on, or stop raising."""
        if members := self._living():
            member = self._one(members)
            member.listener_raises = not member.listener_raises

    def _one(self, things: Sequence[T]) -> T:
        return things[self.choose(len(things))]

    def _living(self) -> list[ModelMember]:
        return [member for member in self.group.members if member.alive and not member.closed]

    def _connected(self) -> list[ModelMember]:
        return [member for member in self._living() if member.connected]


#: Actions that neither end a running member's session nor make a server lag.
CALM = (
    *("join", "go_on", "go_on_everybody", "hold", "let_go", "close", "crash", "expire_crashed", "cut", "lose_answer"),
    *("reach", "grow", "broker_goes", "broker_comes", "consume", "commit"),
)
STALE = ("lag", "follow")
EXPIRIES = ("expire", "restart")
TOPICS = ("topic_comes", "topic_goes")
LISTENERS = ("listener_turns",)
GARBAGE = ("unreadable_member_comes", "unreadable_member_goes")
ALL = (*CALM, *STALE, *EXPIRIES, *GARBAGE)
#: The weight of each action in seeded runs; 1 if not listed.
WEIGHTS = {"go_on": 8, "go_on_everybody": 6, "consume": 4, "hold": 3, "let_go": 2, "reach": 2}


def beginning(zookeeper: ModelZooKeeper | None = None) -> ModelGroup:
    """A broker, a topic of three partitions, and no members."""
    group = ModelGroup(zookeeper or ModelZooKeeper())
    group.set_broker(0)
    group.set_topic(TOPIC, 3)
    return group


def end_of_faults(group: ModelGroup) -> None:
    """End all faults, and let all members continue until nothing is left to do."""
    if not group.zookeeper.children(paths.BROKER_IDS):
        group.set_broker(0)
    group.zookeeper.remove(UNREADABLE)
    for member in group.members:
        member.listener_raises = False
    group.heal()
    group.settle()


def touch(group: ModelGroup) -> None:
    """Make a change that all members are notified of, and that has no effect."""
    group.set_topic(TOPIC, len(group.partitions(TOPIC)))
    group.settle()
