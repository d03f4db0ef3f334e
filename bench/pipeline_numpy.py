"""The core of the pipeline's questions in bare numpy and pyarrow, a process a core: a peer for its speed, and a third
opinion on its answers.

It knows that the synthetic run has one topic, one group, one stream a process and no deaths, and checks nothing.
"""

from __future__ import annotations

import io
import os
import re
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
import pyarrow.parquet as pq

from kernel.trace.column_names import FILE_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_PIECE_BYTES = 32 * 1024 * 1024
_PAUSE_NS, _TOLERANCE_NS, _IN_FLIGHT_NS = 1_000_000_000, 1_000_000, 100_000_000
_CLAIMS = ("partitions_assigned", "partitions_revoked", "partitions_lost")
_POLL = ("process", "seq", "t_ns", "partition", "first", "last")
#: The columns that are needed, by kind; of the other kinds the number of rows.
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "records_delivered": _POLL,
    "records_acked": ("partition", "serial_first", "serial_last"),
    **dict.fromkeys(_CLAIMS, ("process", "seq", "t_ns", "partitions")),
    "position_started": ("process", "seq", "partition"),
    "offset_written": ("t_ns", "seq", "partition", "offset", "by"),
    "authority_named": ("t_ns", "seq", "partition", "owner"),
    "authority_cleared": ("t_ns", "seq", "partition"),
    "final_offset": ("t_ns", "partition", "committed", "end"),
    "stage_entered": ("t_ns", "stage"),
}
_TEXTS = ("kind", "process", "owner", "by", "stage")
_PARTITIONS = pa.list_(pa.struct([("partition", pa.int64())]))
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in _TEXTS),
        *(
            (name, pa.int64())
            for name in ("seq", "ns", "partition", "first", "last", "serial_first", "serial_last", "offset")
        ),
        ("committed", pa.int64()),
        ("partitions", _PARTITIONS),
    ]
)


class _Piece(NamedTuple):
    """A piece of the run: part `number` of the tables in a folder, or bytes of a file."""

    path: Path
    number: int | None
    start: int = 0
    end: int = 0


def answers(from_json: bool, runs: Path, events: Path) -> dict[str, Any]:
    """The answers for one synthetic run, from its traces or from tables of events."""
    pieces = list(_pieces_of_json(runs) if from_json else _pieces_of_tables(events))
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        found = list(pool.map(_reduced, pieces))
    kinds: Counter[str] = Counter()
    columns: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for counted, rows in found:
        kinds.update(counted)
        for kind, each in rows.items():
            columns[kind].append(each)
    joined = {
        kind: {name: np.concatenate([each[name] for each in several]) for name in several[0]}
        for kind, several in columns.items()
    }
    return {"kinds": dict(kinds), **_measured(joined)}


def _pieces_of_tables(events: Path) -> Iterable[_Piece]:
    numbers = {int(path.stem.partition("-")[2]) for path in events.glob("*/part-*.parquet")}
    return (_Piece(events, number) for number in sorted(numbers))


def _pieces_of_json(runs: Path) -> Iterable[_Piece]:
    for path in sorted(runs.glob("trace/*.jsonl")):
        size = path.stat().st_size
        for start in range(0, size, _PIECE_BYTES):
            yield _Piece(path, None, start, min(size, start + _PIECE_BYTES))


def _reduced(piece: _Piece) -> tuple[dict[str, int], dict[str, dict[str, Any]]]:
    """How many events of each kind a piece has, and what is needed of it."""
    kinds, tables = _of_json(piece) if piece.number is None else _of_tables(piece)
    rows = {kind: _columns(kind, table) for kind, table in tables.items()}
    if "records_acked" in rows:
        rows["records_acked"] = _ranges(**rows["records_acked"])
    if "records_delivered" in rows:
        claims = [rows[kind] for kind in _CLAIMS if kind in rows]
        rows["records_delivered"] = _stretches(rows["records_delivered"], claims)
    return kinds, rows


