"""What an analysis leaves for the next one, so that only what is new is read, or even measured.

`remember` writes it beside the tables, into `parts.json`: which parts there are, what was read of each file, the
figures and verdicts of each run, and a fingerprint of each run. `recall` gives back what is still true. A run is as it
was if its files have the same names, sizes, times of change and ends. What was *read* of it then holds as long as the
code that reads traces is the same; its tables of events can be measured again. What was *found* holds only under the
same pipeline. Nothing is believed if the file is damaged, or a table is missing or has another size.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

import kernel
from comparison import pipeline
from comparison.ownership.groups import NamedGroups  # noqa: TC001 - msgspec reads the annotation
from comparison.pipeline import bronze, reading
from comparison.pipeline.beside import files_beside
from comparison.pipeline.bronze.chunks import Part, chunks_by_run
from comparison.pipeline.bronze.runs import as_text
from comparison.pipeline.carried import Carried, free_number, sizes_of
from comparison.pipeline.published import PARTS
from comparison.pipeline.reading import FileRead, PartRead
from comparison.pipeline.silver import groups
from comparison.results.run import Run  # noqa: TC001 - msgspec reads the annotation
from kernel import trace
from kernel.platform.places import is_in_store, version_of, write_whole
from kernel.trace.integrity import Integrity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.pipeline.bronze.runs import TraceRun
    from kernel.platform.places import Place

_TAIL_BYTES = 4_096


class ReadParts(NamedTuple):
    """The parts of an analysis, and what was read of each."""

    parts: list[Part]
    results: list[PartRead]


class Known(NamedTuple):
    """What an earlier analysis left of some runs, by the places that they have now."""

    read: ReadParts
    found: Mapping[int, Run]  #: as it was then; empty where everything must be measured again
    places: frozenset[int]  #: of the runs that are in the tables as they should be
    carried: Mapping[str, Carried]  #: these runs by their ids in the tables
    held: Mapping[int, Sequence[str]]  #: the ids of all runs in each part
    free_number: int  #: the first that no part ever had
    tables_hold: bool  #: the tables are those of these runs, and say the right thing of each


NOTHING_KNOWN = Known(ReadParts([], []), {}, frozenset(), {}, {}, 0, tables_hold=False)


class _RememberedRun(msgspec.Struct):
    folder: str
    fingerprint: str
    run_id: str
    repeat: int
    found: Run


class _RememberedPart(msgspec.Struct):
    part: Part
    read: list[dict[str, Any]]
    bounds: tuple[int, int] | None
    groups: NamedGroups


class _Remembered(msgspec.Struct):
    """The content of `parts.json`."""

    reading: str  #: of the code that reads traces
    pipeline: str
    tables: dict[str, int]  #: the files of the tables, and their sizes
    runs: list[_RememberedRun]
    parts: list[_RememberedPart]


class _Digested(msgspec.Struct):
    """`parts.json`. `digest` is that of the content's bytes, so that a damaged file is not believed."""

    digest: str
    content: msgspec.Raw


def fingerprint(run: TraceRun) -> str:
    """Changes with the run and its files, not with its labels. Take it before the files are read."""
    bare = replace(run, run_id="", repeat=0)
    marks = [_mark(file.path) for file in run.files]
    all_of_it = msgspec.json.encode([bare, marks], enc_hook=_plain, order="deterministic")
    return hashlib.sha256(all_of_it).hexdigest()


def _mark(path: Place) -> Sequence[int | str]:
    """When a file changed, its size, and its end: what was appended or edited shows there, even if times do not.

    Of one in a store, what the store says of its version.
    """
    try:
        if is_in_store(path):
            return version_of(path)
        about = path.stat()
        with path.open("rb") as file:
            file.seek(max(0, about.st_size - _TAIL_BYTES))
            tail = hashlib.sha256(file.read(_TAIL_BYTES)).hexdigest()
    except OSError:
        return []
    return [about.st_size, about.st_mtime_ns, about.st_ctime_ns, tail]


@cache
def reading_code() -> str:
    """A digest of the modules that make tables of events from lines, and find the groups in them."""
    folders = [*bronze.__path__, *trace.__path__]
    files = sorted(path for folder in folders for path in Path(folder).glob("*.py"))
    return _digest([*files, Path(reading.__file__), Path(groups.__file__)])


