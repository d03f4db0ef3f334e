"""The defaults of Kafka's settings, from its own classes: `python -m tests.support.java.defaults VERSION`.

Prints one JSON object: {"consumer": {name: default}, "broker": {name: default}}, as text, null for what is unset; with
a version of the consumer of 0.8, {"old consumer": {name: default}} beside them or alone.
"""

from __future__ import annotations

import sys
from typing import Any

from comparison.originals.java import logging_options
from tests.support.java.child import answer_from_jvm, answered_by
from zkconsumer.kafka_settings import KAFKA_SETTINGS

CONSUMER, BROKER, OLD_CONSUMER = "consumer", "broker", "old consumer"
#: Fields of the old ConsumerConfig that are not named as their settings are.
FIELDS = {"queued.max.message.chunks": "queuedMaxMessages"}


def java_defaults(version: str, *, timeout_s: float = 120) -> dict[str, dict[str, str | None]]:
    """Run the JVM and wait for it. Call `tests.support.java.originals.require` first."""
    found: dict[str, dict[str, str | None]] = answered_by("tests.support.java.defaults", version, timeout_s=timeout_s)
    return found


def defaults_of(definition: Any) -> dict[str, str | None]:
    """The defaults of a ConfigDef; of a required setting there is none."""
    keys = definition.configKeys()
    return {str(name): text_of(keys.get(name)) for name in keys.keySet()}


def text_of(key: Any) -> str | None:
    if not key.hasDefault():
        return "no default"
    value = key.defaultValue
    if value is None:
        return None
    if hasattr(value, "toArray"):  # of classes, or of texts
        return ",".join(str(each.getSimpleName() if hasattr(each, "getSimpleName") else each) for each in value)
    return str(value)


def hidden(java: Any, name: str, of: Any = None) -> Any:
    """A field that is not public."""
    field = java.class_.getDeclaredField(name)
    field.setAccessible(True)
    return field.get(of)


def defaults(version: str) -> dict[str, object]:
    import jpype

    found: dict[str, object] = {}
    if version in ("0.8.2.2", "1.1.1"):
        found[OLD_CONSUMER] = old_defaults(jpype)
    if version != "0.8.2.2":
        found |= declared_defaults(jpype)
    return found


def old_defaults(jpype: Any) -> dict[str, str | None]:
    """Those of the consumer of 0.8, by what its configuration answers when nothing but the group is set."""
    properties = jpype.JClass("java.util.Properties")()
    for name in ("zookeeper.connect", "group.id"):
        properties.setProperty(name, "required")
    config = jpype.JClass("kafka.consumer.ConsumerConfig")(properties)
    return {setting.name: str(getattr(config, field_of(setting.name))()) for setting in KAFKA_SETTINGS}


def field_of(name: str) -> str:
    first, *others = name.replace("zookeeper.", "zk.").split(".")
    return FIELDS.get(name) or first + "".join(word.capitalize() for word in others)


def declared_defaults(jpype: Any) -> dict[str, dict[str, str | None]]:
    consumer = hidden(jpype.JClass("org.apache.kafka.clients.consumer.ConsumerConfig"), "CONFIG")
    try:
        broker = hidden(jpype.JClass("org.apache.kafka.server.config.AbstractKafkaConfig"), "CONFIG_DEF")
    except TypeError:  # a Scala object until 3.7
        scala = jpype.JClass("kafka.server.KafkaConfig$")
        broker = hidden(scala, "kafka$server$KafkaConfig$$configDef", getattr(scala, "MODULE$"))
    return {CONSUMER: defaults_of(consumer), BROKER: defaults_of(broker)}


if __name__ == "__main__":
    answer_from_jvm(sys.argv[1], lambda: defaults(sys.argv[1]), *logging_options("ERROR"))