def _of_tables(piece: _Piece) -> tuple[dict[str, int], dict[str, pa.Table]]:
    kinds, tables = {}, {}
    for folder in piece.path.iterdir():
        path = folder / f"part-{piece.number:05}.parquet"
        if path.exists():
            kind = folder.name.partition("=")[2]
            with pq.ParquetFile(path) as file:
                kinds[kind] = file.metadata.num_rows
                if kind in _NEEDED:
                    names = [FILE_NAMES.get(name, name) for name in _NEEDED[kind]]
                    tables[kind] = file.read(columns=names, use_threads=False)
                    tables[kind] = tables[kind].select(names).rename_columns(list(_NEEDED[kind]))
    return kinds, tables


def _of_json(piece: _Piece) -> tuple[dict[str, int], dict[str, pa.Table]]:
    with piece.path.open("rb") as file:
        file.seek(max(0, piece.start - 1))
        if piece.start:
            file.readline()
        first = file.tell()
        file.seek(piece.end - 1)
        file.readline()
        end = file.tell()
        file.seek(first)
        text = file.read(end - first)
    text = re.sub(rb'^\{"header".*\n|\{"end".*\n', b"", text)
    # An offset read at the end is the only one with an `end`, which end markers have as an object.
    schema = _SCHEMA.append(pa.field("end", pa.int64()))
    options = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    reading = pyarrow.json.ReadOptions(use_threads=False)
    table = pyarrow.json.read_json(io.BytesIO(text), read_options=reading, parse_options=options)
    table = table.rename_columns(["t_ns" if name == "ns" else name for name in table.column_names])
    encoded = table["kind"].combine_chunks().dictionary_encode()
    numbers = np.asarray(encoded.indices)
    kinds, tables = {}, {}
    for number, kind in enumerate(encoded.dictionary.to_pylist()):
        places = np.flatnonzero(numbers == number)
        kinds[kind] = len(places)
        if kind in _NEEDED:
            tables[kind] = table.select(list(_NEEDED[kind])).take(places)
    return kinds, tables


def _columns(kind: str, table: pa.Table) -> dict[str, Any]:
    found = {}
    if kind in _CLAIMS:
        listed = table["partitions"].combine_chunks()
        found["partition"] = np.asarray(pc.struct_field(pc.list_flatten(listed), "partition"))
        table = table.drop_columns(["partitions"]).take(pc.list_parent_indices(listed))
    for name in table.column_names:
        if name in _TEXTS:
            encoded = table[name].combine_chunks().dictionary_encode()
            texts = np.array(encoded.dictionary.to_pylist(), dtype="U32")
            found[name] = texts[np.asarray(encoded.indices)] if len(texts) else texts
        else:
            found[name] = table[name].to_numpy()
    return found


def _ranges(partition: Ints, serial_first: Ints, serial_last: Ints) -> dict[str, Ints]:
    order = np.lexsort((serial_first, partition))
    partition, low, high = partition[order], serial_first[order], serial_last[order] + 1
    begins = np.append(True, (partition[1:] != partition[:-1]) | (low[1:] != high[:-1]))
    rows = np.flatnonzero(begins)
    return {"partition": partition[rows], "low": low[rows], "high": high[np.append(rows[1:], len(low)) - 1]}


