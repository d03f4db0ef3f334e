"""Reads a JSON file that somebody may have damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from kernel.errors import UserError

if TYPE_CHECKING:
    from kernel.platform.places import Place

T = TypeVar("T")


class DamagedFile(UserError):
    """A file that is not the JSON that it should be; `why` without the file's name."""

    def __init__(self, path: Place, why: str) -> None:
        super().__init__(f"{path} is damaged: {why}")
        self.why = why


def read_json(path: Place, shape: type[T]) -> T:
    """A file's content. Raises OSError if it cannot be read, and `DamagedFile` if it is damaged.

    The text is decoded first, because msgspec skips fields that the shape does not have, whatever bytes are in them.
    """
    try:
        return msgspec.json.decode(path.read_bytes().decode("utf-8"), type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedFile(path, str(error)) from error


def json_if_readable(path: Place, shape: type[T]) -> T | None:
    """The same, or None if there is no such file, or it cannot be read, or is damaged."""
    try:
        return read_json(path, shape)
    except (OSError, DamagedFile):
        return None
