"""A run folder for what is played by hand: several commands, each its own process, trace into the same one.

The folder has what `analyze`, `report` and `diagram` need: `run.json` with a list of the trace files, and `trace/`. No
runner is there to say what was done and how it ended, so promises that only a complete run shows stay unknown.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from typing import TYPE_CHECKING, Any

from comparison.cli.complaints import error_line
from comparison.exits import Exit
from comparison.run_folder import provenance, unwritable, write_json
from kernel.errors import ConfigurationError
from kernel.platform.json_file import read_json
from kernel.platform.whole_file import opened_to_append, own_folder, require_text
from kernel.trace.events import Role
from kernel.trace.listed_file import RUN_FILE, run_file
from kernel.trace.writer import TraceIdentity, TraceWriter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCENARIO = "by-hand"
#: The name of a process, by its role; a number follows.
_PREFIXES = {Role.MEMBER: "m", Role.BROKER: "broker-", Role.OBSERVER: "observer-"}


class HandTrace(TraceWriter):
    """A trace that ends its process when it cannot be written: what went on untraced could not be judged."""

    def emit(
        self, kind: str, *, member: str | None = None, stream: int | None = None, cause: str = "", **fields: object
    ) -> None:
        try:
            super().emit(kind, member=member, stream=stream, cause=cause, **fields)
        except OSError as error:
            message = f"cannot write the trace: {error.strerror}. Free some space, or choose another --trace"
            sys.stderr.write(f"{error_line(message)}\n")
            os._exit(Exit.INTERNAL)


def trace_in(folder: Path, role: Role, *, design: str = "") -> TraceWriter:
    """A new trace file in the folder; the caller closes it. Raises as `new_trace`."""
    path, identity = new_trace(folder, role, design=design)
    try:
        return HandTrace(path, identity)
    except OSError as error:
        raise unwritable(folder, error) from error


def new_trace(folder: Path, role: Role, *, design: str = "") -> tuple[Path, TraceIdentity]:
    """List a trace file that the caller opens next, in the folder, which is created if it does not exist.

    A broker knows no design. Raises `ConfigurationError` for a folder with another run, or another design.
    """
    folder = require_text(folder.absolute(), "choose another for --trace")
    try:
        own_folder(folder, "trace").mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            about = _about(folder, design)
            process = _free_name(about["traces"], _PREFIXES[role])
            about["traces"].append({"file": f"{process}.jsonl", "process": process, "role": str(role)})
            write_json(folder / RUN_FILE, about)
    except OSError as error:
        raise unwritable(folder, error) from error
    identity = TraceIdentity(run=about["run"], scenario=SCENARIO, design=about["design"], role=role, process=process)
    return folder / "trace" / f"{process}.jsonl", identity


def _about(folder: Path, design: str) -> dict[str, Any]:
    """What run.json says, or shall say of a new run; the first consumer decides on the design."""
    there = run_file(folder)
    if there is None:
        if any((folder / "trace").iterdir()):
            raise ConfigurationError(f"{folder} has traces, but no {RUN_FILE}. Choose another folder for --trace")
        run = f"{folder.name}/{SCENARIO}"
        about = {"run": run, "scenario": SCENARIO, "design": design, "parameters": {}, "traces": []}
        return {**provenance(["rebalance-lab", *sys.argv[1:]]), **about}
    if there.scenario != SCENARIO or there.traces is None:
        raise ConfigurationError(
            f"{folder} is a run of {there.scenario or 'another kind'}. Choose another folder for --trace"
        )
    if design and there.design and there.design != design:
        raise ConfigurationError(
            f"{folder} is a run of the design {there.design}, not {design}. Choose another folder for --trace"
        )
    about = read_json(folder / RUN_FILE, dict[str, Any])
    return {**about, "design": there.design or design}


def _free_name(traces: list[dict[str, str]], prefix: str) -> str:
    taken = {each["process"] for each in traces}
    number = 1
    while f"{prefix}{number}" in taken:
        number += 1
    return f"{prefix}{number}"


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock: one command at a time changes run.json."""
    with opened_to_append(folder / ".lock") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