def _stretches(polls: dict[str, Any], claims: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Runs of consecutive records; a piece is of one process, and in its order."""
    order = np.argsort(polls["partition"], kind="stable")
    process, seq, t_ns, partition, first, last = (polls[name][order] for name in _POLL)
    claim = np.searchsorted(
        np.sort(np.concatenate([_place(each["partition"], each["seq"]) for each in claims] or [np.zeros(0, np.int64)])),
        _place(partition, seq),
    )
    cut = (partition[1:] != partition[:-1]) | (claim[1:] != claim[:-1]) | (t_ns[1:] - t_ns[:-1] > _PAUSE_NS)
    rows = np.flatnonzero(np.append(True, cut | (first[1:] != last[:-1] + 1)))
    ends = np.append(rows[1:], len(first)) - 1
    return {
        "process": process[rows],
        "partition": partition[rows],
        "seq": seq[rows],
        "seq_last": seq[ends],
        "t0": t_ns[rows],
        "t1": t_ns[ends],
        "low": first[rows],
        "high": last[ends] + 1,
    }


def _place(partition: Ints, seq: Ints) -> Ints:
    return (partition << 40) + seq


def _measured(rows: dict[str, dict[str, Any]]) -> dict[str, int]:
    stages = dict(zip(rows["stage_entered"]["stage"].tolist(), rows["stage_entered"]["t_ns"].tolist(), strict=True))
    began, ended = stages["steady"], stages["final"]
    claims = {
        name: np.concatenate([rows[kind][name] for kind in _CLAIMS if kind in rows])
        for name in ("process", "seq", "t_ns", "partition")
    }
    claims["assigned"] = np.arange(len(claims["seq"])) < len(rows["partitions_assigned"]["seq"])
    stretches = rows["records_delivered"]
    processes = np.unique(claims["process"])
    for each in (claims, stretches, rows["position_started"]):
        each["line"] = (np.searchsorted(processes, each["process"]) << 20) + each["partition"]
    acked = rows["records_acked"]
    records = _depths(
        (stretches["partition"], stretches["low"], stretches["high"]), (acked["partition"], acked["low"], acked["high"])
    )
    order = np.lexsort((claims["seq"], claims["line"]))
    line, t_ns = claims["line"][order], claims["t_ns"][order]
    until = np.append(np.where(line[1:] == line[:-1], t_ns[1:], ended), ended)
    low, high = np.maximum(t_ns, began), np.minimum(until, ended)
    kept = claims["assigned"][order] & (low < high)
    partitions = np.unique(claims["partition"])
    everything = (partitions, np.full(len(partitions), began), np.full(len(partitions), ended))
    believed = _depths((claims["partition"][order][kept], low[kept], high[kept]), everything)
    delivering, descents = _delivering(stretches, claims, rows["position_started"], ended)
    nothing = np.zeros(0, np.int64)
    found = {
        "duplicates": int((records.length * (records.held - 1))[records.held > 1].sum()),
        "lost": int(records.length[(records.held == 0) & (records.wanted > 0)].sum()),
        "out_of_order": descents,
        "unowned_ns": int(believed.length[(believed.held == 0) & (believed.wanted > 0)].sum()),
        "double_owned_ns": _doubled(believed),
        "two_delivering_ns": _doubled(_depths(delivering, (nothing, nothing, nothing))),
    }
    return found | _commits(rows)


def _delivering(
    stretches: dict[str, Any], claims: dict[str, Any], started: dict[str, Any], ended: int
) -> tuple[tuple[Ints, Ints, Ints], int]:
    """Intervals of delivery, and how many stretches begin before the end of the one before."""
    order = np.lexsort((stretches["seq"], stretches["line"]))
    line, seq, seq_last, t0, t1, low, high = (
        stretches[name][order] for name in ("line", "seq", "seq_last", "t0", "t1", "low", "high")
    )
    claim = np.searchsorted(np.sort(_place(claims["line"], claims["seq"])), _place(line, seq))
    starts = np.sort(_place(started["line"], started["seq"]))
    begun, begun_at_last = (np.searchsorted(starts, _place(line, each)) for each in (seq, seq_last))
    same = line[1:] == line[:-1]
    descents = int((same & (low[1:] < high[:-1]) & (begun[1:] == begun_at_last[:-1])).sum())
    cut = ~same | (claim[1:] != claim[:-1]) | (t0[1:] - t1[:-1] > _PAUSE_NS)
    rows = np.flatnonzero(np.append(True, cut))
    until = np.minimum(t1[np.append(rows[1:], len(line)) - 1], ended)
    kept = t0[rows] < until
    return (stretches["partition"][order][rows][kept], t0[rows][kept], until[kept]), descents


class _Depths(NamedTuple):
    partition: Ints
    length: Ints
    held: Ints
    wanted: Ints


def _depths(held: tuple[Ints, Ints, Ints], wanted: tuple[Ints, Ints, Ints]) -> _Depths:
    partition = np.concatenate([held[0], held[0], wanted[0], wanted[0]])
    edge = np.concatenate([held[1], held[2], wanted[1], wanted[2]])
    counts = [len(held[0])] * 2 + [len(wanted[0])] * 2
    order = np.lexsort((edge, partition))
    partition, edge = partition[order], edge[order]
    depth, need = (np.cumsum(np.repeat(steps, counts)[order]) for steps in ([1, -1, 0, 0], [0, 0, 1, -1]))
    # Every partition ends with nothing held and nothing wanted, so that its sums begin at 0.
    length = np.where(partition[1:] == partition[:-1], edge[1:] - edge[:-1], 0)
    kept = length > 0
    return _Depths(partition[:-1][kept], length[kept], depth[:-1][kept], need[:-1][kept])


def _doubled(depths: _Depths) -> int:
    """What is held twice without a break counts if it is longer than the tolerance."""
    twice = depths.held > 1
    number = np.cumsum(~twice | np.append(True, depths.partition[1:] != depths.partition[:-1]))
    whole = np.bincount(number, weights=depths.length * twice)
    counts = twice & (whole[number] > _TOLERANCE_NS)
    return int((depths.length * (depths.held - 1))[counts].sum())


def _commits(rows: dict[str, dict[str, Any]]) -> dict[str, int]:
    written, named, cleared, final = (
        rows[kind] for kind in ("offset_written", "authority_named", "authority_cleared", "final_offset")
    )
    order = np.lexsort((written["seq"], written["t_ns"], written["partition"]))
    partition, offset, t_ns, seq, by = (written[name][order] for name in ("partition", "offset", "t_ns", "seq", "by"))
    same = partition[1:] == partition[:-1]
    naming = {name: np.concatenate([named[name], cleared[name]]) for name in ("partition", "t_ns", "seq")}
    owner = np.concatenate([named["owner"], np.full(len(cleared["seq"]), "", dtype=named["owner"].dtype)])
    both = np.lexsort(
        (
            np.append(np.zeros(len(owner)), np.ones(len(seq))),
            np.append(naming["seq"], seq),
            np.append(naming["t_ns"], t_ns),
            np.append(naming["partition"], partition),
        )
    )
    last = np.maximum.accumulate(np.where(both < len(owner), np.arange(len(both)), -1))
    asked = both >= len(owner)
    at = both[last[asked]]
    known = (last[asked] >= 0) & (naming["partition"][at] == partition[both[asked] - len(owner)])
    owners = np.where(known, owner[at], "")
    consumers = np.array([re.sub(r"-\d+$", "", each) for each in np.unique(owners)])[
        np.unique(owners, return_inverse=True)[1]
    ]
    sender = by[both[asked] - len(owner)]
    behind = 0
    for place, number in enumerate(final["partition"].tolist()):
        before = offset[(partition == number) & (t_ns <= final["t_ns"][place] - _IN_FLIGHT_NS)]
        behind += bool(len(before) and final["committed"][place] < before[-1])
    return {
        "commits": len(seq),
        "stale_writes": int(((owners != "") & (sender != owners) & (sender != consumers)).sum()),
        "moved_back": int((same & (offset[1:] < offset[:-1])).sum()),
        "final_read": len(final["partition"]),
        "final_behind": behind,
        "final_beyond": int((final["committed"] > final["end"]).sum()),
    }
