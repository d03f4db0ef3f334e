"""A session whose client creates an ephemeral znode and then says nothing any more, until its server expires it."""

from __future__ import annotations

import asyncio
import struct

from kazoo.protocol.serialization import Connect

from kernel.zookeeper import requests

#: Long enough for a watch on the znode to be set before, also on a busy machine.
TIMEOUT_MS = 3000


async def silent_session(address: str, path: str) -> None:
    """Returns once the znode is there. The connection is closed, which does not end the session."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    create = requests.create(path, b"", ephemeral=True)
    body = struct.pack(">ii", 1, create.type) + create.serialize()
    for frame in (Connect(0, 0, TIMEOUT_MS, 0, bytes(16), False).serialize(), body):
        writer.write(struct.pack(">i", len(frame)) + frame)
    for _ in range(2):
        (length,) = struct.unpack(">i", await reader.readexactly(4))
        await reader.readexactly(length)
    writer.close()
