"""What the 0.8 consumer and its brokers keep in their znodes, byte for byte.

Source: Kafka 0.8.2 (ZookeeperConsumerConnector, TopicCount, ZkUtils, Broker), znodes recorded from 0.8.2.2. JSON is
written without blanks and in the key order of the original; readers take any order and ignore unknown keys,
since later brokers write more. Whatever cannot be read raises `UnreadableZnode`, which names the znode:
in the original one unreadable member fails every member's rebalance, so somebody must be told which.

What is accepted is what 0.8.2.2 accepts, checked on the original for the JSON: control characters inside strings and
backslashes that escape nothing are fine, a number that is not a whole one of 32 bits makes everything unreadable, and
a topic whose data is no JSON at all has no partitions. Stricter than the original are three: a member that counts no
or absurdly many streams, a pattern that `kernel/java_regex.py` cannot translate, and a negative partition number.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from kernel.errors import RebalanceLabError, UserError
from kernel.values import NO_OFFSET, BrokerAddress
from zkconsumer.znodes.filters import WILDCARDS, matching

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Parsed = TypeVar("Parsed")

STATIC = "static"
#: Host and port of a broker that has no plain listener; a connection to it is refused by the system.
NO_LISTENER = ("", -1)

#: What Kafka takes for a topic's name (kafka.common.Topic, 0.8.2); any other cannot be a znode's.
LEGAL_TOPIC = re.compile(r"(?!\.\.?\Z)[a-zA-Z0-9._-]{1,255}\Z")
_INT_MAX = 2**31 - 1
#: Threads of one member for one topic; more would only fill the memory of everybody who reads the registration.
_STREAMS_MAX = 65_536
#: Larger znodes are not remembered.
_REMEMBERED_BYTES = 16_384
_BLANKS = "".join(map(chr, range(0x21)))
#: A backslash with what it escapes, or, without the group, one that stands for itself.
_ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')

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
    """`version` and `timestamp` are not looked at; an empty subscription is static whatever it calls itself.

    Of a wildcard's subscription only the first pattern counts.
    """
    return _remembered_registration(path, data)


def _registration(path: str, data: bytes) -> Registration:
    content = _json_object(path, data)
    for key in ("pattern", "subscription"):
        if key not in content:
            raise UnreadableZnode(path, f"a consumer's registration needs the key {key!r}")
    subscription, pattern = content["subscription"], content["pattern"]
    if not isinstance(subscription, dict) or not all(_is_count(streams) for streams in subscription.values()):
        raise UnreadableZnode(path, f"the subscription must map each topic to a number of streams, 1 to {_STREAMS_MAX}")
    if not all(_is_text(name) for name in subscription):
        raise UnreadableZnode(path, "the subscription names half a character")
    if not isinstance(pattern, str | None):
        raise UnreadableZnode(path, f"the pattern must be a word, this is {_shown(pattern)}")
    if not subscription or pattern not in WILDCARDS:
        return Registration(STATIC, MappingProxyType(subscription))
    expression, streams = next(iter(subscription.items()))
    try:
        matching(pattern, expression, (), exclude_internal=True)
    except UserError as error:
        raise UnreadableZnode(path, str(error)) from error
    return Registration(pattern, MappingProxyType({expression: streams}))


def thread_ids(consumer_id: str, streams: int) -> tuple[str, ...]:
    """The threads of a member for one topic: `<consumer id>-<n>`, counted from 0."""
    return tuple(f"{consumer_id}-{number}" for number in range(streams))


def stream_of(thread_id: str) -> int:
    """The number of a thread's stream."""
    return int(thread_id.rsplit("-", 1)[1])


def parse_partitions(path: str, data: bytes | None) -> tuple[int, ...]:
    """Partition numbers of /brokers/topics/T in numeric order, gaps allowed.

    A topic that does not exist has none, nor has one without the key `partitions` or without JSON in its data.
    """
    return () if data is None else _remembered_partitions(path, data)


def _partitions(path: str, data: bytes) -> tuple[int, ...]:
    if not data:  # null, as whoever makes folders writes it; "", which would pass, cannot be told from it
        raise UnreadableZnode(path, "a topic without data")
    try:
        content = _json(data)
    except _NumberNotRead as error:
        raise UnreadableZnode(path, str(error)) from error
    except ValueError:
        return ()
    if not isinstance(content, dict):
        raise UnreadableZnode(path, f"not a JSON object: {_shown(content)}")
    partitions = content.get("partitions", {})
    if not isinstance(partitions, dict):
        raise UnreadableZnode(path, "`partitions` must be an object from partition numbers to replicas")
    return tuple(sorted({_partition(path, key) for key in partitions}))


