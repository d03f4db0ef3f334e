"""Bare connections to a live broker: frames, answers by correlation id, no negotiation, no retries."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping
from typing import Any

from kernel.waiting import until
from kernel.wire.codec import decode_response, encode_request
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.conversations.recorded import ConnectionEnded


class WireConnection:
    """One connection; `await WireConnection.open(host, port, client_id)`."""

    def __init__(self, client_id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._client_id = client_id
        self._writer = writer
        self._waiting: dict[int, tuple[asyncio.Future[Any], tuple[Api, int] | None]] = {}
        self._correlation = 0
        self._ended = False
        self._reading = asyncio.create_task(self._read(reader))

    @classmethod
    async def open(cls, host: str, port: int, client_id: str) -> WireConnection:
        return cls(client_id, *await asyncio.open_connection(host, port))

    def send(self, api: Api, version: int, body: Mapping[str, Any]) -> asyncio.Future[Any]:
        self._correlation += 1
        return self._put(encode_request(api, version, self._correlation, self._client_id, body), (api, version))

    def send_raw(self, key: int, version: int, body: bytes) -> asyncio.Future[Any]:
        """Send any body after a header of version 1; the response is what follows the correlation id."""
        self._correlation += 1
        name = self._client_id.encode()
        frame = struct.pack(">hhih", key, version, self._correlation, len(name)) + name + body
        return self._put(struct.pack(">i", len(frame)) + frame, None)

    def close(self) -> None:
        self._reading.cancel()
        self._writer.close()

    def _put(self, frame: bytes, expected: tuple[Api, int] | None) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._ended:
            future.set_exception(ConnectionEnded())
        else:
            self._waiting[self._correlation] = (future, expected)
            self._writer.write(frame)
        return future

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                frame = await reader.readexactly(size)
                (correlation,) = struct.unpack_from(">i", frame)
                future, expected = self._waiting.pop(correlation)
                future.set_result(frame[4:] if expected is None else decode_response(*expected, frame)[1])
        except (asyncio.IncompleteReadError, ConnectionError):
            self._ended = True
            for future, _ in self._waiting.values():
                future.set_exception(ConnectionEnded())


async def wait_for_coordinator(connection: WireConnection, *group_ids: str, timeout_s: float = 60) -> None:
    """Wait until the broker coordinates these groups; the first request creates `__consumer_offsets`."""

    async def coordinates() -> bool:
        found = await connection.send(Api.FindCoordinator, 4, {"key_type": 0, "coordinator_keys": group_ids})
        described = await connection.send(Api.DescribeGroups, 1, {"groups": group_ids})
        return all(row.error_code is ErrorCode.none for row in (*found.coordinators, *described.groups))

    await until(coordinates, timeout_s, f"a coordinator for {', '.join(group_ids)}")
