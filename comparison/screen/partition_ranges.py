"""Partitions as a user reads them: three or more in a row as a range, `t-4..7`."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kernel.values import TopicPartition
Shared = TypeVar("Shared")


def in_ranges(sorted_rows: Iterable[tuple[TopicPartition, Shared]]) -> Iterator[tuple[str, Shared, int]]:
    """A text for each range or partition, what its partitions have in common, and how many they are."""
    # In a row: the number grows as fast as the place.
    for (_, _, shared), group in groupby(
        enumerate(sorted_rows), lambda at: (at[1][0].partition - at[0], at[1][0].topic, at[1][1])
    ):
        tps = [tp for _, (tp, _) in group]
        if len(tps) > 2:
            yield f"{tps[0]}..{tps[-1].partition}", shared, len(tps)
        else:
            yield from ((str(tp), shared, 1) for tp in tps)


def ranges_text(partitions: Iterable[TopicPartition]) -> str:
    """`t-0, t-4..7`, sorted."""
    return ", ".join(text for text, _, _ in in_ranges((tp, None) for tp in sorted(partitions)))
