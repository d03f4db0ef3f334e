"""A group of model members on a model of ZooKeeper, with brokers and topics, and a hook after every step."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from kernel.assignors.thread_range import thread_range
from kernel.values import TopicPartition
from kernel.zookeeper import paths
from tests.support.model.member import GROUP, MemberOptions, ModelMember
from tests.support.model.offsets import Stored
from tests.support.model.zookeeper import ModelZooKeeper
from zkconsumer.rebalance.config import RebalanceConfig
from zkconsumer.znodes.filters import matching
from zkconsumer.znodes.payloads import STATIC

#: Enough attempts for every member to succeed in the end.
PATIENT = 60


class ModelGroup:
    """Members in the order of joining; crashed ones stay in the list."""

    def __init__(self, zookeeper: ModelZooKeeper) -> None:
        self.zookeeper = zookeeper
        self.members: list[ModelMember] = []
        self.stored: Stored = {}
        self.on_step: Callable[[ModelMember], None] = lambda _: None  #: called after every step of a member
        #: Deliveries to applications, in order: (member, first offset, next offset).
        self.handed: dict[TopicPartition, list[tuple[str, int, int]]] = defaultdict(list)

    def set_broker(self, node_id: int) -> None:
        self.zookeeper.put(paths.broker(node_id), json.dumps({"host": "h", "port": 9092}).encode())

    def set_topic(self, topic: str, partitions: int) -> None:
        replicas = {str(partition): [0] for partition in range(partitions)}
        self.zookeeper.put(paths.topic(topic), json.dumps({"version": 1, "partitions": replicas}).encode())

    def join(
        self,
        name: str,
        wanted: Mapping[str, int],
        *,
        pattern: str = STATIC,
        fence: str = "none",
        server: int = 0,
        **options: Any,
    ) -> ModelMember:
        """A member that has not taken a step yet."""
        base = RebalanceConfig(group=GROUP, consumer_id=f"{GROUP}_{name}", max_retries=PATIENT)
        given = MemberOptions(
            wanted=wanted,
            config=replace(base, **options),
            pattern=pattern,
            fence=fence,
            stored=self.stored,
            handed=lambda tp, first, after: self.handed[tp].append((name, first, after)),
        )
        member = ModelMember(self.zookeeper, name, given, server=server)
        self.members.append(member)
        return member

    # -- steps -------------------------------------------------------------------------------------------------------

    def go_on(self, member: ModelMember, name: str) -> None:
        """Let one program of a member take a step, and check the group."""
        member.go_on(name)
        self.on_step(member)

    def heal(self) -> None:
        """Let every server catch up, and connect every running member."""
        for server in self.zookeeper.servers:
            self.zookeeper.follow(server.number)
        for member in self.members:
            if not member.alive and not member.session.ended:
                self.zookeeper.expire(member.session)
            member.reach()

    def settle(self, rounds_max: int = 100_000) -> None:
        """Let all members continue in turn until none can; time passes only when all of them wait for it.

        Reminders without any effect, round after round, do not count.
        """
        idle, before = 0, self._progress()
        for _ in range(rounds_max):
            now = [(member, name) for member in self.members for name in member.ready_now()]
            moves = now or [(member, name) for member in self.members for name in member.ready()]
            if not now:
                idle, before = (idle + 1 if before == self._progress() else 0), self._progress()
            if not moves or idle > 2 * len(self.members):
                return
            for member, name in moves:
                if name in member.ready():  # an earlier program may have ended it
                    self.go_on(member, name)
        raise AssertionError(f"not settled after {rounds_max} rounds")

    def _progress(self) -> tuple[int, int]:
        return len(self.zookeeper.log), sum(len(member.emitted) for member in self.members)

    # -- state -------------------------------------------------------------------------------------------------------

    def owners(self) -> dict[TopicPartition, str]:
        """{partition: thread id} according to the owner nodes."""
        found = {}
        for topic in self.zookeeper.children(paths.owners(GROUP)):
            for number in self.zookeeper.children(paths.topic_owners(GROUP, topic)):
                data = self.zookeeper.data(paths.owner(GROUP, topic, int(number)))
                assert data is not None
                found[TopicPartition(topic, int(number))] = data.decode()
        return found

    def delivering(self) -> Iterator[tuple[TopicPartition, ModelMember]]:
        for member in self.members:
            for partition in member.handing:
                yield partition, member

    def committed(self, partition: TopicPartition) -> int:
        data = self.zookeeper.data(paths.offset(GROUP, partition.topic, partition.partition))
        return -1 if data is None else int(data)

    def registered(self) -> list[ModelMember]:
        """Running members whose id node exists in their own session."""
        nodes = self.zookeeper.leader.nodes
        return [
            member
            for member in self.members
            if member.alive
            and (node := nodes.get(paths.member_id(GROUP, member.consumer_id))) is not None
            and node.owner == member.session.number
        ]

    def by_the_rule(self) -> dict[TopicPartition, str]:
        """The owners by the range rule over the registered members."""
        threads: dict[str, list[str]] = defaultdict(list)
        for member in self.registered():
            for topic, streams in self.topics_of(member).items():
                threads[topic] += [f"{member.consumer_id}-{number}" for number in range(streams)]
        shares = {}
        for topic, ids in threads.items():
            for thread, part in thread_range(self.partitions(topic), sorted(ids)).items():
                shares.update({TopicPartition(topic, number): thread for number in part})
        return shares

    def topics_of(self, member: ModelMember) -> dict[str, int]:
        """{topic: streams}, also for a pattern."""
        given = member.options
        if given.pattern == STATIC:
            return dict(given.wanted)
        ((pattern, streams),) = given.wanted.items()
        topics = matching(given.pattern, pattern, self.zookeeper.children(paths.BROKER_TOPICS), exclude_internal=True)
        return dict.fromkeys(topics, streams)

    def partitions(self, topic: str) -> list[int]:
        data = self.zookeeper.data(paths.topic(topic))
        return [] if data is None else sorted(int(number) for number in json.loads(data)["partitions"])
