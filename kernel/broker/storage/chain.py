"""Which file holds which offsets of a log. Pure.

Each leadership of a partition (a *term*) writes its own rows, in the file of its broker incarnation. What a successor
takes over is a list of segments, one per term, each cut at the end offset that the successor's read snapshot saw: what
a paused predecessor commits later lies beyond the cut, and is ignored.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Segment:
    """Offsets from `start` (inclusive) to `end` (exclusive) are in the rows of term `term` in `file`."""

    file: str
    term: int
    leader_epoch: int
    start: int
    end: int


Chain = tuple[Segment, ...]


def extended(chain: Chain, segment: Segment) -> Chain:
    """`chain` followed by `segment`. Empty segments are left out, so that idle leaders leave no trace."""
    assert segment.start <= segment.end, segment
    if chain:
        assert chain[-1].end == segment.start, f"a gap or an overlap between {chain[-1]} and {segment}"
    return chain if segment.start == segment.end else (*chain, segment)


def from_offset(chain: Sequence[Segment], offset: int) -> Sequence[Segment]:
    """The segments from the one that holds `offset` on; all of them when `offset` lies before the first."""
    position = bisect_right(chain, offset, key=lambda segment: segment.start)
    return chain[max(position - 1, 0) :]


def trimmed(chain: Chain, start: int, before: int) -> tuple[Chain, int]:
    """(chain, start of the term after it) with everything below `before` removed; see `storage.trimming`."""
    left = tuple(replace(one, start=max(one.start, before)) for one in chain if one.end > before)
    return left, max(start, before) if not left else start


def to_json(chain: Chain) -> str:
    return json.dumps([astuple(segment) for segment in chain])


def from_json(text: str) -> Chain:
    return tuple(Segment(*fields) for fields in json.loads(text))
