"""A live broker and requests that decode but make no sense: every one is answered or its connection closed, no handler
fails, and the broker goes on."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from kernel.broker.broker import Broker
from kernel.client.reads import fetch
from kernel.wire import codec
from kernel.wire.versions import SERVED, Api
from tests.kernel.broker.apis.test_data_plane import TP, batch, produce
from tests.support.brokers.live import client_of, create_topics, running_broker
from tests.support.wire.frames import read_frame
from tests.support.wire.messages import entity_of, mappings

SERVED_HERE = (
    *(Api.Produce, Api.Fetch, Api.ListOffsets, Api.Metadata, Api.ApiVersions, Api.CreateTopics, Api.DeleteTopics),
    *(Api.InitProducerId, Api.CreatePartitions),
)


def _hostile_frames(number: int) -> list[bytes]:
    """Requests with random values in every field, and mutations of them."""
    frames: list[bytes] = []

    @seed(20)
    @settings(max_examples=number, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        api = data.draw(st.sampled_from(SERVED_HERE))
        version = data.draw(st.integers(*SERVED[api]))
        body: dict[str, Any] = data.draw(mappings(entity_of(api, version, request=True)))
        for name in ("timeout", "max_wait"):
            if name in body:
                body[name] = data.draw(st.sampled_from([-1, 0, 20]))  # the test is not about waiting
        frame = codec.encode_request(api, version, 1, "hostile", body)
        frames.append(frame)
        mutated = bytearray(frame)
        mutated[data.draw(st.integers(4, len(frame) - 1))] ^= data.draw(st.integers(1, 255))
        frames.append(bytes(mutated))

    collect()
    return frames


async def test_random_requests_are_answered_or_refused_and_no_handler_fails(chroot: str, tmp_path: Path) -> None:
    frames = _hostile_frames(120)
    random.Random(20).shuffle(frames)

    async def send(broker: Broker, frame: bytes) -> None:
        reader, writer = await asyncio.open_connection(broker.address.host, broker.address.port)
        writer.write(frame)
        try:
            # A Fetch with a long mutated wait, or Produce with acks=0, is not answered: a short wait is enough.
            async with asyncio.timeout(0.2):
                await read_frame(reader)
        except (TimeoutError, EOFError, ConnectionError):
            pass
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    failed: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
    async with running_broker(chroot, tmp_path) as broker, client_of(broker) as client:
        await create_topics(broker, {"t": 1})
        for start in range(0, len(frames), 25):
            await asyncio.gather(*(send(broker, frame) for frame in frames[start : start + 25]))
        assert failed == []
        connection = await client.any_connection()
        assert await produce(connection, batch(b"still here")) == ("", 0)
        assert (await fetch(connection, {TP: 0}))[TP].next_offset == 1
