"""A lean group member for load: one connection, hand-written frames, nothing decoded that is not needed.

It speaks JoinGroup 5, SyncGroup 3, Heartbeat 3 and LeaveGroup 1 (all without tagged fields), which brokers since
Kafka 2.3 and librdkafka's mock cluster know. The driver should cost less than what it measures.
"""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable

JOIN, HEARTBEAT, LEAVE, SYNC, FIND = 11, 12, 13, 14, 10
NONE, COORDINATOR_LOADING, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR = 0, 14, 15, 16
REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED = 27, 79
RETRIED = {COORDINATOR_LOADING, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR}


def text(value: str | None) -> bytes:
    return b"\xff\xff" if value is None else struct.pack(">h", len(value)) + value.encode()


def blob(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


class LeanConnection(asyncio.Protocol):
    """One request at a time: `call` sends a frame and gives the answer's body."""

    def __init__(self, client_id: str) -> None:
        self._client = text(client_id)
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[bytes] | None = None
        self._buffer = b""
        self._correlation = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) < 4:
            return
        size = int.from_bytes(self._buffer[:4], "big")
        if len(self._buffer) >= 4 + size:
            frame, self._buffer = self._buffer[8 : 4 + size], self._buffer[4 + size :]
            assert self._answer is not None
            self._answer.set_result(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("the broker closed the connection"))

    def call(self, api: int, version: int, body: bytes) -> Awaitable[bytes]:
        self._correlation += 1
        frame = struct.pack(">hhi", api, version, self._correlation) + self._client + body
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(struct.pack(">i", len(frame)) + frame)
        return self._answer

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def connect(port: int, client_id: str) -> LeanConnection:
    _, protocol = await asyncio.get_running_loop().create_connection(
        lambda: LeanConnection(client_id), "127.0.0.1", port
    )
    return protocol


class LeanMember:
    """A member of `group`; the leader assigns everybody nothing, since only the protocol is measured."""

    def __init__(self, connection: LeanConnection, group: str, *, session_timeout_ms: int = 30_000) -> None:
        self.connection = connection
        self.group = group
        self.member_id = ""
        self.generation = -1
        self._session_timeout_ms = session_timeout_ms

    async def find_coordinator(self) -> None:
        """Ask until there is one: the offsets topic is made at the first request."""
        for _ in range(200):
            answer = await self.connection.call(FIND, 1, text(self.group) + b"\x00")
            if struct.unpack_from(">h", answer, 4)[0] == NONE:
                return
            await asyncio.sleep(0.05)
        raise TimeoutError(f"no coordinator for {self.group} within 10 s")

    async def join(self) -> None:
        """Join and sync until this member is in a stable generation."""
        while True:
            members = await self._join_once()
            if members is None:
                continue
            assignments = [text(m) + blob(b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00") for m in members]
            body = text(self.group) + struct.pack(">i", self.generation) + text(self.member_id) + text(None)
            body += struct.pack(">i", len(assignments)) + b"".join(assignments)
            answer = await self.connection.call(SYNC, 3, body)
            if struct.unpack_from(">h", answer, 4)[0] == NONE:
                return

    async def _join_once(self) -> list[str] | None:
        """The members to assign to (empty for a follower), or None when the join must be repeated."""
        body = text(self.group) + struct.pack(">ii", self._session_timeout_ms, 60_000) + text(self.member_id)
        body += text(None) + text("consumer") + struct.pack(">i", 1) + text("range")
        body += blob(b"\x00\x00\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x00")
        answer = await self.connection.call(JOIN, 5, body)
        error, self.generation = struct.unpack_from(">hi", answer, 4)
        at = 10
        fields = []
        for _ in range(3):  # protocol name, leader, member id
            value, at = _text_at(answer, at)
            fields.append(value)
        self.member_id = fields[2] or self.member_id
        if error == MEMBER_ID_REQUIRED:
            return None
        if error in RETRIED:
            await asyncio.sleep(0.05)
            return None
        if error != NONE:
            raise RuntimeError(f"JoinGroup of {self.group}: error {error}")
        (count,) = struct.unpack_from(">i", answer, at)
        at += 4
        members = []
        for _ in range(count):
            member, at = _text_at(answer, at)
            _, at = _text_at(answer, at)  # group.instance.id
            at += 4 + struct.unpack_from(">i", answer, at)[0]
            members.append(member)
        return members

    def heartbeat_body(self) -> bytes:
        return text(self.group) + struct.pack(">i", self.generation) + text(self.member_id) + text(None)

    async def heartbeat(self) -> int:
        answer = await self.connection.call(HEARTBEAT, 3, self.heartbeat_body())
        return int(struct.unpack_from(">h", answer, 4)[0])


def _text_at(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", data, at)
    return ("", at + 2) if length < 0 else (data[at + 2 : at + 2 + length].decode(), at + 2 + length)
