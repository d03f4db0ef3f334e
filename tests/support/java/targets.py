"""Ask Kafka 4.1.1's UniformAssignor and RangeAssignor, in a JVM child process.

    answers = ask([("uniform", step), ...])    # steps as in tests.support.groups.targets
    answers[0]                                 # {member: [[topic, partition], ...]}

Run as a module it is that child: the question on standard input, the answer on standard output. The present target of
a member is a copied HashSet, as the coordinator makes it from a record.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from comparison.originals import jars
from comparison.originals.java import OPTIONS
from tests.support.java.child import answered_by

VERSION = "4.1.1"
GROUP = "org.apache.kafka.coordinator.group."


def ask(asked: list[tuple[str, dict[str, Any]]], *, timeout_s: float = 240) -> list[dict[str, list[list[Any]]]]:
    """Run the JVM and wait for it. Call `tests.support.java.originals.require` first."""
    answers: list[dict[str, list[list[Any]]]] = answered_by(
        "tests.support.java.targets", asked=asked, timeout_s=timeout_s
    )
    return answers


class Oracle:
    def __init__(self) -> None:
        import jpype

        self.java = jpype.JClass
        self.integer = jpype.JInt
        self.names = {"uniform": "UniformAssignor", "range": "RangeAssignor"}
        self.assignors = {name: self.java(f"{GROUP}assignor.{short}")() for name, short in self.names.items()}

    def new(self, name: str, *arguments: Any) -> Any:
        return self.java(name)(*arguments)

    def uuid(self, text: str) -> Any:
        halves = [int.from_bytes(bytes.fromhex(half), "big", signed=True) for half in (text[:16], text[16:])]
        return self.new("org.apache.kafka.common.Uuid", *halves)

    def image(self, step: dict[str, Any]) -> Any:
        delta = self.new("org.apache.kafka.image.MetadataDelta$Builder")
        delta = delta.setImage(self.java("org.apache.kafka.image.MetadataImage").EMPTY).build()
        replicas = self.list([self.integer(1)])
        for topic, size in step["partitions"].items():
            if size:
                topic_id = self.uuid(step["topic_ids"][topic])
                record = self.new("org.apache.kafka.common.metadata.TopicRecord")
                delta.replay(record.setName(topic).setTopicId(topic_id))
                for number in range(size):
                    record = self.new("org.apache.kafka.common.metadata.PartitionRecord").setTopicId(topic_id)
                    delta.replay(record.setPartitionId(number).setReplicas(replicas).setIsr(replicas).setLeader(1))
        return delta.apply(self.java("org.apache.kafka.image.MetadataProvenance").EMPTY)

    def assign(self, name: str, step: dict[str, Any]) -> dict[str, list[list[Any]]]:
        image = self.image(step)
        optional = self.java("java.util.Optional")
        specified, inverted = self.new("java.util.HashMap"), self.new("java.util.HashMap")
        for member, topics, instance, owned, _ in step["members"]:
            target = self.new("java.util.HashMap")
            for topic, numbers in owned:
                topic_id = self.uuid(step["topic_ids"][topic])
                boxed = self.list([self.integer(number) for number in numbers])
                target.put(topic_id, self.new("java.util.HashSet", boxed))
                if not inverted.containsKey(topic_id):
                    inverted.put(topic_id, self.new("java.util.HashMap"))
                for number in boxed:
                    inverted.get(topic_id).put(number, member)
            names = self.new("java.util.HashSet", self.list(topics))
            member_form = self.new(
                GROUP + "modern.MemberSubscriptionAndAssignmentImpl",
                optional.empty(),
                optional.ofNullable(instance),
                self.new(GROUP + "modern.TopicIds", names, image.topics()),
                self.new(GROUP + "modern.Assignment", target),
            )
            specified.put(member, member_form)
        kinds = self.java(GROUP + "api.assignor.SubscriptionType")
        alike = len({frozenset(topics) for _, topics, *_ in step["members"]}) == 1
        spec = self.new(
            GROUP + "modern.GroupSpecImpl", specified, kinds.HOMOGENEOUS if alike else kinds.HETEROGENEOUS, inverted
        )
        describer = self.new(GROUP + "modern.SubscribedTopicDescriberImpl", image)
        topics_by_id = {str(self.uuid(topic_id)): topic for topic, topic_id in step["topic_ids"].items()}
        found: dict[str, list[list[Any]]] = {member: [] for member, *_ in step["members"]}
        for entry in self.assignors[name].assign(spec, describer).members().entrySet():
            for part in entry.getValue().partitions().entrySet():
                topic = topics_by_id[str(part.getKey())]
                found[str(entry.getKey())] += [[topic, int(number)] for number in part.getValue()]
        return found

    def list(self, items: Any) -> Any:
        made = self.new("java.util.ArrayList")
        for item in items:
            made.add(item)
        return made


def main() -> None:
    import jpype

    asked = json.load(sys.stdin)
    class_path = [str(path) for path in jars.class_path(VERSION)]
    jpype.startJVM(jpype.getDefaultJVMPath(), *OPTIONS, classpath=class_path, convertStrings=False)
    oracle = Oracle()
    print(json.dumps([oracle.assign(name, step) for name, step in asked]))  # noqa: T201  # the parent reads it


if __name__ == "__main__":
    main()
