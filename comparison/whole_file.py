"""Files that are there as a whole or not at all: written beside their place under another name, then renamed."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """The path to write to in the block. What stood at `path` before is replaced when the block has ended well.

    A device or a pipe (`/dev/stdout`) is written to directly. Raises OSError.
    """
    target = path.resolve()  # the file that a link leads to is replaced, not the link
    if target.exists() and not target.is_file():
        yield target
        return
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield temporary
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