def _partition(path: str, key: str) -> int:
    if re.fullmatch(r"\+?[0-9]{1,10}", key) and int(key) <= _INT_MAX:
        return int(key)
    raise UnreadableZnode(path, f"{_shown(key)} is no partition number")


def parse_broker(path: str, data: bytes) -> BrokerAddress:
    """Where /brokers/ids/N listens; only host and port are used, as by the original.

    A broker without a plain listener (null and -1 from later Kafkas) counts as a broker, with an address that
    nobody can connect to.
    """
    return _remembered_broker(path, data)


def _broker(path: str, data: bytes) -> BrokerAddress:
    content = _json_object(path, data)
    node = path.rsplit("/", 1)[1]
    if not re.fullmatch(r"[0-9]{1,10}", node) or not {"host", "port"} <= content.keys():
        raise UnreadableZnode(path, "a broker needs a number for its name, and the keys `host` and `port`")
    host, port = content["host"], content["port"]
    if not isinstance(host, str | None) or not isinstance(port, int) or isinstance(port, bool):
        raise UnreadableZnode(path, f"a broker needs a name and a number, not {_shown(host)} and {_shown(port)}")
    if not host or not 0 < port < 65_536:
        host, port = NO_LISTENER
    return BrokerAddress(int(node), host, port)


def _remembering(parse: Callable[[str, bytes], Parsed]) -> Callable[[str, bytes], Parsed]:
    """Every member reads the same few znodes in every attempt, and they hardly ever change. Not the large ones."""
    remembered = lru_cache(maxsize=512)(parse)

    def read(path: str, data: bytes) -> Parsed:
        return (remembered if len(data) <= _REMEMBERED_BYTES else parse)(path, data)

    return read


_remembered_registration = _remembering(_registration)
_remembered_partitions = _remembering(_partitions)
_remembered_broker = _remembering(_broker)


def offset_payload(offset: int) -> bytes:
    """The next offset to consume, as decimal text."""
    return b"%d" % offset


def parse_offset(path: str, data: bytes | None) -> int:
    """`NO_OFFSET` where the partition has never been committed."""
    if data is None:
        return NO_OFFSET
    if not re.fullmatch(rb"[+-]?[0-9]{1,19}", data) or not -(2**63) <= int(data) < 2**63:
        raise UnreadableZnode(path, f"an offset must be a decimal number of 64 bits, this is {_shown(data)}")
    return int(data)


def _escaped(text: str) -> str:
    """For a JSON string, as Kafka 0.8.2's Utils.JSONEscapeString: the slash too, DEL and C1 too, the rest as it is."""
    return "".join(
        _ESCAPES.get(char) or (f"\\u{ord(char):04x}" if char < " " or "\x7f" <= char <= "\x9f" else char)
        for char in text
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _STREAMS_MAX


def _is_text(name: str) -> bool:
    """Without surrogates, which JSON can spell and no path can hold."""
    return not any("\ud800" <= char <= "\udfff" for char in name)


def _shown(value: object) -> str:
    """The beginning of what somebody wrote, for a message."""
    return repr(value)[:60]


def _json_object(path: str, data: bytes) -> dict[str, Any]:
    try:
        content = _json(data)
    except _NumberNotRead as error:
        raise UnreadableZnode(path, str(error)) from error
    except ValueError as error:
        raise UnreadableZnode(path, f"not JSON: {_shown(data)}") from error
    if not isinstance(content, dict):
        raise UnreadableZnode(path, f"not a JSON object: {_shown(data)}")
    return content


class _NumberNotRead(Exception):
    """A number that makes the original give the whole text up."""


def _json(data: bytes) -> Any:
    """Whatever the text says, read as 0.8.2 reads it. Raises `ValueError`, `_NumberNotRead`."""
    text = data.decode("utf-8", errors="replace").strip(_BLANKS)
    if not text.startswith(("{", "[")):
        raise ValueError("neither an object nor an array")
    text = _ESCAPE.sub(lambda found: found[0] if found[1] else "\\\\", text)
    try:
        return json.loads(text, strict=False, parse_int=_int, parse_float=_refused, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _int(text: str) -> int:
    if len(text) > 11 or not -_INT_MAX - 1 <= int(text) <= _INT_MAX:
        _refused(text)
    return int(text)


def _refused(text: str) -> NoReturn:
    raise _NumberNotRead(f"a number must be a whole one of 32 bits, this is {_shown(text)}")


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")
