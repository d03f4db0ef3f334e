"""Framing: a big-endian signed 32-bit size, then that many bytes. The size is checked before anything is buffered."""

from __future__ import annotations

import struct

from kernel.wire.errors import FrameTooLarge

#: Kafka's default of socket.request.max.bytes.
MAX_FRAME_BYTES = 104_857_600

_SIZE = struct.Struct(">i")


class FrameBuffer:
    """Collects received bytes and returns whole frames without their size.

    It never holds more bytes than were received: an announced size reserves nothing.
    """

    __slots__ = ("_data", "_max_bytes")

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self._data = bytearray()
        self._max_bytes = max_bytes

    def __len__(self) -> int:
        return len(self._data)

    def whole(self, data: bytes) -> bytes | None:
        """The frame, if `data` is exactly one and the buffer is empty: the common case, without a second copy.

        Otherwise None: `feed` the data. `next_frame` refuses invalid sizes.
        """
        size = len(data) - 4
        if self._data or not 0 <= size <= self._max_bytes or _SIZE.unpack_from(data)[0] != size:
            return None
        return data[4:]

    @property
    def has_frame(self) -> bool:
        """Whether `next_frame` would return a frame or raise."""
        data = self._data
        return len(data) >= 4 and len(data) >= 4 + min(_SIZE.unpack_from(data)[0], self._max_bytes)

    @property
    def announced(self) -> int:
        """The announced size of the first frame; 0 before it is received."""
        announced: int = _SIZE.unpack_from(self._data)[0] if len(self._data) >= 4 else 0
        return announced

    def clear(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        self._data += data

    def next_frame(self) -> bytes | None:
        """The next whole frame, or None. Raises `FrameTooLarge` as soon as an invalid size is received."""
        data = self._data
        if len(data) < 4:
            return None
        size = _SIZE.unpack_from(data)[0]
        if not 0 <= size <= self._max_bytes:
            raise FrameTooLarge(f"a frame announces {size} bytes; 0 to {self._max_bytes} are allowed")
        end = 4 + size
        if len(data) < end:
            return None
        frame = bytes(memoryview(data)[4:end])
        del data[:end]
        return frame
