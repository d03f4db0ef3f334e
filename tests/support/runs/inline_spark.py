"""The part of Spark that the pipeline's job uses, without a JVM: everything runs immediately, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kernel.platform.places import arrow_source, exists, place_of

Batches = Iterable[pa.RecordBatch]
Views = dict[str, pa.Table]


class InlineSpark:
    """Stands in for a session with `parallelism` cores, each of which does a task at a time."""

    def __init__(self, parallelism: int) -> None:
        self.conf = _Conf({"spark.sql.shuffle.partitions": str(parallelism)})
        self._views: Views = {}

    def addTag(self, name: str) -> None:  # noqa: N802 - Spark's name
        """Nobody looks at them."""

    def removeTag(self, name: str) -> None:  # noqa: N802 - Spark's name
        """Likewise."""

    def createDataFrame(self, rows: pa.Table, schema: StructType | None = None) -> _Frame:  # noqa: N802 - Spark's name
        return _Frame(rows if schema is None else rows.cast(to_arrow_schema(schema)), len(rows), self._views)

    @property
    def read(self) -> _Reader:
        return _Reader(self._views)

    def sql(self, query: str) -> _Frame:
        with duckdb.connect(config={"threads": 1}) as database:
            for name, table in self._views.items():
                database.register(name, table)
            return _Frame(database.sql(query).to_arrow_table(), 1, self._views)


class _Conf:
    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings

    def get(self, name: str, default: str | None = None) -> str | None:
        return self._settings.get(name, default)

    def set(self, name: str, value: str) -> None:
        self._settings[name] = value


class _Reader:
    def __init__(self, views: Views) -> None:
        self._views = views

    def schema(self, schema: StructType) -> _Reader:
        return self

    def parquet(self, *paths: str) -> _Frame:
        tables = [pq.read_table(**arrow_source(place_of(path)), partitioning=None) for path in paths]
        return _Frame(pa.concat_tables(tables), 1, self._views)

    def text(self, path: str) -> _Frame:
        assert exists(place_of(path))
        return _Frame(pa.table({"value": pa.array([], pa.string())}), 1, self._views)


class _Frame:
    """A DataFrame, computed, and the number of tasks that share it."""

    def __init__(self, rows: pa.Table, tasks: int, views: Views) -> None:
        self._rows, self._tasks, self._views = rows, tasks, views

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802 - Spark's name
        self._views[name] = self._rows

    def mapInArrow(self, task: Callable[[Batches], Batches], schema: StructType) -> _Frame:  # noqa: N802 - Spark's name
        edges = [len(self._rows) * place // max(1, self._tasks) for place in range(self._tasks + 1)]
        shares = [self._rows.slice(low, high - low) for low, high in pairwise(edges)]
        found = [batch for share in shares for batch in task(iter(share.to_batches()))]
        return _Frame(pa.Table.from_batches(found, to_arrow_schema(schema)), self._tasks, self._views)

    def groupBy(self, *names: str) -> _Groups:  # noqa: N802 - Spark's name
        return _Groups(self._rows, names, self._views)

    @property
    def columns(self) -> list[str]:
        return list(self._rows.column_names)

    def collect(self) -> list[tuple[object, ...]]:
        return list(zip(*self._rows.to_pydict().values(), strict=True))

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        return self._rows


class _Groups:
    def __init__(self, rows: pa.Table, names: tuple[str, ...], views: Views) -> None:
        self._rows, self._names, self._views = rows, names, views

    def applyInArrow(self, task: Callable[[pa.Table], pa.Table], schema: StructType) -> _Frame:  # noqa: N802 - Spark's name
        keys = list(zip(*(self._rows[name].to_pylist() for name in self._names), strict=True))
        groups = [self._rows.filter(pa.array([each == key for each in keys])) for key in dict.fromkeys(keys)]
        found = [batch for group in groups for batch in task(group).to_batches()]
        return _Frame(pa.Table.from_batches(found, to_arrow_schema(schema)), len(groups), self._views)
