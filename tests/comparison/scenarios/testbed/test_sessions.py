"""A session is ended from outside, by its id alone."""

from __future__ import annotations

from comparison.scenarios.testbed.sessions import expire_from_outside
from kernel.waiting import until
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.operations import SessionState
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.sessions import opened


async def test_expired_session_loses_its_ephemeral_znode_and_its_client_is_told(zookeeper: EmbeddedZooKeeper) -> None:
    async def _gone(other: object) -> bool:
        return not await other.exists("/mine")  # type: ignore[attr-defined]

    def _told(tracer: ListTracer) -> bool:
        return any(event["state"] == str(SessionState.LOST) for event in tracer.of("session_changed"))

    tracer = ListTracer()
    address = zookeeper.connect_string
    async with opened(address, tracer=tracer) as session, opened(address) as other:
        await session.create("/mine", ephemeral=True)
        (connected,) = [event for event in tracer.of("session_changed") if event["state"] == "connected"]
        await expire_from_outside(address, int(str(connected["session"]), 16))
        await until(lambda: _gone(other), 60, "the ephemeral znode to be gone")
        await until(lambda: _told(tracer), 60, "the client to learn of it")
