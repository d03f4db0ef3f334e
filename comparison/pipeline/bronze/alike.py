"""Read at once the lines of a chunk that differ in their numbers only.

A long trace is mostly polls and requests of one process: lines of one kind with the same texts, and numbers of the same
lengths. Such lines are rows of a matrix of bytes in which most columns are constant. One of them is decoded with every
check; the others have the same bytes outside of its numbers, and digits within, so that the numbers are all that is
left to read, a column of digits at a time. This takes a fifth of the time of decoding lines into objects.

Whatever has no likes is left to the decoder (`comparison.pipeline.bronze.decode`): lines with lists or objects, with
escapes, with a field that we do not know, rare lines, and every line that is no event.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

#: Fewer lines are decoded as fast one by one.
LINES_MIN = 200
#: How often lines of one length may turn out to have no likes until the rest of them is left.
_FRUITLESS_MAX = 12
#: A field of an event without lists, objects, and escapes in texts. Longer numbers may not fit into 64 bits.
_FIELD = re.compile(rb'[{,]"(\w+)":(?:-?(\d{1,18})(?=[,}])|"[^"\\]*"|null|true|false)')
_WORD = 8


class Group(NamedTuple):
    """Lines of one kind that are alike, in order."""

    lines: NDArray[np.int64]  #: by their numbers in the chunk, from 0
    event: Any  #: one of them, for what they have in common
    numbers: Mapping[str, NDArray[np.int64]]  #: the fields in which they differ


@dataclass(slots=True)
class Alike:
    """What was read of a chunk, by kind, and the lines that were not."""

    groups: dict[str, list[Group]] = field(default_factory=dict)
    rest: bytes = b""
    rest_lines: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


class _Shape(NamedTuple):
    """Where a line has its numbers: the digits of all of them, in order, and how many digits each has."""

    event: Any
    names: list[str]
    signs: list[int]
    widths: list[int]
    digits: NDArray[np.int64]


def read_alike(chunk: bytes, decode: Callable[[bytes], Any]) -> Alike:
    """Read the lines of a chunk that are alike. `decode` makes an event of a line, or None if it cannot be used."""
    text = np.frombuffer(chunk, dtype=np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    if len(ends) == 0 or ends[-1] + 1 < len(text):
        ends = np.append(ends, len(text))  # the last line has no end
    starts = np.append(0, ends[:-1] + 1)
    lengths = ends - starts
    order = np.argsort(lengths, kind="stable")
    edges = np.flatnonzero(np.diff(lengths[order], prepend=-1, append=-1))
    is_read = np.zeros(len(ends), dtype=np.bool_)
    found = Alike()
    for low, high in pairwise(edges.tolist()):
        lines = order[low:high]
        width = int(lengths[lines[0]])
        padded = -(-width // _WORD) * _WORD
        lines = lines[starts[lines] + padded <= len(text)]
        if len(lines) < LINES_MIN or width == 0:
            continue
        rows = np.lib.stride_tricks.sliding_window_view(text, padded)[starts[lines]]
        for group in _groups_of(rows, width, lines, decode):
            found.groups.setdefault(type(group.event).__name__, []).append(group)
            is_read[group.lines] = True
    found.rest_lines = np.flatnonzero(~is_read)
    # Neighbours are copied together.
    changes = np.flatnonzero(np.diff(is_read, prepend=True, append=True)).tolist()
    found.rest = b"".join(
        chunk[starts[first] : ends[behind - 1] + 1] for first, behind in zip(changes[::2], changes[1::2], strict=True)
    )
    return found


def _groups_of(
    rows: NDArray[np.uint8], width: int, lines: NDArray[np.int64], decode: Callable[[bytes], Any]
) -> list[Group]:
    """The groups among lines of one length; `rows` are their bytes, and a few that follow."""
    found = []
    fruitless = 0
    while len(lines) >= LINES_MIN and fruitless < _FRUITLESS_MAX:
        shape = _shape_of(rows[0, :width].tobytes(), decode)
        if shape is None:
            alike = np.arange(len(lines)) == 0
        else:
            alike, digits = _alike(rows, width, shape)
            if np.count_nonzero(alike) >= LINES_MIN:
                every = bool(alike.all())
                numbers = _numbers(digits if every else digits[alike], shape)
                if _are_usable(rows if every else rows[alike], width, numbers, decode):
                    found.append(Group(lines if every else lines[alike], shape.event, numbers))
                    fruitless -= 1
        fruitless += 1
        rows, lines = rows[~alike], lines[~alike]
    return found


def _shape_of(line: bytes, decode: Callable[[bytes], Any]) -> _Shape | None:
    """None unless the line is an ordinary event with known fields."""
    fields = list(_FIELD.finditer(line))
    names = [each[1].decode() for each in fields]
    end = 0
    for each in fields:
        if each.start() != end:
            return None
        end = each.end()
    if line[end:] != b"}" or len(set(names)) < len(names) or (event := decode(line)) is None:
        return None
    if not {*names} - {"kind"} <= {*event.__struct_fields__}:
        return None
    numbers = [(name, each) for name, each in zip(names, fields, strict=True) if each[2] is not None]
    return _Shape(
        event,
        [name for name, _ in numbers],
        [-1 if line[each.start(2) - 1 : each.start(2)] == b"-" else 1 for _, each in numbers],
        [len(each[2]) for _, each in numbers],
        np.array([place for _, each in numbers for place in range(*each.span(2))], dtype=np.int64),
    )


def _alike(rows: NDArray[np.uint8], width: int, shape: _Shape) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
    """Which rows have the first one's bytes outside of its numbers, and numbers as JSON has them; and all digits."""
    mask = np.zeros(rows.shape[1], dtype=np.uint8)
    mask[:width] = 0xFF
    mask[shape.digits] = 0
    words = rows.view(np.uint64)
    alike = ~(((words ^ words[0]) & mask.view(np.uint64)).any(axis=1))
    digits = rows[:, shape.digits] - np.uint8(ord("0"))
    alike &= (digits < 10).all(axis=1)
    place = 0
    for count in shape.widths:
        if count > 1:  # JSON has no leading zeros
            alike &= digits[:, place] != 0
        place += count
    return alike, digits


def _numbers(digits: NDArray[np.uint8], shape: _Shape) -> dict[str, NDArray[np.int64]]:
    columns = np.ascontiguousarray(digits.T)
    found = {}
    place = 0
    for name, sign, count in zip(shape.names, shape.signs, shape.widths, strict=True):
        value = columns[place].astype(np.int64)
        for column in columns[place + 1 : place + count]:
            value *= 10
            value += column
        found[name] = value if sign > 0 else -value
        place += count
    return found


def _are_usable(
    rows: NDArray[np.uint8], width: int, numbers: Mapping[str, NDArray[np.int64]], decode: Callable[[bytes], Any]
) -> bool:
    """Whether the decoder takes all of them: limits are intervals, so the smallest and the largest of each decide."""
    ends = {int(place) for values in numbers.values() for place in (values.argmin(), values.argmax())}
    return all(decode(rows[place, :width].tobytes()) is not None for place in sorted(ends))
