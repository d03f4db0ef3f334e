"""Few files instead of many: after an analysis, small files of each table are put together with their neighbours.

Runs that are added one by one would leave a file each in every table, some forty for a run. A part of the events may
grow to the size of a run that one task still reads whole; of smaller ones, and of small files of what was measured,
SMALL_MAX stay. Those two become one that are smallest together, so that few bytes are written again.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from comparison.pipeline.bronze.chunks import WHOLE_RUN_BYTES
from comparison.pipeline.bronze.tables import write_table
from comparison.pipeline.carried import MEASURED, READ, number_of
from comparison.pipeline.reading import PartRead
from comparison.pipeline.remembered import ReadParts
from kernel.platform.places import arrow_source, exists, remove, sizes_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comparison.pipeline.bronze.chunks import Part
    from kernel.platform.places import Place

#: How many small files a table may have.
SMALL_MAX = 5
_FILES = "part-*.parquet"
#: A file of what was measured is no longer small from here on.
_MEASURED_BYTES = 32 * 1024 * 1024


class _Sized(NamedTuple):
    """Numbers of files that become one, which has the first, and how large they are together."""

    numbers: tuple[int, ...]
    size: int


def compacted(folder: Place, read: ReadParts) -> ReadParts:
    """Put small files of the tables in `folder` together; what is then in each part of the events."""
    for name in MEASURED:
        files = sorted(sizes_below(folder / name, _FILES).items())
        for group in _grouped([_Sized((number_of(path),), size) for path, size in files], _MEASURED_BYTES):
            _join(folder / name, group.numbers)
    whole = sorted((part for part in read.parts if part.whole), key=lambda part: part.number)
    groups = _grouped([_Sized((part.number,), _size(part)) for part in whole], WHOLE_RUN_BYTES)
    for group in groups:
        for name in READ:
            for place in {path.parent for path in sizes_below(folder / name, _FILES)}:
                _join(place, group.numbers)
    return _joined_parts(read, groups)


def _grouped(files: Sequence[_Sized], limit: int) -> list[_Sized]:
    """Which neighbours become one, so that at most SMALL_MAX are small."""
    small = [each for each in files if each.size < limit]
    while len(small) > SMALL_MAX:
        size, place = min((one.size + other.size, place) for place, (one, other) in enumerate(pairwise(small)))
        if size > limit:
            break
        small[place : place + 2] = [_Sized(small[place].numbers + small[place + 1].numbers, size)]
    return [each for each in small if len(each.numbers) > 1]


def _size(part: Part) -> int:
    return sum(chunk.end - chunk.start for chunk in part.chunks)


def _join(folder: Place, numbers: Iterable[int]) -> None:
    """Put the files of these numbers together in the first's; those that are there."""
    first, *others = (folder / f"part-{number:05}.parquet" for number in numbers)
    there = [path for path in (first, *others) if exists(path)]
    if there in ([], [first]):
        return
    tables = [pq.read_table(**arrow_source(path), partitioning=None) for path in there]
    write_table(first, pa.concat_tables(tables, promote_options="default"))
    for path in others:
        remove(path)


def _joined_parts(read: ReadParts, groups: Sequence[_Sized]) -> ReadParts:
    first = {number: group.numbers[0] for group in groups for number in group.numbers}
    found: dict[int, tuple[Part, PartRead]] = {}
    for part, result in sorted(zip(*read, strict=True), key=lambda each: each[0].number):
        number = first.get(part.number, part.number)
        if number in found:
            whole, known = found[number]
            whole = replace(whole, chunks=whole.chunks + part.chunks)
            found[number] = whole, PartRead(number, known.read + result.read)
        else:
            found[number] = part, result
    return ReadParts([part for part, _ in found.values()], [result for _, result in found.values()])
