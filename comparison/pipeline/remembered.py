"""What the tables of an analysis were made from, so that the next one can measure from them and read no line of JSON.

`remember` writes it beside the tables, into `parts.json`: which parts there are, what was read of each file, and a
fingerprint. `recall` gives it back only if everything is as it was: the runs and their files by name, size and time of
change, every file of the tables of events, and the code that reads traces. `share` puts the tables of events into
the folder of another analysis.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

import comparison.pipeline.bronze
import comparison.pipeline.silver.groups
import kernel.trace
from comparison.pipeline.bronze.chunks import Part  # noqa: TC001 - msgspec reads the annotation
from comparison.pipeline.bronze.quarantine import QUARANTINE
from comparison.pipeline.silver.groups import NamedGroups  # noqa: TC001 - msgspec reads the annotation
from comparison.pipeline.tasks import EVENTS, FileRead, PartResult
from kernel.trace.integrity import Integrity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.pipeline.bronze.runs import TraceRun

PARTS = "parts.json"


class ReadParts(NamedTuple):
    """The parts of an analysis, and what was read of each."""

    parts: list[Part]
    results: list[PartResult]


class _Remembered(msgspec.Struct):
    """`parts.json`. `digest` is that of all the rest, so that a damaged file is not believed."""

    fingerprint: str
    tables: dict[str, int]  #: the files of the tables of events, and their sizes
    parts: list[Part]
    read: list[list[dict[str, Any]]]  #: of each part
    bounds: list[tuple[int, int] | None]
    groups: list[NamedGroups]
    digest: str = ""

    def digested(self) -> str:
        return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(self, digest=""))).hexdigest()


def fingerprint(runs: Sequence[TraceRun]) -> str:
    """Changes with the runs, their files, and the code that reads them. Take it before the files are read."""
    changed_ns = [[_changed_ns(file.path) for file in run.files] for run in runs]
    all_of_it = msgspec.json.encode([runs, changed_ns, _code()], enc_hook=_plain, order="deterministic")
    return hashlib.sha256(all_of_it).hexdigest()


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@cache
def _code() -> str:
    """A digest of the modules that make tables of events from lines, and find the groups in them."""
    folders = [*comparison.pipeline.bronze.__path__, *kernel.trace.__path__]
    files = sorted(path for folder in folders for path in Path(folder).glob("*.py"))
    files.append(Path(comparison.pipeline.silver.groups.__file__))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else os.fspath(value).encode(errors="replace")


def remember(folder: Path, marked: str, read: ReadParts) -> None:
    """Write beside the tables in `folder` what they were made from; `marked` is the fingerprint."""
    found = _Remembered(
        fingerprint=marked,
        tables=_files(folder),
        parts=read.parts,
        read=[[msgspec.to_builtins(asdict(each), enc_hook=_plain) for each in one.read] for one in read.results],
        bounds=[one.bounds for one in read.results],
        groups=[one.groups for one in read.results],
    )
    found.digest = found.digested()
    (folder / PARTS).write_bytes(msgspec.json.encode(found))


def recall(folder: Path, marked: str) -> ReadParts | None:
    """The parts whose tables are in `folder`; None unless all are there, and were made from the same files."""
    try:
        known = msgspec.json.decode((folder / PARTS).read_bytes(), type=_Remembered)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if known.digest != known.digested() or known.fingerprint != marked or known.tables != _files(folder):
        return None
    facts = zip(known.parts, known.read, known.bounds, known.groups, strict=True)
    results = [
        PartResult(part.number, list(map(_read, pieces)), bounds=bounds, groups=groups)
        for part, pieces, bounds, groups in facts
    ]
    return ReadParts(known.parts, results)


def _read(fields: Mapping[str, Any]) -> FileRead:
    integrity = dict(fields["integrity"])
    integrity["ranges"] = np.array(integrity["ranges"], dtype=np.int64).reshape(2, -1)
    return FileRead(**{**fields, "integrity": Integrity(**integrity)})


def _files(folder: Path) -> dict[str, int]:
    found = sorted(path for name in (EVENTS, QUARANTINE) for path in (folder / name).rglob("*.parquet"))
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in found}


def share(folder: Path, other: Path) -> None:
    """Give `other` the same tables of events and of unusable lines; they are linked where the disk can."""
    for name in (EVENTS, QUARANTINE):
        if (folder / name).is_dir():
            shutil.copytree(folder / name, other / name, copy_function=_link)


def _link(source: str, target: str) -> None:
    with suppress(OSError):
        os.link(source, target)
        return
    shutil.copy2(source, target)
