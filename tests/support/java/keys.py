"""How Kafka reads keys in `__consumer_offsets`, from a JVM in a child process.

    kinds("4.1.1", keys)   # for each key "offset", "group", or "unknown", which a reader skips

Run as a module it is that child: the version as its argument, keys in hexadecimal on standard input.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from tests.support.java.child import answer_from_jvm, answered_by

if TYPE_CHECKING:
    from collections.abc import Sequence


_RUNTIME = "org.apache.kafka.coordinator.common.runtime"


def kinds(version: str, keys: Sequence[bytes], *, timeout_s: float = 120) -> list[str]:
    """Run the JVM and wait for it. Call `tests.support.java.originals.require` first."""
    answer: list[str] = answered_by(
        "tests.support.java.keys", version, asked=[key.hex() for key in keys], timeout_s=timeout_s
    )
    return answer


def _kind(version: str, key: bytes) -> str:
    import jpype

    raw = jpype.JClass("java.nio.ByteBuffer").wrap(key)
    if version.startswith("3."):
        read = jpype.JClass("kafka.coordinator.group.GroupMetadataManager").readMessageKey(raw)
        return {"OffsetKey": "offset", "GroupMetadataKey": "group", "UnknownKey": "unknown"}[_name(read)]
    serde = jpype.JClass("org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde")()
    try:
        read = serde.deserialize(raw, None).key()
    except jpype.JClass(f"{_RUNTIME}.Deserializer$UnknownRecordTypeException"):
        return "unknown"
    return {"OffsetCommitKey": "offset", "GroupMetadataKey": "group"}[_name(read)]


def _name(thing: Any) -> str:
    return str(thing.getClass().getName()).rpartition(".")[2]


if __name__ == "__main__":
    answer_from_jvm(sys.argv[1], lambda: [_kind(sys.argv[1], bytes.fromhex(key)) for key in json.load(sys.stdin)])
