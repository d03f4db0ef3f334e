"""A client's connection at its server: bytes to frames and back, and the four-letter words."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, cast

from comparison.simulation.zookeeper import frames
from comparison.simulation.zookeeper.model.four_letter_words import WORDS
from comparison.simulation.zookeeper.model.protocol import Call, FromClient, Reply, Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from comparison.simulation.zookeeper.model.protocol import FromServer

_LENGTH_BYTES = 4


class ClientConnection(asyncio.Protocol):
    """Hands frames on as they arrive; malformed ones end the connection, as they do with a real server.

    `receive(connection, frame)`, `lost(connection)` and `word(word) -> answer` are the server's.
    """

    def __init__(
        self,
        receive: Callable[[ClientConnection, FromClient], None],
        lost: Callable[[ClientConnection], None],
        word: Callable[[str], str],
    ) -> None:
        self.number = 0  #: set by the server
        self._receive = receive
        self._lost = lost
        self._word = word
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._is_first = True
        #: The requests that are not answered yet: a reply's form depends on its request.
        self._calls: deque[Request] = deque()

    # -- asyncio's -----------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        try:
            while self._transport is not None and (frame := self._next_frame()) is not None:
                self._receive(self, self._decoded(frame))
        except frames.MalformedFrame:
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._lost(self)

    # -- the server's --------------------------------------------------------------------------------------------------

    def send(self, frame: FromServer) -> None:
        if self._transport is None:
            return
        if isinstance(frame, Reply):
            self._transport.write(frames.encoded_reply(self._calls.popleft(), frame))
        else:
            self._transport.write(frames.encoded(frame))

    def close(self) -> None:
        """Close it, behind what was sent."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def abort(self) -> None:
        """Close it as the end of the process does."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def _next_frame(self) -> bytes | None:
        received = self._received
        if len(received) < _LENGTH_BYTES:
            return None
        length = int.from_bytes(received[:_LENGTH_BYTES], "big", signed=True)
        if self._is_first and (word := bytes(received[:_LENGTH_BYTES]).decode("ascii", "replace")) in WORDS:
            assert self._transport is not None
            self._transport.write(self._word(word).encode())
            self.close()
            return None
        if not 0 <= length <= frames.FRAME_MAX:
            raise frames.MalformedFrame(f"Len error {length}")
        end = _LENGTH_BYTES + length
        if len(received) < end:
            return None
        frame = bytes(received[_LENGTH_BYTES:end])
        del received[:end]
        return frame

    def _decoded(self, frame: bytes) -> FromClient:
        if self._is_first:
            self._is_first = False
            return frames.connect(frame)
        decoded = frames.call(frame)
        if isinstance(decoded, Call):
            self._calls.append(decoded.request)
        return decoded
