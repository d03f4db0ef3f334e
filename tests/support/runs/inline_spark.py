"""The part of Spark that the pipeline's jobs use, without a JVM: everything runs immediately, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any


class InlineSpark:
    """Stands in for a session with `parallelism` cores."""

    def __init__(self, parallelism: int) -> None:
        self.sparkContext = SimpleNamespace(
            defaultParallelism=parallelism, broadcast=_Broadcast, parallelize=_Rows.shared_out
        )


class _Broadcast:
    def __init__(self, value: Any) -> None:
        self.value = value

    def destroy(self) -> None:
        del self.value


class _Rows:
    """An RDD by its partitions."""

    def __init__(self, partitions: Iterable[list[Any]]) -> None:
        self._partitions = list(partitions)

    @classmethod
    def shared_out(cls, values: Sequence[Any], partitions: int) -> _Rows:
        edges = [len(values) * place // partitions for place in range(partitions + 1)]
        return cls(list(values[low:high]) for low, high in pairwise(edges))

    def mapPartitions(self, task: Callable[[Iterator[Any]], Iterator[Any]]) -> _Rows:  # noqa: N802 - Spark's name
        return _Rows(list(task(iter(each))) for each in self._partitions)

    def partitionBy(self, count: int, place: Callable[[Any], int]) -> _Rows:  # noqa: N802 - Spark's name
        rows = self.collect()
        return _Rows([row for row in rows if place(row[0]) % count == number] for number in range(count))

    def collect(self) -> list[Any]:
        return [row for each in self._partitions for row in each]
