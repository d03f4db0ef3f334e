"""Check the counts and lengths of a message against the remaining bytes before it is decoded.

kio's native reader allocates memory for the announced number of elements before it reads them: 20 bytes can request
34 GB, and a failed allocation aborts the process. So the count of each array is checked first:

- The remaining bytes must suffice for the smallest encoding of all elements. (Kafka's generated readers check the
  same, but count one byte for each element.)
- All arrays of a message together hold at most `elements_max` elements. The size of the message is too weak a bound:
  an empty element of one to three bytes becomes a Python object of hundreds.
- A count below -1 is refused. So is -1 (null) if the schema does not allow null; kio would decode it as None.

The check walks the message along its schema, with closures that are prepared once for each class. It is cheap because
it stops at the last count: it skips a message without arrays (Heartbeat), and walks only the few fields before the one
array of JoinGroup and SyncGroup, and the first fields of an OffsetCommit for one topic. It reads positions exactly as
kio does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from kernel.wire.errors import MalformedFrame
from kernel.wire.schema import FIXED_BYTES, Field, fields_of, is_flexible

_INT = struct.Struct(">i")

#: The maximum of all arrays of a request together, which the broker decodes in one turn of its loop. A frame of 100 MiB
#: has room for 100 million elements.
REQUEST_ELEMENTS_MAX = 150_000
#: The same for a response. It is higher because responses are larger (Metadata of 100,000 partitions with replicas).
RESPONSE_ELEMENTS_MAX = 2_000_000

#: (frame, offset of the message) -> None. Raises `MalformedFrame`.
Check = Callable[[bytes, int], None]

#: (frame, offset, [elements still allowed]) -> the offset after a part.
_Step = Callable[[bytes, int, list[int]], int]


class _Part(NamedTuple):
    """How to step over a part of a message."""

    step: _Step
    least: int  #: size of its smallest encoding, in bytes
    fixed: bool  #: whether every encoding has that size
    counted: bool  #: whether it contains an array


def check_of(entity: type[Any], *, elements_max: int) -> Check | None:
    """The check of a whole message; None for a message without arrays."""
    name = f"{entity.__name__} version {entity.__version__}"
    walk = _up_to_the_last_count(entity, "")
    if walk is None:
        return None

    def check(frame: bytes, at: int) -> None:
        try:
            walk(frame, at, [elements_max])
        except (IndexError, struct.error):
            raise MalformedFrame(f"not a {name}: it is truncated") from None
        except _OutOfBoundsError as error:
            raise MalformedFrame(f"{error} in a {name}") from None

    return check


class _OutOfBoundsError(Exception):
    """A count or a length is invalid; the message says why."""


# -- entities ---------------------------------------------------------------------------------------------------------


def _up_to_the_last_count(entity: type[Any], path: str) -> _Step | None:
    """A walk that stops after the last count of the last array; None without arrays."""
    untagged, tagged = _parts(entity, path)
    if any(part.counted for part in tagged.values()):
        return _whole(entity, path).step
    counted = [place for place, (_, part) in enumerate(untagged) if part.counted]
    if not counted:
        return None
    last = counted[-1]
    steps = _joined([part for _, part in untagged[:last]], [_last_count(untagged[last][0], path, is_flexible(entity))])
    return _chain(steps)


def _whole(entity: type[Any], path: str) -> _Part:
    """A walk over a whole entity."""
    untagged, tagged = _parts(entity, path)
    parts = [part for _, part in untagged]
    if is_flexible(entity):
        known = {tag: part.step for tag, part in tagged.items()}
        counted = any(part.counted for part in tagged.values())
        parts.append(_Part(_tag_section(known), least=1, fixed=False, counted=counted))
    least = sum(part.least for part in parts)
    if all(part.fixed for part in parts):
        return _Part(_skip(least), least, fixed=True, counted=False)
    return _Part(_chain(_joined(parts, [])), least, fixed=False, counted=any(part.counted for part in parts))


def _parts(entity: type[Any], path: str) -> tuple[list[tuple[Field, _Part]], dict[int, _Part]]:
    """The untagged fields in wire order, and the tagged ones by tag."""
    flexible = is_flexible(entity)
    fields = fields_of(entity)
    untagged = [(field, _part(field, path, flexible)) for field in fields if field.tag is None]
    return untagged, {field.tag: _part(field, path, flexible) for field in fields if field.tag is not None}


def _part(field: Field, path: str, flexible: bool) -> _Part:
    if field.is_array:
        element = _element(field, path, flexible)
        count = _count_reader(field, path, flexible, element.least)
        return _Part(_array(count, element), 1 if flexible else 4, fixed=False, counted=True)
    whole = _element(field, path, flexible)
    if field.nested is not None and field.nullable and field.tag is None:
        return _Part(_nullable(whole.step), 1, fixed=False, counted=whole.counted)
    return whole


def _element(field: Field, path: str, flexible: bool) -> _Part:
    """The field itself, or one element of it."""
    if field.nested is not None:
        return _whole(field.nested, f"{path}{field.name}.")
    size = FIXED_BYTES.get(field.kind)
    if size is not None:
        return _Part(_skip(size), size, fixed=True, counted=False)
    if flexible:
        return _Part(_step_over_compact, 1, fixed=False, counted=False)
    if field.kind == "string":
        return _Part(_step_over_text, 2, fixed=False, counted=False)
    return _Part(_step_over_bytes, 4, fixed=False, counted=False)


def _joined(parts: list[_Part], last: list[_Step]) -> list[_Step]:
    """The steps of the parts, with adjacent parts of fixed size merged, and then `last`."""
    steps: list[_Step] = []
    fixed = 0
    for part in parts:
        if part.fixed:
            fixed += part.least
            continue
        if fixed:
            steps.append(_skip(fixed))
            fixed = 0
        steps.append(part.step)
    return [*steps, *([_skip(fixed)] if fixed else []), *last]


def _chain(steps: list[_Step]) -> _Step:
    if len(steps) == 1:
        return steps[0]

    def step(frame: bytes, at: int, left: list[int]) -> int:
        for one in steps:
            at = one(frame, at, left)
        return at

    return step


# -- arrays -----------------------------------------------------------------------------------------------------------

_CountReader = Callable[[bytes, int, list[int]], tuple[int, int]]


def _count_reader(field: Field, path: str, flexible: bool, least: int) -> _CountReader:
    """A function that reads and checks a count: (number of elements, offset of the first)."""
    name = f"{path}{field.name}"

    def read(frame: bytes, at: int, left: list[int]) -> tuple[int, int]:
        if flexible:
            count, at = _uvarint(frame, at)
            count -= 1
        else:
            (count,) = _INT.unpack_from(frame, at)
            at += 4
        if count <= 0:
            if count < -1:
                raise _OutOfBoundsError(f"{name} announces {count} elements")
            if count < 0 and not field.nullable:
                raise _OutOfBoundsError(f"{name} is null")
            return 0, at
        if count * least > len(frame) - at:
            raise _OutOfBoundsError(f"{name} announces {count} elements, but only {len(frame) - at} bytes are left")
        _take(left, count, name)
        return count, at

    return read


def _take(left: list[int], count: int, name: str) -> None:
    if count > left[0]:
        raise _OutOfBoundsError(f"{name} announces {count} elements, but only {left[0]} more are allowed")
    left[0] -= count


def _array(count_of: _CountReader, element: _Part) -> _Step:
    if element.fixed:

        def skip(frame: bytes, at: int, left: list[int]) -> int:
            count, at = count_of(frame, at, left)
            return at + count * element.least

        return skip
    over = element.step

    def step(frame: bytes, at: int, left: list[int]) -> int:
        count, at = count_of(frame, at, left)
        for _ in range(count):
            at = over(frame, at, left)
        return at

    return step


def _last_count(field: Field, path: str, flexible: bool) -> _Step:
    """A walk over the last field that contains an array, up to the last count in its last element."""
    inner = None if field.nested is None else _up_to_the_last_count(field.nested, f"{path}{field.name}.")
    if not field.is_array:
        assert inner is not None, f"there is an array in {field.name}"
        return _nullable(inner) if field.nullable else inner
    element = _element(field, path, flexible)
    count_of = _count_reader(field, path, flexible, element.least)

    def step(frame: bytes, at: int, left: list[int]) -> int:
        count, at = count_of(frame, at, left)
        if inner is not None and count:
            for _ in range(count - 1):
                at = element.step(frame, at, left)
            inner(frame, at, left)
        return at

    return step


# -- values with a size -----------------------------------------------------------------------------------------------


def _skip(size: int) -> _Step:
    return lambda _frame, at, _left: at + size


def _nullable(whole: _Step) -> _Step:
    """A nullable struct, whose first byte is -1 for null."""

    def step(frame: bytes, at: int, left: list[int]) -> int:
        return at + 1 if frame[at] == 0xFF else whole(frame, at + 1, left)

    return step


def _step_over_compact(frame: bytes, at: int, _left: list[int]) -> int:
    """A compact string or bytes: the length plus one, then the data; 0 is null."""
    length = frame[at]
    if length & 0x80:
        length, at = _uvarint(frame, at)
        return at + max(length - 1, 0)
    return at + (length or 1)


def _step_over_text(frame: bytes, at: int, _left: list[int]) -> int:
    length = frame[at] << 8 | frame[at + 1]
    return at + 2 + (_not_negative(length - 0x10000) if length & 0x8000 else length)


def _step_over_bytes(frame: bytes, at: int, _left: list[int]) -> int:
    (length,) = _INT.unpack_from(frame, at)
    return int(at + 4 + (_not_negative(length) if length < 0 else length))


def _not_negative(length: int) -> int:
    if length != -1:
        raise _OutOfBoundsError(f"a length of {length} bytes")
    return 0


def _tag_section(known: dict[int, _Step]) -> _Step:
    """A known field ends where its content ends, whatever its announced size; kio and Kafka read it so too."""

    def step(frame: bytes, at: int, left: list[int]) -> int:
        if not frame[at]:
            return at + 1
        count, at = _uvarint(frame, at)
        _take(left, count, "a tag section")
        for _ in range(count):
            tag, at = _uvarint(frame, at)
            size, at = _uvarint(frame, at)
            over = known.get(tag)
            at = at + size if over is None else over(frame, at, left)
        return at

    return step


def _uvarint(frame: bytes, at: int) -> tuple[int, int]:
    """Read an unsigned variable-length integer: (value, offset after it)."""
    byte = frame[at]
    value = byte & 0x7F
    shift = 7
    while byte & 0x80:
        if shift > 28:
            raise _OutOfBoundsError(f"a variable-length integer that ends at offset {at + 1} has more than five bytes")
        at += 1
        byte = frame[at]
        value |= (byte & 0x7F) << shift
        shift += 7
    return value, at + 1
