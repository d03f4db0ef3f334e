"""Kafka 4.1.1's own consumer as a kind of stock member (`tests.support.stock.members`), in the JVM of its process.

Call `tests.support.java.originals.require` first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from comparison.originals import jars
from comparison.originals.java import OPTIONS, logging_options
from kernel.platform.jre import find_java

if TYPE_CHECKING:
    from tests.support.stock.members import ChangeReporter, Given

VERSION = "4.1.1"
_CLIENTS = "org.apache.kafka.clients.consumer"
_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_STRATEGIES = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


def environment() -> dict[str, str]:
    return {"JAVA_HOME": str(find_java().home)}


def run(reporter: ChangeReporter, given: Given) -> None:
    import jpype

    class_path = [str(jar) for jar in jars.class_path(VERSION)]
    options = [*OPTIONS, *logging_options("WARN")]
    jpype.startJVM(jpype.getDefaultJVMPath(), *options, classpath=class_path, convertStrings=True)
    properties = jpype.JClass("java.util.HashMap")()
    for name, value in _settings(given).items():
        properties.put(name, value)
    consumer = jpype.JClass(f"{_CLIENTS}.KafkaConsumer")(properties)
    consumer.subscribe(jpype.JClass("java.util.List").of(given.topic))
    wait = jpype.JClass("java.time.Duration").ofMillis(100)
    left_to_pause = bool(given.pauses)
    while reporter.going_on:
        records = [(int(record.partition()), int(record.offset())) for record in consumer.poll(wait)]
        if records:
            _commit(consumer)
        if left_to_pause and not consumer.assignment().isEmpty():
            consumer.pause(consumer.assignment())
            left_to_pause = False
        reporter.report(records, [_Partition(int(tp.partition())) for tp in consumer.assignment()])
    consumer.close()


def _settings(given: Given) -> dict[str, str]:
    settings = {
        "bootstrap.servers": given.bootstrap,
        "group.id": given.group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
        "key.deserializer": _BYTES,
        "value.deserializer": _BYTES,
    }
    if given.instance:
        settings["group.instance.id"] = given.instance
    if given.strategy not in _STRATEGIES:
        return settings | {"group.protocol": "consumer"}
    return settings | {
        "session.timeout.ms": given.session_ms,
        "heartbeat.interval.ms": "200",
        "partition.assignment.strategy": f"{_CLIENTS}.{_STRATEGIES[given.strategy]}",
    }


def _commit(consumer: Any) -> None:
    """The group may have moved on: the next owner reads the records again."""
    import jpype

    try:
        consumer.commitSync()
    except (
        jpype.JClass(f"{_CLIENTS}.CommitFailedException"),
        jpype.JClass("org.apache.kafka.common.errors.RebalanceInProgressException"),
    ):
        pass


class _Partition:
    def __init__(self, partition: int) -> None:
        self.partition = partition
