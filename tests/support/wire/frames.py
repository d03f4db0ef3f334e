"""Frames of streams: a 32-bit size, then that many bytes."""

from __future__ import annotations

import asyncio
import struct


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """The next frame without its size. Raises `EOFError` if the stream ends before it is complete."""
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


def write_frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload
