"""The trace files that a run lists in its `run.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from kernel.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

RUN_FILE = "run.json"


class ListedFile(NamedTuple):
    """A trace file that was opened: its name, and the process that writes it."""

    file: str
    process: str
    role: str


def listed_traces(run_dir: Path) -> tuple[ListedFile, ...] | None:
    """The trace files that a run's `run.json` lists; None without a list: nothing is known then.

    Raises `UserError` if the file is there but cannot be read, or is damaged.
    """
    path = run_dir / RUN_FILE
    try:
        traces = msgspec.json.decode(path.read_bytes(), type=_Listing).traces
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{path} is damaged: {error}") from error
    return None if traces is None else tuple(ListedFile(each.file, each.process, each.role) for each in traces)


class _ListedTrace(msgspec.Struct):
    file: str
    process: str
    role: str


class _Listing(msgspec.Struct):
    traces: tuple[_ListedTrace, ...] | None = None
