"""The proxy that counts requests of groups of the originals."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from docs.generators.stock_groups import CountingProxy
from kernel.platform.ports import LOOPBACK
from kernel.wire.codec import encode_request
from kernel.wire.versions import Api
from tests.support.wire.servers import serving

if TYPE_CHECKING:
    from collections.abc import Mapping


def frame(api: Api, version: int, body: Mapping[str, object]) -> bytes:
    return encode_request(api, version, 1, "member", body)


async def test_requests_of_groups_are_counted_and_passed_on() -> None:
    """The broker says how many bytes it was sent."""
    frames = [
        frame(Api.JoinGroup, 0, {"group_id": "g", "protocol_type": "consumer", "protocols": [], "member_id": ""}),
        frame(Api.Metadata, 0, {"topics": []}),
        *(
            frame(Api.SyncGroup, 0, {"group_id": "g", "generation_id": number, "member_id": "m", "assignments": []})
            for number in (2, 3)
        ),
    ]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"%d" % len(await reader.readexactly(sum(map(len, frames)))))
        writer.close()

    proxy = CountingProxy()
    await proxy.start()
    async with serving(serve) as port:
        proxy.forward_to(port)
        reader, writer = await asyncio.open_connection(LOOPBACK, proxy.port)
        writer.write(b"".join(frames))
        assert await reader.read(99) == b"%d" % sum(map(len, frames))
        writer.close()
    proxy.stop()
    assert proxy.requests == {"g": Counter(JoinGroup=1, SyncGroup=2)}
    assert proxy.generations == {"g": 3}
