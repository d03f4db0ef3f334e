"""A file in a store, read by ranges: one question to the store for each, of any store that fsspec knows.

A file that is gone, or that must not be read, is an OSError, as on a disk. That a store fails says nothing of the file.
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

from kernel.platform.store_faults import explained

if TYPE_CHECKING:
    from typing_extensions import Buffer
    from upath import UPath

#: What is read at once when lines are.
_BLOCK_BYTES = 1024 * 1024
_OF_THE_FILE = (FileNotFoundError, PermissionError)


class _Ranges(io.RawIOBase):
    def __init__(self, place: UPath) -> None:
        self._place = place
        with explained(str(place), but=_OF_THE_FILE):
            self._size: int = place.fs.info(place.path)["size"]
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        end = min(self._at + len(view), self._size)
        if end <= self._at:
            return 0
        with explained(str(self._place), but=_OF_THE_FILE):
            data = self._place.fs.cat_file(self._place.path, start=self._at, end=end)
        view[: len(data)] = data
        self._at += len(data)
        return len(data)


def opened_in_store(place: UPath) -> io.BufferedReader:
    """Open a file for reading. Raises what the store's client raises."""
    return io.BufferedReader(_Ranges(place), _BLOCK_BYTES)
