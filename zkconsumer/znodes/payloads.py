"""The contents of the znodes of the 0.8 consumer and its brokers, byte for byte.

Source: Kafka 0.8.2 (ZookeeperConsumerConnector, TopicCount, ZkUtils, Broker), znodes recorded from 0.8.2.2. JSON is
written without blanks and in the key order of the original; readers accept any order and ignore unknown keys, since
later brokers write more. Unreadable data raises `UnreadableZnode`, which names the znode: in the original one
unreadable member fails every member's rebalance, so the error must say which.

We accept what 0.8.2.2 accepts, checked on the original for JSON: control characters inside strings and backslashes
that escape nothing are legal, a number that is not a 32-bit integer makes the whole text unreadable, and a topic whose
data is not JSON has no partitions. We are stricter in three cases: a member with no or absurdly many streams, a
pattern that `kernel/java_regex.py` cannot translate, and a negative partition number.
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
from kernel.zookeeper.offset_text import offset_in
from zkconsumer.znodes.filters import WILDCARDS, matching

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Parsed = TypeVar("Parsed")

STATIC = "static"
#: Host and port of a broker without a plain listener; the operating system refuses a connection to it.
NO_LISTENER = ("", -1)

#: A legal topic name (kafka.common.Topic, 0.8.2).
LEGAL_TOPIC = re.compile(r"(?!\.\.?\Z)[a-zA-Z0-9._-]{1,255}\Z")
_INT_MAX = 2**31 - 1
#: Threads of one member for one topic; more would only fill the memory of all members that read the registration.
_STREAMS_MAX = 65_536
#: Larger znodes are not remembered.
_REMEMBERED_BYTES = 16_384
_BLANKS = "".join(map(chr, range(0x21)))
#: A backslash with what it escapes; without the group, a literal backslash.
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
    """A znode holds unexpected data; the message names the znode and says what is wrong."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path


@dataclass(frozen=True, slots=True)
class Registration:
    """A member's id znode: {topic: streams} for a static member, {pattern: streams} for a wildcard member."""

    pattern: str
    subscription: Mapping[str, int]


def registration_payload(
    subscription: Mapping[str, int], timestamp_ms: int, pattern: str = STATIC, *, release: str = "0.8.2"
) -> bytes:
    """The data of /consumers/G/ids/C; the timestamp is a JSON string.

    `subscription` is {topic: streams}, or {regular expression: streams} for a wildcard `pattern`. 1.1 escapes a pattern
    and then encodes it as JSON, which escapes it again: with a backslash in it, it matches nothing.
    """
    escaped = _escaped_twice if release == "1.1" else _escaped
    entries = ",".join(f'"{escaped(key)}":{streams}' for key, streams in subscription.items())
    return (f'{{"version":1,"subscription":{{{entries}}},"pattern":"{pattern}","timestamp":"{timestamp_ms}"}}').encode()


def parse_registration(path: str, data: bytes) -> Registration:
    """Parse an id znode. `version` and `timestamp` are ignored; an empty subscription is static whatever it says.

    Only the first pattern of a wildcard's subscription counts.
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
        raise UnreadableZnode(path, "the subscription contains half a character (a lone surrogate)")
    if not isinstance(pattern, str | None):
        raise UnreadableZnode(path, f"the pattern must be a string, not {_shown(pattern)}")
    if not subscription or pattern not in WILDCARDS:
        return Registration(STATIC, MappingProxyType(subscription))
    expression, streams = next(iter(subscription.items()))
    try:
        matching(pattern, expression, (), exclude_internal=True)
    except UserError as error:
        raise UnreadableZnode(path, str(error)) from error
    return Registration(pattern, MappingProxyType({expression: streams}))


def thread_ids(consumer_id: str, streams: int) -> tuple[str, ...]:
    """The threads of a member for one topic: `<consumer id>-<n>`, starting at 0."""
    return tuple(f"{consumer_id}-{number}" for number in range(streams))


def stream_of(thread_id: str) -> int:
    """The number of a thread's stream."""
    return int(thread_id.rsplit("-", 1)[1])


