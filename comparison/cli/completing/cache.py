"""The table in the user's cache, made anew when the program has changed."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from comparison.cli.completing.table import Table
from kernel.platform.cache_folder import cache_dir
from kernel.platform.lean_imports import import_lean
from kernel.platform.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The folder of our packages, in a checkout and where a wheel is installed.
_HOME = Path(__file__).parents[3]
_PACKAGES = ("kernel", "zkconsumer", "coordinator", "comparison")


def cached_table() -> Table:
    """The table of this program as it is now."""
    path = cache_dir() / f"completion-{_digest()}.json"
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(path.read_bytes(), type=Table)
    import_lean()
    from comparison.cli.completing.sets import table_of
    from comparison.cli.main import cli

    table = table_of(cli)
    with suppress(OSError):
        _keep(path, table)
    return table


def _keep(path: Path, table: Table) -> None:
    """Write it whole, and remove those of programs that are gone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write_bytes(msgspec.json.encode(table))
        for old in path.parent.glob("completion-*.json"):
            old.unlink(missing_ok=True)


def _digest() -> str:
    """What changes with any of the program's modules, and with what is installed beside them (strategies)."""
    installed = str(Path(click.__file__).parents[1].stat().st_mtime_ns)
    roots = [_HOME / name for name in _PACKAGES]
    found = [installed, *(each for root in roots if root.is_dir() for each in _modules(root))]
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]


def _modules(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            if entry.name.endswith(".py"):
                about = entry.stat()
                yield f"{entry.path} {about.st_mtime_ns} {about.st_size}"
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _modules(Path(entry.path))
