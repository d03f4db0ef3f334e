"""Reduce a part of a run to what its partitions need, and to counts that add up.

`reduced` is what a task makes of a part of a large run, or of a whole small one. Its tables are then brought together
by partition (`comparison.pipeline.gold.partitions`), everything else by adding up.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from comparison.ownership.fold import CLAIMS
from comparison.pipeline.bronze.kinds import EVENT_SCHEMAS
from comparison.pipeline.measured import EventCount, TracedOperations  # noqa: TC001 - typed_rows reads the annotations
from comparison.pipeline.silver import bystanders, counts, hindrances, silences
from comparison.pipeline.silver.arrays import codes, integers
from comparison.pipeline.silver.course import PRODUCED_SCHEMA, STEP_SCHEMA, intervals_of, produced_of
from comparison.pipeline.silver.deliveries import (
    ACK_SCHEMA,
    CLAIM_SCHEMA,
    KEPT_SCHEMA,
    STRETCH_SCHEMA,
    acks_of,
    claims_of,
    delivered_of,
)
from comparison.pipeline.silver.hindrances import HINDRANCE_SCHEMA
from comparison.pipeline.silver.lives import told_apart
from comparison.pipeline.silver.naming import NAMING_SCHEMA, Naming, naming_rows
from comparison.pipeline.silver.offsets import (
    FINAL,
    OFFSET_SCHEMA,
    REFUSED,
    RESET,
    STARTED,
    WRITTEN,
    of_ended_sessions,
    offset_rows,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.pipeline.bronze.tables import Tables
    from comparison.pipeline.silver.context import Context


_OF_CLAIMS = ("file", "process", "member", "stream", "seq", "partitions")
_OF_NAMING = NAMING_SCHEMA.names
_OF_OFFSETS = (*OFFSET_SCHEMA.names, "committed", "member", "stream")
#: The columns that are needed of some kinds; of the others, only those that are counted by.
_NEEDED: Mapping[str, Sequence[str]] = {
    "records_delivered": (*STRETCH_SCHEMA.names, "last", "serial_last"),
    "records_acked": ("topic", "partition", "first", "last", "serial_first", "serial_last", "latency_ns"),
    "authority_named": _OF_NAMING,
    "authority_cleared": _OF_NAMING,
    "zk_op": ("latency_ns",),
    bystanders.KIND: bystanders.NEEDED,
    hindrances.REFUSED: (*hindrances.NEEDED, "topic", "partition"),
    **dict.fromkeys((hindrances.PAUSED, hindrances.RESUMED), (*hindrances.NEEDED, "partitions")),
    silences.KIND: silences.NEEDED,
    **dict.fromkeys(CLAIMS, _OF_CLAIMS),
    **dict.fromkeys((REFUSED, STARTED, RESET, FINAL), _OF_OFFSETS),
    WRITTEN: (*_OF_OFFSETS, "session"),
}


#: Tables whose texts need not be unpacked: the large ones, and those that are only counted.
ENCODED_KINDS = frozenset(EVENT_SCHEMAS) - {"zk_op", bystanders.KIND, WRITTEN, REFUSED, STARTED, RESET, FINAL}


def needed_columns(kind: str) -> list[str]:
    """The columns of a table of events that `reduced` looks at."""
    needed = {*_NEEDED.get(kind, ()), *counts.COLUMNS}
    return [name for name in EVENT_SCHEMAS[kind].names if name in needed]


@dataclass(slots=True)
class Bundle:
    """The rows of some partitions, of a run or a part of it."""

    stretches: pa.Table = field(default_factory=STRETCH_SCHEMA.empty_table)
    acks: pa.Table = field(default_factory=ACK_SCHEMA.empty_table)
    claims: pa.Table = field(default_factory=CLAIM_SCHEMA.empty_table)
    naming: pa.Table = field(default_factory=NAMING_SCHEMA.empty_table)
    offsets: pa.Table = field(default_factory=OFFSET_SCHEMA.empty_table)
    in_rounds: pa.Table = field(default_factory=KEPT_SCHEMA.empty_table)
    steps: pa.Table = field(default_factory=STEP_SCHEMA.empty_table)
    produced: pa.Table = field(default_factory=PRODUCED_SCHEMA.empty_table)
    hindrances: pa.Table = field(default_factory=HINDRANCE_SCHEMA.empty_table)

    @classmethod
    def joined(cls, parts: Sequence[Bundle]) -> Bundle:
        return cls(*(pa.concat_tables([getattr(part, each.name) for part in parts]) for each in fields(cls)))

    def shared_out(self, buckets: int) -> list[Bundle]:
        """The same rows by partition: all rows of a partition are in one bucket."""
        shares = [Bundle() for _ in range(buckets)]
        for each in fields(self):
            table = getattr(self, each.name)
            places = bucket_of(table, buckets)
            for number, share in enumerate(shares):
                setattr(share, each.name, table.filter(pa.array(places == number)))
        return shares


def bucket_of(table: pa.Table, buckets: int) -> np.ndarray:
    """The bucket of each row, by topic and partition."""
    topics, names = codes(table["topic"])
    sizes = np.array([bucket_of_topic(str(name)) for name in names] or [0], dtype=np.int64)
    return np.asarray((sizes[topics] + integers(table["partition"])) % buckets)


def bucket_of_topic(topic: str) -> int:
    """What a topic adds to its partitions' numbers, the same in every process."""
    return sum(topic.encode())


@dataclass(slots=True)
class Counted:
    """What only adds up, of a part of a run."""

    counts: list[EventCount]
    operations: list[TracedOperations]
    bystanders: bystanders.AnswersBy
    heard: silences.Heard
    bins: dict[int | None, int]
    stale_deliveries: int
    of_ended_sessions: int  #: commits stored after ZooKeeper had expired the session they were sent in
    has_commits_or_deliveries: bool


def reduced(tables: Tables, context: Context, naming: Naming | None = None) -> tuple[Bundle, Counted]:
    """Reduce one part. `naming` is the whole run's, where the part is not the whole run."""
    tables = told_apart(tables, context)
    named = naming_rows(tables)
    claims = claims_of(tables, context)
    delivered = delivered_of(tables, claims, context, naming or Naming(named))
    return (
        Bundle(
            stretches=delivered.stretches,
            acks=acks_of(tables),
            claims=claims,
            naming=named,
            offsets=offset_rows(tables, context),
            in_rounds=delivered.in_rounds,
            steps=delivered.steps,
            produced=produced_of(tables, intervals_of(context.span)),
            hindrances=hindrances.hindrances_of(tables, context),
        ),
        Counted(
            counts=counts.counts_of(tables, context.windows),
            operations=counts.operations_between(tables, context.readings),
            bystanders=bystanders.answers_of(tables, context),
            heard=silences.heard_in(tables, context),
            bins=delivered.bins,
            stale_deliveries=delivered.stale,
            of_ended_sessions=of_ended_sessions(tables, context),
            has_commits_or_deliveries=bool(tables.keys() & {"records_delivered", WRITTEN, REFUSED, STARTED}),
        ),
    )