@cache
def pipeline_code() -> str:
    """A digest of all modules that figures and verdicts may depend on, and with them of the versions of all schemas."""
    folders = [*pipeline.__path__, *kernel.__path__]
    files = sorted(path for folder in folders for kind in ("*.py", "*.sql") for path in Path(folder).rglob(kind))
    return _digest([*files, *files_beside()])


def _digest(files: Sequence[Path]) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else as_text(value)


def remember(
    folder: Place, runs: Sequence[TraceRun], fingerprints: Sequence[str], read: ReadParts, found: Mapping[int, Run]
) -> None:
    """Write beside the tables in `folder` what they were made from, and what was found."""
    known = _Remembered(
        reading=reading_code(),
        pipeline=pipeline_code(),
        tables=sizes_of(folder),
        runs=[
            _RememberedRun(as_text(run.folder), mark, run.run_id, run.repeat, found[number])
            for number, (run, mark) in enumerate(zip(runs, fingerprints, strict=True))
        ],
        parts=[
            _RememberedPart(
                part,
                [msgspec.to_builtins(asdict(each), enc_hook=_plain) for each in result.read],
                result.bounds,
                result.groups,
            )
            for part, result in zip(*read, strict=True)
        ],
    )
    content = msgspec.json.encode(known)
    digest = hashlib.sha256(content).hexdigest()
    write_whole(folder / PARTS, msgspec.json.encode(_Digested(digest, msgspec.Raw(content))))


def recall(folder: Place, runs: Sequence[TraceRun], fingerprints: Sequence[str], *, measured: bool = True) -> Known:
    """What is known of these runs by the tables in `folder`; not what was `measured`, if that is to be done again."""
    known = _content_of(folder / PARTS)
    if known is None or known.reading != reading_code() or known.tables != sizes_of(folder):
        return NOTHING_KNOWN
    measured = measured and known.pipeline == pipeline_code()
    now = {
        (as_text(run.folder), mark): number for number, (run, mark) in enumerate(zip(runs, fingerprints, strict=True))
    }
    places = {
        place: now[each.folder, each.fingerprint]
        for place, each in enumerate(known.runs)
        if (each.folder, each.fingerprint) in now
    }
    carried: dict[str, Carried] = {}
    found: dict[int, Run] = {}
    for place, number in places.items():
        before, run = known.runs[place], runs[number]
        carried[before.run_id] = Carried(run, (before.run_id, before.repeat) != (run.run_id, run.repeat))
        if measured:
            found[number] = msgspec.structs.replace(before.found, run_id=run.run_id, repeat=run.repeat)
    return Known(
        _with_places(known.parts, places),
        found,
        frozenset(places.values()),
        carried,
        {each.part.number: [known.runs[one].run_id for one in chunks_by_run(each.part.chunks)] for each in known.parts},
        max([free_number(folder), *(each.part.number + 1 for each in known.parts)]),
        tables_hold=len(places) == len(known.runs) and not any(each.is_renamed for each in carried.values()),
    )


def _content_of(path: Place) -> _Remembered | None:
    """None if there is no such file, or if it is damaged."""
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_Digested)
        if file.digest != hashlib.sha256(file.content).hexdigest():
            return None
        return msgspec.json.decode(file.content, type=_Remembered)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _with_places(parts: Sequence[_RememberedPart], places: Mapping[int, int]) -> ReadParts:
    """The parts with the runs that are still there, by their places now."""
    found = ReadParts([], [])
    for each in parts:
        chunks = tuple(replace(one, run=places[one.run]) for one in each.part.chunks if one.run in places)
        if not chunks:
            continue
        read = [_read(one, places[one["run"]]) for one in each.read if one["run"] in places]
        found.parts.append(replace(each.part, chunks=chunks))
        found.results.append(PartRead(each.part.number, read, each.bounds, each.groups))
    return found


def _read(fields: Mapping[str, Any], run: int) -> FileRead:
    integrity = dict(fields["integrity"])
    integrity["ranges"] = np.array(integrity["ranges"], dtype=np.int64).reshape(2, -1)
    return FileRead(**{**fields, "run": run, "integrity": Integrity(**integrity)})
