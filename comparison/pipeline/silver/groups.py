"""The groups that a run's tables name, and the group of each row of a table of members' events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comparison.ownership.groups import NAMING, NAMING_TOPICS, UNKNOWN, Memberships, NamedGroups, ordered
from comparison.pipeline.silver.arrays import codes, together

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.pipeline.bronze.tables import Tables


def groups_of(tables: Tables) -> NamedGroups:
    """The groups that events name."""
    assigned: set[tuple[str, str | None, str]] = set()
    if "partitions_assigned" in tables:
        table = tables["partitions_assigned"]
        listed = table["partitions"].combine_chunks()
        rows = pc.list_parent_indices(listed)
        topics = pc.struct_field(pc.list_flatten(listed), "topic")
        assigned = _distinct({name: table[name].take(rows) for name in ("process", "member")} | {"topic": topics})
    return NamedGroups(
        ordered(group for kind in NAMING if kind in tables for group in pc.unique(tables[kind]["group"]).to_pylist()),
        ordered(
            pair
            for kind in NAMING_TOPICS
            if kind in tables
            for pair in _distinct({name: tables[kind][name] for name in ("group", "topic")})
        ),
        ordered(assigned),
    )


def _distinct(columns: Mapping[str, Any]) -> set[tuple[Any, ...]]:
    found = pa.table(dict(columns)).group_by([*columns], use_threads=False).aggregate([])
    return set(zip(*(found[name].to_pylist() for name in columns), strict=True))


def group_column(memberships: Memberships, table: pa.Table) -> pa.ChunkedArray:
    """The group of each row; `table` has the process and the member."""
    if len(memberships.names) <= 1:  # then it is the group of everything
        only = memberships.names[0] if memberships.names else UNKNOWN
        return pa.chunked_array([pa.repeat(pa.scalar(only, pa.string()), len(table))])
    processes, process_names = codes(table["process"])
    members, member_names = codes(table["member"])
    _, first, places = np.unique(together(processes, members), return_index=True, return_inverse=True)
    groups = [memberships.group(process_names[processes[row]], member_names[members[row]]) for row in first.tolist()]
    return pa.chunked_array([pa.array(groups, pa.string()).take(pa.array(places))])
