"""Unpacks compressed batches within a limit: never allocates more than `room_for` allows.

Packed bytes are untrusted input, and a few kilobytes can unpack to gigabytes. The limit is enforced while unpacking:
gzip is read up to it, a snappy block announces its size, LZ4 frames and zstd are unpacked into a buffer that grows up
to it. Kafka itself reads such a batch as a stream, without a limit.
"""

from __future__ import annotations

import asyncio
import functools
import struct
import zlib
from typing import TYPE_CHECKING, Any, TypeVar

import cramjam

from kernel.errors import RebalanceLabError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.platform.threads import Threads

Result = TypeVar("Result")

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}

#: The limit for any compressed batch, and as a multiple of its packed size if that is more.
UNPACKED_BYTES_MIN, UNPACKED_TIMES_MAX = 16 * 1024 * 1024, 8

#: The framing that snappy-java wraps its blocks in: a header of 16 bytes, then size and block, repeated.
_XERIAL_HEAD, _XERIAL_HEAD_BYTES = b"\x82SNAPPY\0", 16
_FIRST_ROOM_BYTES, _ROOM_GROWS = 64 * 1024, 8


class CannotUnpack(RebalanceLabError):
    """The bytes are not valid for their codec."""


class UnpacksTooLarge(CannotUnpack):
    """The batch unpacks to more than is allowed."""


def room_for(packed_bytes: int) -> int:
    """The limit for unpacking this many bytes."""
    return max(UNPACKED_BYTES_MIN, UNPACKED_TIMES_MAX * packed_bytes)


def unpacked(codec: int, data: bytes) -> bytes:
    """Decompress `data`. Raises `CannotUnpack`, also for an unknown codec."""
    unpack = _UNPACK.get(codec)
    if unpack is None:
        raise CannotUnpack(f"unknown codec {codec}")
    try:
        return unpack(data, room_for(len(data)))
    except (cramjam.DecompressionError, zlib.error, ValueError) as error:
        raise CannotUnpack(f"{len(data)} bytes are not {_NAMES[codec]}: {error}") from error


class UnpackingTurn:
    """Runs work on unpacked batches on a thread, one at a time, so that the limit above applies to all together."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._turn = asyncio.Lock()

    async def run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Run `work(*arguments)`. The next work waits for its end, even if the caller is cancelled."""
        await self._turn.acquire()
        try:
            ended = self._threads.run(work, *arguments)
        except BaseException:
            self._turn.release()
            raise
        ended.add_done_callback(self._end)
        return await asyncio.shield(ended)

    def _end(self, ended: asyncio.Future[Any]) -> None:
        self._turn.release()
        if not ended.cancelled():
            ended.exception()  # there may be no waiter left to retrieve it


def _too_large(room: int) -> UnpacksTooLarge:
    return UnpacksTooLarge(f"a batch unpacks to more than {room} bytes")


def _gunzip(data: bytes, room: int) -> bytes:
    """All members, as Java's GZIPInputStream; trailing bytes that are no member are ignored, as there."""
    out = b""
    while True:
        member = zlib.decompressobj(31)
        try:
            part = member.decompress(data, room - len(out) + 1)
        except zlib.error:
            if out:
                return out
            raise
        out = out + part if out else part
        if len(out) > room:
            raise _too_large(room)
        if not member.eof:
            raise CannotUnpack("a gzip stream is cut off")
        data = member.unused_data
        if not data:
            return out


def _unsnappy(data: bytes, room: int) -> bytes:
    if not data.startswith(_XERIAL_HEAD):
        return _unsnapped(data, room)
    out = bytearray()
    at = _XERIAL_HEAD_BYTES
    while at < len(data):
        if at + 4 > len(data):
            raise CannotUnpack("a snappy block is cut off within its size")
        (size,) = struct.unpack_from(">i", data, at)
        if size < 0 or at + 4 + size > len(data):
            raise CannotUnpack(f"a snappy block announces {size} bytes")
        out += _unsnapped(data[at + 4 : at + 4 + size], room - len(out))
        at += 4 + size
    return bytes(out)


def _unsnapped(block: bytes, room: int) -> bytes:
    """Unpack one block. It begins with its unpacked size, which is checked before allocating."""
    if cramjam.snappy.decompress_raw_len(block) > room:
        raise _too_large(room)
    return bytes(cramjam.snappy.decompress_raw(block))


def _into_growing_room(decompress_into: Callable[[bytes, bytearray], int], data: bytes, room: int) -> bytes:
    """For codecs that do not announce the size: retry with a larger buffer until it fits."""
    size = max(_ROOM_GROWS * len(data), _FIRST_ROOM_BYTES)
    while True:
        buffer = bytearray(min(size, room))
        try:
            written = decompress_into(data, buffer)
        except cramjam.DecompressionError as error:
            if "whole buffer" not in str(error):
                raise
            if len(buffer) == room:
                raise _too_large(room) from error
            size *= _ROOM_GROWS
            continue
        return bytes(memoryview(buffer)[:written])


_NAMES = {number: name for name, number in CODECS.items()}
_UNPACK: dict[int, Callable[[bytes, int], bytes]] = {
    CODECS["gzip"]: _gunzip,
    CODECS["snappy"]: _unsnappy,
    CODECS["lz4"]: functools.partial(_into_growing_room, cramjam.lz4.decompress_into),
    CODECS["zstd"]: functools.partial(_into_growing_room, cramjam.zstd.decompress_into),
}
