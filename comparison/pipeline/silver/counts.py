"""Count every kind of event by name, outcome and cause, in every window.

One table serves all designs. The name of an event depends on its kind:

    kind                name                    outcome             step    area
    zk_op               the operation           ok or the error     yes     what the path is about
    zk_notified         the event's type        ''                          what the path is about
    request_answered    the API                 ok or the error
    attempt_ended       ''                      the outcome
    ...

so that the cost of a change can be read in each design's own currency. Counts of parts of a run add up.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comparison.pipeline.bronze.kinds import UNKNOWN_KIND
from comparison.pipeline.measured import EventCount, TracedOperations
from comparison.pipeline.silver.arrays import ENCODED_TEXT, integers
from comparison.results.counts import NAMED_BY, READS, SYNC, area_of, outcome_of
from comparison.results.keys import WHOLE_RUN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comparison.pipeline.bronze.tables import Tables
    from comparison.pipeline.silver.context import Window
    from comparison.pipeline.silver.readings import ReadingInterval

#: Kinds whose number says nothing or is counted elsewhere.
_NOT_COUNTED = frozenset(
    {"run_started", "counters_read", "final_offset", "phase_entered", "records_acked", "bystander_op"}
)
_FURTHER = ("step", "path", "ok", "error", "outcome")
#: What else rows are counted by: the window, and whether they are inside the whole run.
_PLACES = ("window", "inside")
#: The columns that are looked at.
COLUMNS = ("role", "t_ns", "kind", *NAMED_BY, *_FURTHER)
#: Errors of operations that the server may have performed (kernel.zookeeper.errors).
UNANSWERED = ("ConnectionLost", "OperationTimeout", "SessionClosed", "SessionExpired", "SessionFailed", "Unanswered")


class _What(NamedTuple):
    """Operations and requests that are equal in all of this are counted together."""

    role: str
    kind: str
    name: str
    outcome: str
    step: str
    area: str


def counts_of(tables: Tables, windows: Sequence[Window]) -> list[EventCount]:
    """The counts of every kind in each window; the first window is the whole run, the others do not overlap."""
    whole, changes = windows[0], windows[1:]
    froms = np.array([window.from_ns for window in changes], dtype=np.int64)
    untils = np.array([window.until_ns for window in changes], dtype=np.int64)
    found: defaultdict[tuple[int, _What], list[int]] = defaultdict(list)
    for kind, table in tables.items():
        if kind in _NOT_COUNTED or not len(table):
            continue
        t_ns = integers(table["t_ns"])
        place = np.searchsorted(froms, t_ns, side="right") - 1
        if len(changes):
            place = np.where((place >= 0) & (t_ns < untils[place]), place, -1)
        for what, at, is_inside, n, first in _grouped(kind, table, place, t_ns < whole.until_ns):
            if is_inside:
                found[WHOLE_RUN, what] += [n, first]
            if at >= 0:
                found[changes[at].number, what] += [n, first]
    return [_count(window, what, numbers) for (window, what), numbers in found.items()]


def _grouped(
    kind: str, table: pa.Table, window: np.ndarray, inside: np.ndarray
) -> Iterator[tuple[_What, int, bool, int, int]]:
    columns = {"role": table["role"], **_naming_columns(kind, table)}
    # A column of codes may be in pieces with dictionaries of their own, which cannot be grouped.
    known = {name: column.unify_dictionaries() for name, column in columns.items() if column is not None}
    same = {name: column[0].as_py() for name, column in known.items() if _is_one_text(column)}
    same |= {name: places[0].item() for name, places in zip(_PLACES, (window, inside), strict=True) if _is_one(places)}
    known |= {name: pa.chunked_array([places]) for name, places in zip(_PLACES, (window, inside), strict=True)}
    keys = [name for name in known if name not in same]
    for found in _totals(pa.table({name: known[name] for name in keys} | {"t_ns": table["t_ns"]}), keys):
        row = same | found
        what = _What(
            role=row["role"],
            kind=row.get("kind") or kind,
            name=row.get("name") or "",
            outcome=outcome_of(kind, row),
            step=row.get("step") or "",
            area=area_of(row.get("path") or ""),
        )
        yield what, row["window"], row["inside"], row["t_ns_count"], row["t_ns_min"]


def _totals(counted: pa.Table, keys: Sequence[str]) -> list[dict[str, Any]]:
    """For each combination of keys how many rows there are, and the first time."""
    if not keys:
        return [{"t_ns_count": len(counted), "t_ns_min": pc.min(counted["t_ns"]).as_py()}]
    totals = counted.group_by(keys, use_threads=False).aggregate([("t_ns", "count"), ("t_ns", "min")])
    rows: list[dict[str, Any]] = totals.to_pylist()
    return rows


def _is_one_text(column: pa.ChunkedArray) -> bool:
    """Whether all rows have the same text, which shows without looking at them."""
    return bool(
        column.type == ENCODED_TEXT
        and column.num_chunks == 1
        and not column.null_count
        and len(column.chunk(0).dictionary) == 1
    )


def _is_one(places: np.ndarray) -> bool:
    return bool((places == places[0]).all())


def _naming_columns(kind: str, table: pa.Table) -> dict[str, pa.ChunkedArray | None]:
    names = [name for name in NAMED_BY if name in table.column_names]
    columns = {"name": table[names[0]] if names else None}
    if kind == UNKNOWN_KIND:
        columns["kind"] = table["kind"]
    for name in _FURTHER:
        if name in table.column_names and (name != "error" or kind in _WITH_ERROR):
            columns[name] = table[name]
    return columns


_WITH_ERROR = frozenset({"zk_op", "request_answered", "offset_refused"})


def _count(window: int, what: _What, numbers: Sequence[int]) -> EventCount:
    """`numbers` are n and the first time of each group of rows."""
    return EventCount(window=window, **what._asdict(), n=sum(numbers[::2]), first_ns=min(numbers[1::2]))


def added(parts: Iterable[Sequence[EventCount]]) -> list[EventCount]:
    """The counts of several parts of one run together."""
    found: dict[tuple[int, _What], list[EventCount]] = {}
    for counts in parts:
        for count in counts:
            what = _What(*(getattr(count, name) for name in _What._fields))
            found.setdefault((count.window, what), []).append(count)
    return [
        EventCount(
            window=window,
            **what._asdict(),
            n=sum(count.n for count in counts),
            first_ns=min((count.first_ns for count in counts if count.first_ns is not None), default=None),
        )
        for (window, what), counts in found.items()
    ]


def operations_between(tables: Tables, readings: Mapping[str, ReadingInterval]) -> list[TracedOperations]:
    """Traced operations between two readings of the servers' counters, by namespace.

    A server performs an operation at some time between its request and its answer, and reads its counters at some time
    between those of a reading. On a busy machine both may take long. So of each: traced (answered between the
    readings), sure (requested and answered between them), possible (those under way during a reading as well, and those
    whose answer was lost). Successful operations of every process count, as they do for the server, which does not
    count `sync`. What was never sent is not possible.
    """
    if "zk_op" not in tables or not readings:
        return []
    table = tables["zk_op"].select(["t_ns", "op", "path", "ok", "error", "latency_ns"])
    lost = pc.and_(pc.is_in(table["error"], pa.array(UNANSWERED)), pc.is_valid(table["latency_ns"]))
    table = table.filter(pc.and_(pc.or_(table["ok"], lost), pc.not_equal(table["op"], SYNC)))
    is_ok = table["ok"].to_numpy(zero_copy_only=False)
    answered = integers(table["t_ns"])
    sent = answered - integers(pc.fill_null(table["latency_ns"], 0))
    found = []
    for label, interval in readings.items():
        near = (answered >= interval.first_ns) & (sent < interval.last_ns)
        between = is_ok & (answered >= interval.from_ns) & (answered < interval.until_ns)
        within = between & (sent >= interval.from_ns)
        marked = pa.table({"op": table["op"], "path": table["path"], "between": between, "within": within})
        tally: defaultdict[tuple[str, bool], list[int]] = defaultdict(lambda: [0, 0, 0])
        totals = (
            marked.filter(pa.array(near))
            .group_by(["op", "path"], use_threads=False)
            .aggregate([("between", "sum"), ("within", "sum"), ("between", "count")])
        )
        for row in totals.to_pylist():
            counted = tally[_namespace(row["path"]), row["op"] in READS]
            for place, name in enumerate(("between_sum", "within_sum", "between_count")):
                counted[place] += row[name] or 0
        found += [
            TracedOperations(
                label=label, namespace=namespace, is_read=is_read, traced=traced, sure=sure, possible=possible
            )
            for (namespace, is_read), (traced, sure, possible) in tally.items()
        ]
    return found


def _namespace(path: str) -> str:
    return path[1:].partition("/")[0] if path.startswith("/") else ""


def added_operations(parts: Iterable[Sequence[TracedOperations]]) -> list[TracedOperations]:
    """The operations of several parts of one run together."""
    found: defaultdict[tuple[str, str, bool], list[int]] = defaultdict(lambda: [0, 0, 0])
    for operations in parts:
        for each in operations:
            counted = found[each.label, each.namespace, each.is_read]
            for place, n in enumerate((each.traced, each.sure, each.possible)):
                counted[place] += n
    return [
        TracedOperations(label=label, namespace=namespace, is_read=is_read, traced=traced, sure=sure, possible=possible)
        for (label, namespace, is_read), (traced, sure, possible) in found.items()
    ]
