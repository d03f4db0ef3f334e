"""What the 0.8 consumer and its brokers keep in their znodes, byte for byte.

Source: Kafka 0.8.2 (ZookeeperConsumerConnector, TopicCount, ZkUtils), znodes recorded from 0.8.2.2. JSON is
written without blanks and in the key order of the original; readers take any order and ignore unknown keys,
since later brokers write more. Whatever cannot be read raises `UnreadableZnode`, which names the znode:
in the original one unreadable member fails every member's rebalance, so somebody must be told which.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kernel.errors import RebalanceLabError
from kernel.values import NO_OFFSET, BrokerAddress
from zkconsumer.filters import WILDCARDS

if TYPE_CHECKING:
    from collections.abc import Mapping

STATIC = "static"

_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "/": "\\/",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


class UnreadableZnode(RebalanceLabError):
    """A znode does not hold what it should; the message names it and says what is wrong."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path


@dataclass(frozen=True, slots=True)
class Registration:
    """A member's id znode: for a static one {topic: streams}, for a wildcard one {pattern: streams}."""

    pattern: str
    subscription: Mapping[str, int]


def registration_payload(subscription: Mapping[str, int], timestamp_ms: int, pattern: str = STATIC) -> bytes:
    """The data of /consumers/G/ids/C; the timestamp is a JSON string.

    `subscription` is {topic: streams}, or for a wildcard `pattern` {regular expression: streams}.
    """
    entries = ",".join(f'"{_escaped(key)}":{streams}' for key, streams in subscription.items())
    return (f'{{"version":1,"subscription":{{{entries}}},"pattern":"{pattern}","timestamp":"{timestamp_ms}"}}').encode()


def parse_registration(path: str, data: bytes) -> Registration:
    """`version` and `timestamp` are not looked at; an empty subscription is static whatever it calls itself."""
    content = _json_object(path, data)
    for key in ("pattern", "subscription"):
        if key not in content:
            raise UnreadableZnode(path, f"a consumer's registration needs the key {key!r}")
    subscription = content["subscription"]
    if not isinstance(subscription, dict) or not all(_is_count(streams) for streams in subscription.values()):
        raise UnreadableZnode(path, "the subscription must map each topic to a number of streams")
    pattern = content["pattern"]
    wildcard = subscription and pattern in WILDCARDS
    return Registration(pattern if wildcard else STATIC, MappingProxyType(subscription))


def thread_ids(consumer_id: str, streams: int) -> tuple[str, ...]:
    """The threads of a member for one topic: `<consumer id>-<n>`, counted from 0."""
    return tuple(f"{consumer_id}-{number}" for number in range(streams))


def stream_of(thread_id: str) -> int:
    """The number of a thread's stream."""
    return int(thread_id.rsplit("-", 1)[1])


def parse_partitions(path: str, data: bytes | None) -> tuple[int, ...]:
    """Partition numbers of /brokers/topics/T in numeric order; a topic that does not exist has none."""
    if data is None:
        return ()
    partitions = _json_object(path, data).get("partitions")
    if not isinstance(partitions, dict) or not all(key.isascii() and key.isdigit() for key in partitions):
        raise UnreadableZnode(path, "a topic needs `partitions`, an object from partition numbers to replicas")
    return tuple(sorted(int(key) for key in partitions))


def parse_broker(path: str, data: bytes) -> BrokerAddress:
    """Where /brokers/ids/N listens; only host and port are used, as by the original."""
    content = _json_object(path, data)
    host, port = content.get("host"), content.get("port")
    node = path.rsplit("/", 1)[1]
    if not isinstance(host, str) or not _is_count(port) or not node.isdigit():
        raise UnreadableZnode(path, "a broker needs a number for its name, and `host` and `port` for a plain listener")
    assert isinstance(port, int)
    return BrokerAddress(int(node), host, port)


def offset_payload(offset: int) -> bytes:
    """The next offset to consume, as decimal text."""
    return b"%d" % offset


def parse_offset(path: str, data: bytes | None) -> int:
    """`NO_OFFSET` where the partition has never been committed."""
    if data is None:
        return NO_OFFSET
    try:
        return int(data.decode("ascii"))
    except (ValueError, UnicodeDecodeError) as error:
        raise UnreadableZnode(path, f"an offset must be a decimal number, this is {data[:40]!r}") from error


def _escaped(text: str) -> str:
    """For a JSON string, as Kafka 0.8.2's Utils.JSONEscapeString: the slash too, DEL and C1 too, the rest as it is."""
    return "".join(
        _ESCAPES.get(char) or (f"\\u{ord(char):04x}" if char < " " or "\x7f" <= char <= "\x9f" else char)
        for char in text
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _json_object(path: str, data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableZnode(path, f"not JSON: {data[:40]!r}") from error
    if not isinstance(content, dict):
        raise UnreadableZnode(path, f"not a JSON object: {data[:40]!r}")
    return content
