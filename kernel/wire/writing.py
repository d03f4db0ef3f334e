"""Write messages from plain mappings, so that one handler serves every version of its API.

- A name that only other versions of the API have is left out.
- A missing name takes the schema's default, or zero, "", empty or null.
- A name that no version has is a bug and raises `KeyError`.
- Durations may be given in milliseconds, timestamps in epoch milliseconds, error codes as numbers, arrays as any
  iterable.
- None becomes "" or empty if the version does not allow null, as in the answers of Kafka's brokers.

The bytes are those of kio's writers, without an entity for each part of a message in between: fields of fixed size that
follow one another are packed at once.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kio.serial import entity_writer
from kio.serial.errors import OutOfBoundValue

from kernel.wire.errors import ErrorCode
from kernel.wire.schema import EMPTY, Field, fields_of, is_flexible, names_in_other_versions, zero_of

if TYPE_CHECKING:
    from kernel.wire.versions import Api

#: Takes the pieces of a message in order.
Add = Callable[[bytes], object]
Write = Callable[[Add, Any], object]
Convert = Callable[[Any], Any]
#: (path of an entity, names that it lacks) -> those names, which other versions have
Others = Callable[[str, frozenset[str]], frozenset[str]]

_SHORT_MAX = 2**15 - 1


def writer(entity: type[Any], api: Api, *, request: bool) -> Write:
    """A function that writes a message from a mapping; make it once for each class."""
    return _entity(entity, functools.partial(names_in_other_versions, api, entity.__version__, request=request), "")


class _Buffer:
    """What kio writes to."""

    __slots__ = ("write",)

    def __init__(self, add: Add) -> None:
        self.write = add


def _entity(entity: type[Any], others: Others, path: str) -> Write:
    fields = fields_of(entity)
    flexible = is_flexible(entity)
    ordinary = [field for field in fields if field.tag is None]
    tagged = sorted((field for field in fields if field.tag is not None), key=lambda field: field.tag or 0)
    steps: list[Write] = []
    for fixed, group in itertools.groupby(ordinary, _is_packed):
        if fixed:
            run = list(group)
            # An entity without tagged fields ends in their number: 0, which is a pad byte of the last run.
            steps.append(_run(run, "x" if flexible and not tagged and run[-1] is ordinary[-1] else ""))
        else:
            steps += [_field(field, _value(field, flexible, others, path)) for field in group]
    if tagged:
        steps.append(_tags([(field, _value(field, flexible, others, path)) for field in tagged]))
    elif flexible and not (ordinary and _is_packed(ordinary[-1])):
        steps.append(lambda add, _: add(b"\0"))
    known = {field.name for field in fields}

    def write(add: Add, given: Any) -> None:
        if type(given) is not dict and not isinstance(given, Mapping):
            write_entity: Any = entity_writer(entity)
            write_entity(_Buffer(add), given)
            return
        if not given.keys() <= known:
            known.update(others(path, frozenset(given.keys() - known)))
        for step in steps:
            step(add, given)

    return write


def _is_packed(field: Field) -> bool:
    return field.kind in _FIXED and not field.is_array


def _run(fields: list[Field], end: str) -> Write:
    """Fields of fixed size, packed at once; `end` is a format for what follows."""
    names = tuple(field.name for field in fields)
    defaults = tuple(zero_of(field) for field in fields)
    pack = struct.Struct(">" + "".join(_FIXED[field.kind] for field in fields) + end).pack
    converts = [(at, _CONVERTERS[field.kind]) for at, field in enumerate(fields) if field.kind in _CONVERTERS]

    def write(add: Add, given: Any) -> None:
        values = map(given.get, names, defaults)
        if converts:
            listed = list(values)
            for at, convert in converts:
                listed[at] = convert(listed[at])
            add(pack(*listed))
        else:
            add(pack(*values))

    return write


def _field(field: Field, put: Write) -> Write:
    name, default = field.name, _default(field)
    return lambda add, given: put(add, given.get(name, default))


def _default(field: Field) -> object:
    """Of a field that is not given."""
    is_entity = field.nested is not None and not field.is_array and not field.nullable
    return {} if is_entity and type(field.default) is not field.nested else zero_of(field)


def _tags(fields: list[tuple[Field, Write]]) -> Write:
    """Tagged fields (KIP-482), without those that have their default."""
    plan = [(field.name, put, length_of(field.tag or 0), joined(put, _default(field))) for field, put in fields]

    def write(add: Add, given: Any) -> None:
        found: list[bytes] = []
        for name, put, tag, default in plan:
            if name in given and (encoded := joined(put, given[name])) != default:
                found.append(tag + length_of(len(encoded)) + encoded)
        add(length_of(len(found)))
        for each in found:
            add(each)

    return write


def joined(put: Write, value: object) -> bytes:
    """What a function writes, as one piece."""
    pieces: list[bytes] = []
    put(pieces.append, value)
    return b"".join(pieces)


# -- values ----------------------------------------------------------------------------------------------------------


def _value(field: Field, flexible: bool, others: Others, path: str) -> Write:
    if field.nested is not None:
        put = _entity(field.nested, others, f"{path}.{field.name}")
    elif field.kind in _FIXED:
        put = _fixed(field)
    elif field.kind == "string":
        put = _put_compact_text if flexible else _put_text
    else:
        put = _put_compact_bytes if flexible else _put_bytes
    if field.is_array:
        return _array(put, flexible, null=None if field.nullable else EMPTY)
    if field.nested is not None:
        return _nullable_entity(put) if field.nullable else put
    if field.kind in _FIXED:
        return put
    null = b"\0" if flexible else _SHORT.pack(-1) if field.kind == "string" else _INT.pack(-1)
    return _or_null(put, null if field.nullable else joined(put, _ZEROES[field.kind]))


def _fixed(field: Field) -> Write:
    pack, convert = struct.Struct(">" + _FIXED[field.kind]).pack, _CONVERTERS.get(field.kind)
    if convert is None:
        return lambda add, value: add(pack(value))
    return lambda add, value: add(pack(convert(value)))


def _or_null(put: Write, null: bytes) -> Write:
    def write(add: Add, value: Any) -> None:
        if value is None:
            add(null)
        else:
            put(add, value)

    return write


def _nullable_entity(put: Write) -> Write:
    """With a byte in front that says whether there is one (KIP-893)."""

    def write(add: Add, value: Any) -> None:
        if value is None:
            add(b"\xff")
        else:
            add(b"\x01")
            put(add, value)

    return write


def _array(put: Write, flexible: bool, *, null: tuple[()] | None) -> Write:
    """`null`: what None becomes."""

    def write(add: Add, values: Iterable[Any] | None) -> None:
        if values is None:
            values = null
        if values is None:
            add(b"\0" if flexible else _INT.pack(-1))
            return
        if not isinstance(values, (tuple, list)):
            values = tuple(values)
        add(length_of(len(values) + 1) if flexible else _INT.pack(len(values)))
        for value in values:
            put(add, value)

    return write


def _put_text(add: Add, value: str) -> None:
    data = value.encode()
    if len(data) > _SHORT_MAX:
        raise OutOfBoundValue(f"a string of {len(data)} bytes is too long for this version (at most {_SHORT_MAX})")
    add(_SHORT.pack(len(data)) + data)


def _put_compact_text(add: Add, value: str | bytes) -> None:
    data = value.encode() if isinstance(value, str) else value
    add(length_of(len(data) + 1) + data)


def _put_bytes(add: Add, value: bytes) -> None:
    add(_INT.pack(len(value)))
    add(value)


def _put_compact_bytes(add: Add, value: bytes) -> None:
    add(length_of(len(value) + 1))
    add(value)


def length_of(value: int) -> bytes:
    """A number of variable length, as compact sizes are."""
    if value < len(_SMALL):
        return _SMALL[value]
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _duration_ms(value: Any) -> int:
    if type(value) is int:
        return value
    given = value if isinstance(value, datetime.timedelta) else datetime.timedelta(milliseconds=value)
    return round(given.total_seconds() * 1000)


def _epoch_ms(value: Any) -> int:
    if isinstance(value, int):
        return max(value, -1)
    return -1 if value is None else round(value.timestamp() * 1000)


def _code(value: Any) -> int:
    return ErrorCode(value).value


def _uuid(value: Any) -> bytes:
    return _NO_UUID if value is None else value.bytes


_SHORT, _INT = struct.Struct(">h"), struct.Struct(">i")
_SMALL = [bytes((number,)) for number in range(128)]
_NO_UUID = bytes(16)
_ZEROES: dict[str, Any] = {"string": "", "bytes": b"", "records": b""}

#: {kind: format for `struct`}
_FIXED = {
    "int8": "b",
    "bool": "?",
    "int16": "h",
    "uint16": "H",
    "error_code": "h",
    "int32": "i",
    "timedelta_i32": "i",
    "int64": "q",
    "timedelta_i64": "q",
    "datetime_i64": "q",
    "float64": "d",
    "uuid": "16s",
}

_CONVERTERS: dict[str, Convert] = {
    "error_code": _code,
    "timedelta_i32": _duration_ms,
    "timedelta_i64": _duration_ms,
    "datetime_i64": _epoch_ms,
    "uuid": _uuid,
}
