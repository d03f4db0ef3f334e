"""Groups by name, whose targets the coordinator computes from its records.

    step = {"partitions": {topic: count}, "topic_ids": {topic: hex}, "members": [[id, topics, instance id, owned, _]]}
    answer(step, "uniform")    # {member: {(topic, partition), ...}}

`owned` is the present target assignment, [[topic, [partition, ...]], ...].
"""

from __future__ import annotations

from typing import Any

from coordinator.groups.consumer.group import ConsumerGroup, client_record
from coordinator.groups.consumer.member import ConsumerMember
from coordinator.groups.consumer.target import changed_targets
from coordinator.groups.consumer.topics import Topic, Topics
from coordinator.groups.consumer_records import ClientKey, TargetKey, TargetRecord
from coordinator.groups.partitions import each, partitions

Step = dict[str, Any]

GROUP = "g"


def answer(step: Step, strategy: str) -> dict[str, set[tuple[str, int]]]:
    ids = {topic: bytes.fromhex(topic_id) for topic, topic_id in step["topic_ids"].items()}
    names = {topic_id: topic for topic, topic_id in ids.items()}

    def find(name: str) -> Topic | None:
        size = step["partitions"].get(name)
        return Topic(ids[name], size) if size else None

    group = ConsumerGroup(GROUP)
    for member, topics, instance_id, owned, _ in step["members"]:
        described = ConsumerMember(id=member, instance_id=instance_id, topics=frozenset(topics))
        target = partitions((ids[topic], numbers) for topic, numbers in owned)
        group.apply(ClientKey(GROUP, member), client_record(described))
        group.apply(TargetKey(GROUP, member), TargetRecord(target))
    targets = {**group.targets, **changed_targets(group, strategy, Topics(find, names.get))}
    return {member: {(names[topic], number) for topic, number in each(target)} for member, target in targets.items()}


def runs(partitions: set[tuple[str, int]]) -> list[list[Any]]:
    """The form of `owned`."""
    topics = sorted({topic for topic, _ in partitions})
    return [[topic, sorted(number for name, number in partitions if name == topic)] for topic in topics]
