"""Files and folders that are written where others may have written too: in runs, results, servers' folders.

A file is there as a whole or not at all: it is written beside its place under another name, then renamed. A symbolic
link in its place is replaced, because whoever made the folder may have put it there, and nothing is lost with a link. A
link in the place of a folder is refused: what is behind it may be wanted there, and is not ours to write or remove.
"""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from kernel.errors import EnvironmentFault

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def whole_file(path: Path, *, named: bool = False) -> Iterator[Path]:
    """The path to write to in the block. What stood at `path` before is replaced when the block has ended well.

    Of a path that the user has `named` a link is followed: the file that it leads to is replaced, and a device or a
    pipe (`/dev/stdout`) is written to directly; links in a circle are replaced. Raises OSError.
    """
    if named and path.exists() and not path.is_file():
        yield path
        return
    target = Path(os.path.realpath(path)) if named else path  # of links in a circle `Path.resolve` raises RuntimeError
    temporary = target.with_name(f".rebalance-lab-{secrets.token_hex(8)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    os.close(os.open(temporary, flags, 0o666))
    try:
        yield temporary
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def file_of_option(path: Path, option: str, *, named: bool = True) -> Iterator[Path]:
    """As `whole_file`, of a path that a command's option gives. Raises `EnvironmentFault`, which names the option."""
    try:
        with whole_file(path, named=named) as file:
            yield file
    except OSError as error:
        raise EnvironmentFault(
            f"cannot write {path}: {error.strerror or error}. Choose another with {option}"
        ) from error


def opened_to_append(path: Path) -> IO[bytes]:
    """A log or lock file, which is created if it does not exist. Raises OSError for a symbolic link."""
    return open(path, "ab", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o666))


def own_folder(folder: Path, *names: str) -> Path:
    """The folder of these names in `folder`, whether it exists or not.

    Raises `EnvironmentFault` if one of them is a symbolic link. `folder` itself may be one: the user has named it.
    """
    path = folder
    for name in names:
        path /= name
        if path.is_symlink():
            raise EnvironmentFault(
                f"{path} is a symbolic link, and nothing is written or removed beyond it. Remove the link, or choose "
                "another folder with --output"
            )
    return path


def require_text(folder: Path, remedy: str = "choose another with --output") -> Path:
    """The folder. Raises `EnvironmentFault` if its path is not UTF-8: no JSON, table or setting could name it."""
    try:
        str(folder.absolute()).encode()
    except UnicodeEncodeError:
        raise EnvironmentFault(
            f"the path of the folder {folder} is not UTF-8. Rename what is not, or {remedy}"
        ) from None
    return folder


def remove_folder(path: Path) -> None:
    """Remove what is at `path`, if anything; of a symbolic link only the link."""
    if path.is_symlink():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, ignore_errors=True)
