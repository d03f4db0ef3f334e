"""Framing: whole frames from any pieces, and sizes that are refused before anything is kept."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.wire.errors import FrameTooLarge
from kernel.wire.frames import FrameBuffer
from tests.support.wire.frames import write_frame


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_frames_are_reassembled_from_any_pieces(payloads: list[bytes], pieces: list[int]) -> None:
    stream = b"".join(map(write_frame, payloads))
    buffer = FrameBuffer(1000)
    got = []
    turn = 0
    while stream:
        size = pieces[turn % len(pieces)]
        buffer.feed(stream[:size])
        stream = stream[size:]
        turn += 1
        while (frame := buffer.next_frame()) is not None:
            got.append(frame)
    assert got == payloads
    assert len(buffer) == 0


def test_piece_that_is_one_frame_is_recognised_only_with_an_empty_buffer() -> None:
    buffer = FrameBuffer(10)
    assert buffer.whole(write_frame(b"0123456789")) == b"0123456789"
    assert buffer.whole(write_frame(b"")) == b""
    for data in (b"", b"\0\0", write_frame(b"a")[:-1], write_frame(b"a") + b"b", write_frame(b"01234567890")):
        assert buffer.whole(data) is None
    buffer.feed(b"\0\0\0\x08")
    assert buffer.whole(write_frame(b"half")) is None
    buffer.feed(write_frame(b"half"))
    assert buffer.next_frame() == write_frame(b"half")


@pytest.mark.parametrize("size", [-1, 1001, 2**31 - 1, -(2**31)])
def test_size_out_of_bounds_is_refused_from_its_four_bytes_alone(size: int) -> None:
    buffer = FrameBuffer(1000)
    buffer.feed(struct.pack(">i", size))
    with pytest.raises(FrameTooLarge):
        buffer.next_frame()
