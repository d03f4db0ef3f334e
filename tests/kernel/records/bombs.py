"""Batches of kilobytes that unpack to a quarter of a gigabyte, in a process with little memory: `python -m
tests.kernel.records.bombs`. It prints the codecs whose bombs were refused; an allocation beyond the limit ends it.
"""

from __future__ import annotations

import resource
import struct
import sys
import zlib

import cramjam
import pytest

from kernel.records.record_check import checked
from kernel.records.records import CorruptRecords, RefusedBatch, accepted, decode
from kernel.values import TopicPartition
from kernel.wire.errors import ErrorCode
from tests.support.wire.bad_batches import packed

#: What a bomb unpacks to, and the memory allowed for unpacking it: the bound of 16 MiB, and copies of that.
BOMB_BYTES, ROOM_BYTES = 256 * 1024 * 1024, 128 * 1024 * 1024
_PIECE = bytes(1024 * 1024)


def _streamed(compressor: object) -> bytes:
    for _ in range(BOMB_BYTES // len(_PIECE)):
        compressor.compress(_PIECE)  # type: ignore[attr-defined]
    return bytes(compressor.finish())  # type: ignore[attr-defined]


def _gzipped() -> bytes:
    packer = zlib.compressobj(1, wbits=31)
    pieces = [packer.compress(_PIECE) for _ in range(BOMB_BYTES // len(_PIECE))]
    return b"".join((*pieces, packer.flush()))


def _in_blocks() -> bytes:
    block = bytes(cramjam.snappy.compress_raw(_PIECE))
    head = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    return head + (struct.pack(">i", len(block)) + block) * 40  # snappy packs twenty to one at best


def bombs() -> dict[str, tuple[str, bytes]]:
    """{name: (codec, packed bytes)}; "snappy" announces a size, and nothing follows."""
    return {
        "gzip": ("gzip", _gzipped()),
        "snappy": ("snappy", b"\xff\xff\xff\xff\x07" + bytes(40)),
        "snappy in blocks": ("snappy", _in_blocks()),
        "lz4": ("lz4", _streamed(cramjam.lz4.Compressor())),
        "zstd": ("zstd", _streamed(cramjam.zstd.Compressor())),
    }


def main() -> None:
    batches = {name: packed(codec, content) for name, (codec, content) in bombs().items()}
    with open("/proc/self/statm") as statm:
        now = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + ROOM_BYTES,) * 2)
    for name, batch in batches.items():
        with pytest.raises(RefusedBatch, match="unpacks to more than") as refused:
            checked(accepted(batch, max_bytes=100_000_000))
        assert refused.value.code is ErrorCode.message_too_large, name
        with pytest.raises(CorruptRecords, match="unpacks to more than"):
            decode(TopicPartition("t", 0), batch, 0)
        sys.stdout.write(f"{name}: {len(batch)} bytes\n")


if __name__ == "__main__":
    main()