def parse_partitions(path: str, data: bytes | None) -> tuple[int, ...]:
    """Partition numbers of /brokers/topics/T in numeric order, gaps allowed.

    A topic that does not exist has none, as has one whose data lacks the key `partitions` or is not JSON.
    """
    return () if data is None else _remembered_partitions(path, data)


def _partitions(path: str, data: bytes) -> tuple[int, ...]:
    if not data:  # null, as for a created parent; the original accepts "", which looks the same here
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
    raise UnreadableZnode(path, f"{_shown(key)} is not a partition number")


def parse_broker(path: str, data: bytes) -> BrokerAddress:
    """The address in /brokers/ids/N; only host and port are used, as in the original.

    A broker without a plain listener (null and -1 from later Kafkas) counts as a broker, with an address that refuses
    connections.
    """
    return _remembered_broker(path, data)


def _broker(path: str, data: bytes) -> BrokerAddress:
    content = _json_object(path, data)
    node = path.rsplit("/", 1)[1]
    if not re.fullmatch(r"[0-9]{1,10}", node) or not {"host", "port"} <= content.keys():
        raise UnreadableZnode(path, "a broker needs a numeric id, and the keys `host` and `port`")
    host, port = content["host"], content["port"]
    if not isinstance(host, str | None) or not isinstance(port, int) or isinstance(port, bool):
        raise UnreadableZnode(path, f"host must be a string and port a number, not {_shown(host)} and {_shown(port)}")
    if not host or not 0 < port < 65_536:
        host, port = NO_LISTENER
    return BrokerAddress(int(node), host, port)


def broker_version(path: str, data: bytes) -> int | None:
    """The version of a broker's node, which tells the age of the broker that wrote it; None if it has none.

    1: 0.8; 2: 0.9; 3: 0.10.0 and 0.10.1; 4: 0.10.2 to 2.6; 5: later (ZkUtils and BrokerIdZNode of each release).
    """
    version = _json_object(path, data).get("version")
    return version if isinstance(version, int) else None


def _remembering(parse: Callable[[str, bytes], Parsed]) -> Callable[[str, bytes], Parsed]:
    """Cache parsed znodes, except large ones: every attempt reads the same few, which hardly ever change."""
    remembered = lru_cache(maxsize=512)(parse)

    def read(path: str, data: bytes) -> Parsed:
        return (remembered if len(data) <= _REMEMBERED_BYTES else parse)(path, data)

    return read


_remembered_registration = _remembering(_registration)
_remembered_partitions = _remembering(_partitions)
_remembered_broker = _remembering(_broker)


def parse_offset(path: str, data: bytes | None) -> int:
    """The committed offset; `NO_OFFSET` if there is none."""
    if data is None:
        return NO_OFFSET
    try:
        return offset_in(data)
    except ValueError as error:
        raise UnreadableZnode(path, f"{error}, not {_shown(data)}") from error


def _escaped(text: str) -> str:
    """Escape for a JSON string as Kafka 0.8.2's Utils.JSONEscapeString does: also the slash, DEL and C1."""
    return "".join(
        _ESCAPES.get(char) or (f"\\u{ord(char):04x}" if char < " " or "\x7f" <= char <= "\x9f" else char)
        for char in text
    )


def _escaped_twice(text: str) -> str:
    """As TopicCount.getTopicCountMap and Json.encode of 1.1.1 (Jackson) one after the other."""
    return _escaped(text).replace("\\", "\\\\").replace('"', '\\"')


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _STREAMS_MAX


def _is_text(name: str) -> bool:
    """Whether it has no lone surrogates, which JSON can spell but no path can hold."""
    return not any("\ud800" <= char <= "\udfff" for char in name)


def _shown(value: object) -> str:
    """The beginning of a value, for a message."""
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
    """A number that makes the original reject the whole text."""


def _json(data: bytes) -> Any:
    """Parse JSON as 0.8.2 does. Raises `ValueError`, `_NumberNotRead`."""
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
    raise _NumberNotRead(f"a number must be a 32-bit integer, not {_shown(text)}")


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")
