"""Where the tables of an analysis are while it runs, and how they take the place of those before.

On a disk and in HDFS a folder is renamed. Object stores can only copy files, one by one; there PARTS says that the
tables are whole: it goes before the first file does, and comes back after the last. Without it readers find no tables.
"""

from __future__ import annotations

import secrets
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kernel.platform.places import (
    below,
    copy_file,
    each_of,
    exists,
    is_in_store,
    name_below,
    remove,
    renames_folders,
    write_whole,
)
from kernel.platform.whole_file import own_folder

if TYPE_CHECKING:
    from kernel.platform.places import Place

TABLES = "tables"
#: The file beside the tables that is written when they are whole.
PARTS = "parts.json"
#: Where the tables of a running analysis are; in a store it has a folder for each, since nothing ends tasks elsewhere.
_STAGING = ".tables-in-progress"
#: A file that makes a folder of it in a store: who may not write there hears of it before any work is done.
_BEGUN = ".begun"
#: Where an earlier analysis's are for a moment.
_REPLACED = ".tables-replaced"
#: Where those of a broken-off one are, while they are removed.
_BROKEN_OFF = ".tables-broken-off"


def staging(folder: Place) -> Place:
    """An empty folder for the tables of an analysis that has begun."""
    discard(folder)
    path = folder / _STAGING
    if is_in_store(path):
        path /= secrets.token_hex(8)
        write_whole(path / _BEGUN, b"")
    else:
        path.mkdir(parents=True)
    return path


def tables_in(folder: Place) -> Place:
    """Where an earlier analysis's tables are, if there are any; also if it was killed while it put them there.

    Raises `EnvironmentFault` for a link in their place.
    """
    path, replaced = folder / TABLES if is_in_store(folder) else own_folder(folder, TABLES), folder / _REPLACED
    if renames_folders(folder):
        if _is_folder(replaced) and not exists(path):
            _rename(replaced, path)
        remove(replaced)
    return path


def publish(folder: Place, staged: Place) -> None:
    """Put what was staged in the place of an earlier analysis's tables."""
    target, replaced = folder / TABLES, folder / _REPLACED
    remove(staged / _BEGUN)
    if renames_folders(folder):
        remove(replaced)
        if exists(target):
            _rename(target, replaced)
        _rename(staged, target)
        remove(replaced)
    else:
        _copy_over(staged, target)
    remove(folder / _STAGING)


def discard(folder: Place) -> None:
    """Remove what a broken-off analysis staged, and go back to the tables before it if it was replacing them.

    Its tasks may still be writing: on a disk they do not find the folder again under its new name.
    """
    tables_in(folder)
    staged, broken_off = folder / _STAGING, folder / _BROKEN_OFF
    if is_in_store(staged):
        remove(staged)
        return
    remove(broken_off)
    if exists(staged):
        _rename(staged, broken_off)
        remove(broken_off)


def _is_folder(place: Place) -> bool:
    return exists(place) if is_in_store(place) else place.is_dir() and not place.is_symlink()


def _rename(source: Place, target: Place) -> None:
    if is_in_store(source) and is_in_store(target):
        source.fs.mv(source.path, target.path)
    elif isinstance(source, Path) and isinstance(target, Path):
        source.rename(target)


def _copy_over(staged: Place, target: Place) -> None:
    """Make `target` have the files that are staged, and no others."""
    remove(target / PARTS)
    names = [name_below(path, staged) for path in below(staged, "*")]
    gone = [path for path in below(target, "*") if name_below(path, target) not in names]
    each_of(remove, gone, in_store=True)
    each_of(partial(_copy, staged, target), [name for name in names if name != PARTS], in_store=True)
    copy_file(staged / PARTS, target / PARTS)


def _copy(staged: Place, target: Place, name: str) -> None:
    copy_file(staged / name, target / name)
