"""The trace files of a run, and whether each is whole: a verdict rests on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.screen.counted import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.results.run import FileIntegrity, Run


HEADINGS = ("file", "process", "member", "events", "first event, s", "last event, s", "end marker", "what is wrong")
#: Of ids, as they may be long and a process may have had many.
_IDS_SHOWN = 2
_NS_PER_S = 1_000_000_000


class FileRow(NamedTuple):
    """One file; cells are in the order of HEADINGS."""

    cells: Sequence[str]
    is_whole: bool


class FileTable(NamedTuple):
    """All files of one run."""

    summary: str
    is_whole: bool
    rows: Sequence[FileRow]
    headings: Sequence[str] = HEADINGS
    texts: Sequence[int] = (0, 1, 2, 6, 7)  #: the places of columns without numbers; page.css knows them too


def file_table(run: Run) -> FileTable | None:
    """None of a result that says nothing of files."""
    if not run.files:
        return None
    rows = [FileRow(_cells(file), not file.problems) for file in run.files]
    damaged = sum(not row.is_whole for row in rows)
    several = counted(len(rows), "trace file")
    summary = f"{several}, {damaged} not whole" if damaged else f"{several}, whole"
    return FileTable(summary, not damaged, rows)


def _cells(file: FileIntegrity) -> tuple[str, ...]:
    ended = "yes" if file.ended else "no" if file.lines else ""
    return (
        file.file,
        file.process,
        _ids(file.members),
        f"{file.events:,}",
        _seconds(file.first_ns),
        _seconds(file.last_ns),
        ended,
        "; ".join(_without_name(problem, file.file) for problem in file.problems),
    )


def _without_name(problem: str, file: str) -> str:
    """`m1.jsonl has 1 torn line` without the name, which is beside it."""
    rest = problem.removeprefix(file)
    return problem if rest.startswith(" and ") else rest.lstrip(": ")


def _ids(members: Sequence[str]) -> str:
    shown = ", ".join(members[:_IDS_SHOWN])
    return f"{shown} and {len(members) - _IDS_SHOWN} more" if len(members) > _IDS_SHOWN else shown


def _seconds(ns: int | None) -> str:
    return "" if ns is None else f"{ns / _NS_PER_S:,.3f}"
