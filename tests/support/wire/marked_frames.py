"""Valid frames with known positions of each count, length, number and tag section, as input for attacks.

`random_body` fills a message from a seeded generator (Hypothesis would take milliseconds for each); `marks` walks the
encoded frame.
"""

from __future__ import annotations

import datetime
import enum
import random
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kernel.wire.codec import encode_request, encode_response
from kernel.wire.errors import ErrorCode
from kernel.wire.schema import FIXED_BYTES, Field, entity_class, fields_of, is_flexible
from kernel.wire.tags import uvarint
from kernel.wire.versions import SERVED, Api


class Kind(enum.Enum):
    """The kind of a marked part."""

    COUNT = enum.auto()  #: of an array's elements
    LENGTH = enum.auto()  #: of a text or of bytes
    CONTENT = enum.auto()  #: of a text or of bytes; may be empty
    NUMBER = enum.auto()  #: anything of fixed size
    TAGS = enum.auto()  #: the count of a tag section


class Mark(NamedTuple):
    """`size` bytes from `at`; `is_compact`: a variable-length integer, which is one more than the value except for
    tags.
    """

    kind: Kind
    at: int
    size: int
    is_compact: bool
    name: str


class Message(NamedTuple):
    """One version of one API in one direction."""

    api: Api
    version: int
    is_request: bool

    @property
    def entity(self) -> type[Any]:
        return entity_class(self.api, self.version, request=self.is_request)

    def encoded(self, body: Mapping[str, Any], *, correlation_id: int = 7) -> bytes:
        """A frame with its size; requests are from the client "c"."""
        if self.is_request:
            return encode_request(self.api, self.version, correlation_id, "c", body)
        return encode_response(self.api, self.version, correlation_id, body)

    @property
    def body_at(self) -> int:
        """The offset of the body in a frame from `encoded`."""
        flexible = is_flexible(self.entity.__header_schema__)
        return (4 + 8 + 3 if self.is_request else 4 + 4) + flexible


#: Every version of the version table, requests and responses.
MESSAGES = tuple(
    Message(api, version, is_request)
    for api, (low, high) in SERVED.items()
    for version in range(low, high + 1)
    for is_request in (True, False)
)


# -- bodies -----------------------------------------------------------------------------------------------------------


def random_body(entity: type[Any], rng: random.Random, *, elements: int = 2) -> dict[str, Any]:
    """A body with all fields set. Arrays have `elements` entries, nested ones one less (but at least 1)."""
    return {field.name: _value(field, rng, elements) for field in fields_of(entity)}


def _value(field: Field, rng: random.Random, elements: int) -> Any:
    def one() -> Any:
        if field.nested is not None:
            return random_body(field.nested, rng, elements=max(elements - 1, 1))
        return _KINDS[field.kind](rng)

    return tuple(one() for _ in range(elements)) if field.is_array else one()


def _integer(bits: int) -> Callable[[random.Random], int]:
    return lambda rng: rng.choice((0, 1, -1, rng.getrandbits(bits - 1)))


def _duration(rng: random.Random) -> datetime.timedelta:
    return datetime.timedelta(milliseconds=rng.choice((0, 1, 100)))


_KINDS: dict[str, Callable[[random.Random], Any]] = {
    "int8": _integer(8),
    "int16": _integer(16),
    "int32": _integer(32),
    "int64": _integer(64),
    "uint16": lambda rng: rng.getrandbits(16),
    "bool": lambda rng: rng.random() < 0.5,
    "float64": lambda rng: rng.random(),
    "string": lambda rng: f"fuzz-{rng.getrandbits(4)}",  # few, since each may become a topic
    "bytes": lambda rng: rng.randbytes(rng.choice((0, 3, 200))),
    "records": lambda rng: rng.randbytes(rng.choice((0, 3, 200))),
    "uuid": lambda rng: uuid.UUID(int=rng.getrandbits(128) | 1),
    "error_code": lambda rng: rng.choice(list(ErrorCode)),
    "timedelta_i32": _duration,
    "timedelta_i64": _duration,
    "datetime_i64": lambda rng: datetime.datetime.fromtimestamp(rng.randrange(4_000_000_000), datetime.UTC),
}


