"""Reads the fields of records of `__consumer_offsets`: fixed ones, and the compact ones of flexible versions."""

from __future__ import annotations

import struct

from kernel.errors import RebalanceLabError


class MalformedRecord(RebalanceLabError):
    """Bytes in the coordinator's log that no coordinator has written."""


class RecordReader:
    """Reads values from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def int8(self) -> int:
        return int(struct.unpack(">b", self._take(1))[0])

    def int16(self) -> int:
        return int(struct.unpack(">h", self._take(2))[0])

    def int32(self) -> int:
        return int(struct.unpack(">i", self._take(4))[0])

    def int64(self) -> int:
        return int(struct.unpack(">q", self._take(8))[0])

    def count(self) -> int:
        """The number of elements that follow, checked: each has at least one byte."""
        count = self.int32()
        if not 0 <= count <= len(self._data) - self._at:
            raise MalformedRecord(f"{count} elements in {len(self._data) - self._at} bytes")
        return count

    def text(self) -> str:
        text = self.nullable()
        if text is None:
            raise MalformedRecord("null instead of a text")
        return text

    def nullable(self) -> str | None:
        length = self.int16()
        if length < 0:
            return None
        return self._decoded(self._take(length))

    @staticmethod
    def _decoded(data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise MalformedRecord(f"a text is not UTF-8: {error}") from error

    def uvarint(self) -> int:
        value, shift = 0, 0
        while True:
            (byte,) = self._take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def compact_count(self) -> int:
        """The number of elements that follow, checked like `count`; null is none."""
        count = max(self.uvarint() - 1, 0)
        if count > len(self._data) - self._at:
            raise MalformedRecord(f"{count} elements in {len(self._data) - self._at} bytes")
        return count

    def compact_text(self) -> str:
        """A text after its length plus one as a varint."""
        text = self.compact_nullable()
        if text is None:
            raise MalformedRecord("null instead of a text")
        return text

    def compact_nullable(self) -> str | None:
        length = self.uvarint()
        return None if length == 0 else self._decoded(self._take(length - 1))

    def compact_blob(self) -> bytes:
        """Bytes after their length plus one as a varint; null is none."""
        return self._take(max(self.uvarint() - 1, 0))

    def fixed(self, length: int) -> bytes:
        return self._take(length)

    def tags(self) -> dict[int, bytes]:
        """Tagged fields (KIP-482) by tag."""
        return {self.uvarint(): self._take(self.uvarint()) for _ in range(self.uvarint())}

    def blob(self) -> bytes:
        return self._take(max(self.int32(), 0))

    def _take(self, length: int) -> bytes:
        if length > len(self._data) - self._at:
            raise MalformedRecord(f"truncated: needed {length} bytes, {len(self._data) - self._at} left")
        taken = self._data[self._at : self._at + length]
        self._at += length
        return taken
