"""A session with the manners of ZooKeeper's Java client, on a real server; `test_manners.py` has the pauses alone."""

from __future__ import annotations

import asyncio
import time
from random import Random

import pytest

from kernel.runtime import REAL
from kernel.waiting import until
from kernel.zookeeper.manners import JavaManners
from kernel.zookeeper.operations import SessionState, WatchEvent
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import Watched, become, end_session, opened


class StoppedForLong(JavaManners):
    """As after SIGSTOP and SIGCONT, while `late` is set."""

    late = False

    def is_late(self) -> bool:
        return self.late or super().is_late()

    def greeted(self, session_timeout_ms: int) -> None:
        self.late = False
        super().greeted(session_timeout_ms)


class Patient(JavaManners):
    """Considers a process stopped two seconds later than Java's client does: a busy machine may pause it that long."""

    def greeted(self, session_timeout_ms: int) -> None:
        super().greeted(session_timeout_ms)
        self._silence_max_ns += 2_000_000_000


class Noted(JavaManners):
    """Keeps the pauses before connections that it has asked for."""

    def __init__(self, random: Random) -> None:
        super().__init__(random, REAL.clock)
        self.pauses_s: list[float] = []

    def pause_s(self, server: tuple[str, int]) -> float:
        self.pauses_s.append(super().pause_s(server))
        return self.pauses_s[-1]


async def test_notification_that_waited_while_the_process_was_stopped_is_dropped(chroot):
    manners = StoppedForLong(None, REAL.clock)
    tracer = ListTracer()
    async with opened(chroot) as other, opened(chroot, tracer, manners=manners) as session:
        watched = Watched()
        await session.create("/ids")
        await session.children("/ids", watch=watched)
        before = session.session_id
        changes = session.subscribe()
        manners.late = True
        await other.create("/ids/a")
        async with asyncio.timeout(20):
            assert [(await changes.get()).state for _ in range(2)] == [SessionState.SUSPENDED, SessionState.CONNECTED]
        assert session.session_id == before
        # The loss of the watch, not the change: who listens has to look.
        assert watched.events == [WatchEvent.NONE]
        assert await session.children("/ids") == ["a"]
    assert not tracer.of("zk_notified")


async def test_busy_loop_does_not_count_as_stopped(chroot):
    tracer = ListTracer()
    async with opened(chroot, tracer, timeout_ms=15_000, manners=Patient(None, REAL.clock)) as session:
        await session.create("/mine", b"", ephemeral=True)
        before = session.session_id
        time.sleep(16)  # noqa: ASYNC251  # the fault: nothing else runs on this loop meanwhile
        assert await session.exists("/mine")
        assert session.session_id == before
        assert [e["state"] for e in tracer.of("session_changed") if e["state"] != "connected"] == []


@pytest.mark.parametrize("awaited", [True, False])
async def test_new_operation_goes_before_those_that_waited_for_a_new_session(chroot, awaited):
    with ZooKeeperProxy(chroot) as proxy:
        async with opened(proxy.connect_string, retry_forever=True) as session:
            await session.create("/n", b"before")
            session.let_new_operations_go_first(lambda: awaited)
            since, old = proxy.mark(), session.session_id
            proxy.refuse(True)
            proxy.cut()
            await become(session, SessionState.SUSPENDED)
            waiting = asyncio.ensure_future(session.set("/n", b"stale"))
            await asyncio.to_thread(end_session, chroot, session.credentials)
            proxy.refuse(False)
            await until(lambda: session.session_id != old, 60, "a new session", every_s=0)
            await session.create("/first")
            await waiting
            sent = [op.path for op in proxy.operations(since) if op.op in ("create", "setData")]
            assert sorted(sent) == ["/first", "/n"]
            if awaited:
                assert sent == ["/first", "/n"]


async def test_java_client_connects_again_after_one_to_two_seconds_and_opens_a_new_session_at_once(chroot):
    manners = Noted(Random(1))
    with ZooKeeperProxy(chroot) as proxy:
        async with opened(proxy.connect_string, retry_forever=True, manners=manners) as session:
            old = session.session_id
            before = time.monotonic()
            await asyncio.to_thread(end_session, chroot, session.credentials)
            await until(lambda: session.session_id != old and session.connected, 60, "a new session")
            again, new = [op for op in proxy.operations() if op.op in ("connect", "reconnect")][1:]
            assert again.at - before > 1.0
            assert new.at > again.at
            assert len(manners.pauses_s) == 3, manners.pauses_s
            first, before_again, before_new = manners.pauses_s
            assert (first, before_new) == (0, 0)
            assert 1.0 <= before_again < 2.1
