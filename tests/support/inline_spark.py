"""The part of Spark that the pipeline's jobs use, without a JVM: everything runs immediately, in this process."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Mapped = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    Applied = Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]


class InlineSpark:
    """Stands in for a session with `parallelism` cores."""

    def __init__(self, parallelism: int) -> None:
        self.sparkContext = SimpleNamespace(defaultParallelism=parallelism, broadcast=_Broadcast)

    def range(self, start: int, end: int, step: int, partitions: int) -> _Rows:
        numbers = range(start, end, step)
        edges = [len(numbers) * place // partitions for place in range(partitions + 1)]
        return _Rows([pa.record_batch({"id": list(numbers[low:high])}) for low, high in pairwise(edges)])


class _Broadcast:
    def __init__(self, value: Any) -> None:
        self.value = value

    def destroy(self) -> None:
        del self.value


class _Rows:
    """Record batches, each of which is a partition."""

    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        self._batches = batches

    def mapInArrow(self, task: Mapped, _: str) -> _Rows:  # noqa: N802 - Spark's name
        return _Rows([found for batch in self._batches for found in task(iter([batch]))])

    def groupBy(self, column: str) -> _Groups:  # noqa: N802 - Spark's name
        return _Groups(pa.Table.from_batches(self._batches), column)

    def collect(self) -> list[dict[str, Any]]:
        return [row for batch in self._batches for row in batch.to_pylist()]


class _Groups:
    def __init__(self, table: pa.Table, column: str) -> None:
        self._table, self._column = table, column

    def applyInArrow(self, measure: Applied, _: str) -> _Rows:  # noqa: N802 - Spark's name
        keys = self._table[self._column]
        groups = [measure((key,), self._table.filter(pa.compute.equal(keys, key))) for key in pa.compute.unique(keys)]
        return _Rows([batch for group in groups for batch in group.to_batches()])