# -- marks ------------------------------------------------------------------------------------------------------------


def marks(message: Message, frame: bytes) -> list[Mark]:
    """The marks of a whole frame from `message.encoded`, in the order of the bytes."""
    walk = _Walk(frame, message.body_at)
    walk.entity(message.entity, "")
    assert walk.at == len(frame), f"{message}: {len(frame) - walk.at} bytes were not walked"
    return walk.marks


def minimal_body(entity: type[Any], path: tuple[str, ...], count: int) -> bytes:
    """The smallest encoding of `entity`, except for `count` elements in the array at `path`."""
    flexible = is_flexible(entity)
    out = b""
    for field in fields_of(entity):
        if field.tag is not None:
            continue
        inside = path[1:] if path[:1] == (field.name,) else None
        if not field.is_array:
            out += _smallest(field, inside or (), count, flexible)
            continue
        number = 0 if inside is None else 1 if inside else count
        element = _smallest(field, inside or (), count, flexible)
        out += (uvarint(number + 1) if flexible else number.to_bytes(4, "big")) + element * number
    return out + (b"\0" if flexible else b"")


def _smallest(field: Field, path: tuple[str, ...], count: int, flexible: bool) -> bytes:
    if field.nested is not None:
        if field.nullable and not field.is_array:
            return b"\xff"
        return minimal_body(field.nested, path, count)
    if field.kind in FIXED_BYTES:
        return bytes(FIXED_BYTES[field.kind])
    return b"\1" if flexible else bytes(2 if field.kind == "string" else 4)


def arrays_of(entity: type[Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all arrays outside tag sections."""
    for field in fields_of(entity):
        if field.tag is None and field.is_array:
            yield (*above, field.name)
            if field.nested is not None:
                yield from arrays_of(field.nested, (*above, field.name))


class _Walk:
    def __init__(self, frame: bytes, at: int) -> None:
        self.frame = frame
        self.at = at
        self.marks: list[Mark] = []

    def entity(self, entity: type[Any], path: str) -> None:
        flexible = is_flexible(entity)
        fields = fields_of(entity)
        for field in fields:
            if field.tag is None:
                self._field(field, path, flexible)
        if flexible:
            self._tags({field.tag: field for field in fields}, path)

    def _field(self, field: Field, path: str, flexible: bool) -> None:
        name = f"{path}{field.name}"
        if not field.is_array:
            self._value(field, name, flexible)
            return
        for _ in range(self._size(Kind.COUNT, 4, name, flexible)):
            self._value(field, name, flexible)

    def _value(self, field: Field, name: str, flexible: bool) -> None:
        if field.nested is not None:
            if field.nullable and not field.is_array and field.tag is None:
                self._mark(Kind.NUMBER, 1, name)
                if self.frame[self.at - 1] == 0xFF:
                    return
            self.entity(field.nested, f"{name}.")
        elif field.kind in FIXED_BYTES:
            self._mark(Kind.NUMBER, FIXED_BYTES[field.kind], name)
        else:
            length = self._size(Kind.LENGTH, 2 if field.kind == "string" else 4, name, flexible)
            self._mark(Kind.CONTENT, max(length, 0), name)

    def _tags(self, known: Mapping[int | None, Field], path: str) -> None:
        begin = self.at
        count = self._uvarint()
        self.marks.append(Mark(Kind.TAGS, begin, self.at - begin, True, f"{path}tags"))
        for _ in range(count):
            field = known[self._uvarint()]
            self._uvarint()
            self._field(field, path, True)

    def _size(self, kind: Kind, width: int, name: str, flexible: bool) -> int:
        begin = self.at
        if flexible:
            value = self._uvarint() - 1
        else:
            self.at += width
            value = int.from_bytes(self.frame[begin : self.at], "big", signed=True)
        self.marks.append(Mark(kind, begin, self.at - begin, flexible, name))
        return value

    def _mark(self, kind: Kind, size: int, name: str) -> None:
        self.marks.append(Mark(kind, self.at, size, False, name))
        self.at += size

    def _uvarint(self) -> int:
        value = shift = 0
        while True:
            byte = self.frame[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
