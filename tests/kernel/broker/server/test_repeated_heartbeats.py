"""A connection that caches its last heartbeat answers exactly as one that decodes everything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.broker.loop.poller import READABLE
from kernel.broker.loop.turns import Turns
from kernel.broker.server.budget import MemoryBudgets
from kernel.broker.server.connection_resources import ConnectionResources
from kernel.broker.server.handlers import CachedResponse, Encoded, RequestContext
from kernel.broker.server.served_connection import ServedConnection
from kernel.broker.server.unsupported import UnsupportedRequests
from kernel.runtime import REAL
from kernel.waiting import until
from kernel.wire import codec
from kernel.wire.frames import MAX_FRAME_BYTES
from kernel.wire.heartbeats import TAILS
from kernel.wire.versions import SERVED, Api
from tests.support.properties import examples

VERSIONS = range(SERVED[Api.Heartbeat][0], SERVED[Api.Heartbeat][1] + 1)
BODY = {"group_id": "group", "generation_id": 3, "member_id": "member", "group_instance_id": None}
#: The last request of each conversation.
LAST = codec.encode_request(Api.Heartbeat, 0, 77, "last", {"group_id": "", "member_id": "last"})


def expected_tail(context: RequestContext, body: Any) -> bytes:
    """A response that depends on every field of the request."""
    asked = f"{body.group_id} {body.member_id} {body.generation_id} {getattr(body, 'group_instance_id', None)}"
    codes = sorted(TAILS[context.version])
    return TAILS[context.version][codes[sum(asked.encode()) % len(codes)]]


class CachingHandler:
    def __init__(self, *, caches: bool) -> None:
        self.caches = caches
        self.decoded = 0
        self.is_fresh = True

    def __call__(self, context: RequestContext, body: Any) -> Encoded:
        self.decoded += 1
        return Encoded(expected_tail(context, body))

    def repeat(self, context: RequestContext, body: Any) -> CachedResponse | None:
        tail = expected_tail(context, body)
        return (lambda: tail if self.is_fresh else None) if self.caches else None


class FakePeer:
    """A fake socket and a fake readiness: data reaches the connection immediately."""

    now = 0.0
    clock = staticmethod(lambda: 0.0)

    def __init__(self, handler: CachingHandler) -> None:
        self.turns = Turns(REAL.stopwatch)
        resources = ConnectionResources(
            frame_bytes_max=MAX_FRAME_BYTES,
            memory=MemoryBudgets(
                requests_bytes_max=MAX_FRAME_BYTES, responses_bytes_max=MAX_FRAME_BYTES, frame_bytes_max=MAX_FRAME_BYTES
            ),
            turns=self.turns,
            threads=REAL.threads,
            readiness=self,  # type: ignore[arg-type]  # all that a connection uses
            handlers={Api.Heartbeat: handler},
            readers={},
            repeats={Api.Heartbeat: handler.repeat},
            keep_task=lambda _task: None,
            on_released=lambda _connection: None,
            unsupported=UnsupportedRequests([Api.Heartbeat]),
        )
        self.sent = b""
        self.is_closed = False
        self._data = b""
        self._connection = ServedConnection(resources, self, "127.0.0.1", 1)  # type: ignore[arg-type]  # a socket's

    async def give(self, data: bytes) -> None:
        """Deliver `data` and wait until it has been served."""
        if data and not self.is_closed:
            self._data = data
            self._connection.on_ready(READABLE)
        await until(lambda: not len(self.turns), 60, "the queued work to run")

    def recv(self, _: int) -> bytes:
        return self._data

    def send(self, data: bytes) -> int:
        assert not self.is_closed
        self.sent += data
        return len(data)

    def close(self) -> None:
        self.is_closed = True

    def fileno(self) -> int:
        return 5

    def setblocking(self, _: bool) -> None: ...

    def setsockopt(self, *_: int) -> None: ...

    def watch(self, *_: object) -> None: ...

    def change(self, *_: object) -> None: ...

    def forget(self, *_: object) -> None: ...

    def move(self, one: ServedConnection, _: int, *, prompt: bool) -> None:
        one.is_prompt = prompt


async def conversation(handler: CachingHandler, pieces: list[bytes]) -> tuple[bytes, bool]:
    """The answers to `pieces` and then to `LAST`, and whether the connection was closed."""
    other = FakePeer(handler)
    for piece in (*pieces, LAST):
        await other.give(piece)
    return other.sent, other.is_closed


def heartbeat(version: int, correlation_id: int, **fields: Any) -> bytes:
    return codec.encode_request(Api.Heartbeat, version, correlation_id, "client", {**BODY, **fields})


def both(pieces: list[bytes]) -> tuple[Any, Any]:
    async def talk() -> tuple[Any, Any]:
        caching, plain = CachingHandler(caches=True), CachingHandler(caches=False)
        return await conversation(caching, pieces), await conversation(plain, pieces)

    return asyncio.run(talk())


@settings(max_examples=examples(150), deadline=None)
@given(
    st.sampled_from(VERSIONS),
    st.integers(-(2**31), 2**31 - 1),
    st.lists(st.tuples(st.integers(4, 60), st.integers(0, 255)), max_size=3),
    st.integers(-6, 3),
    st.integers(0, 60),
)
def test_frame_similar_to_the_last_one_is_answered_as_without_a_cache(
    version: int, correlation_id: int, changes: list[tuple[int, int]], longer: int, cut: int
) -> None:
    """Bytes changed, left out or appended, with the resulting frame size; in one piece or in two."""
    frame = bytearray(heartbeat(version, correlation_id))
    for at, byte in changes:
        if at < len(frame):
            frame[at] = byte
    frame = frame + bytes(longer) if longer > 0 else frame[: len(frame) + longer]
    frame[:4] = (len(frame) - 4).to_bytes(4, "big")
    changed = bytes(frame)
    cached, plain = both([heartbeat(version, 1), changed[:cut], changed[cut:]])
    assert cached == plain


@pytest.mark.parametrize("version", VERSIONS)
async def test_same_heartbeat_is_decoded_once_and_answered_each_time(version: int) -> None:
    handler = CachingHandler(caches=True)
    other = FakePeer(handler)
    expected = b""
    for correlation_id in (1, 2, -5, 2**31 - 1):
        await other.give(heartbeat(version, correlation_id))
        expected += codec.response_with(correlation_id, TAILS[version][_code(version)])
        assert other.sent == expected
    assert handler.decoded == 1
    await other.give(heartbeat(version, 6, generation_id=4))
    assert handler.decoded == 2, "another one is not the same"
    await other.give(heartbeat(version, 7, generation_id=4))
    assert handler.decoded == 2, "it is cached instead"
    handler.is_fresh = False
    await other.give(heartbeat(version, 8, generation_id=4))
    assert handler.decoded == 3, "the handler is called once the fast path ends"


def _code(version: int) -> int:
    request: Any = codec.decode_request(heartbeat(version, 1)[4:])
    tail = expected_tail(request, request.body)
    return next(code for code, known in TAILS[version].items() if known == tail)


@pytest.mark.parametrize(
    "split", [lambda two: [two], lambda two: [two[:50], two[50:]], lambda two: [two[:3], two[3:9], two[9:]]]
)
def test_fragmented_heartbeats_are_answered_in_order(split: Callable[[bytes], list[bytes]]) -> None:
    cached, plain = both([heartbeat(3, 1), *split(heartbeat(3, 2) + heartbeat(3, 3))])
    assert cached == plain
    assert cached == (plain[0], False)
    assert len(plain[0]) == 3 * 14 + 10
