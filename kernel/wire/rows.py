"""Encode a long response in parts, some rows of its longest array at a time.

kio encodes only whole messages. To find the bytes around the rows, the message is encoded once without rows and once
with one row: both are equal up to the count of the array, and after the rows.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from kernel.wire.codec import encode_response
from kernel.wire.tags import uvarint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kernel.wire.versions import Api

#: The most rows to encode at once: in flexible versions the count of more than 126 takes two bytes.
ROWS_MAX = 100
#: Bytes of the size and the correlation id, which come first.
_FRONT = 8
_INT = struct.Struct(">i")


class RowEncoder:
    """Encodes the rows of the top-level array `name`; `head` holds the other fields of the response."""

    def __init__(self, api: Api, version: int, head: Mapping[str, Any], name: str) -> None:
        self._api, self._version, self._head, self._name = api, version, head, name
        empty, one = self._encode(()), self._encode(({},))
        count_at = next(at for at in range(_FRONT, len(empty)) if empty[at] != one[at])
        # The count is one byte, or the last of four.
        self._is_compact = empty[count_at] == 1
        self._rows_at = count_at + 1
        self._front = empty[_FRONT : count_at if self._is_compact else count_at - 3]
        self._back = empty[self._rows_at :]
        self._rows = bytearray()
        self._count = 0

    def __len__(self) -> int:
        """The size of all rows added, in bytes."""
        return len(self._rows)

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Encode at most `ROWS_MAX` rows."""
        assert len(rows) <= ROWS_MAX, f"{len(rows)} rows at once"
        message = self._encode(rows)
        self._rows += memoryview(message)[self._rows_at : len(message) - len(self._back)]
        self._count += len(rows)

    def finish(self) -> bytes:
        """The response after its correlation id."""
        count = uvarint(self._count + 1) if self._is_compact else _INT.pack(self._count)
        return b"".join((self._front, count, self._rows, self._back))

    def _encode(self, rows: Sequence[Mapping[str, Any]]) -> bytes:
        return encode_response(self._api, self._version, 0, {**self._head, self._name: rows})
