"""ZkClient's rules on a real ZooKeeper: what a listener costs, what it is notified of, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kernel.waiting import until
from kernel.zookeeper.errors import NoNode, SessionClosed
from kernel.zookeeper.operations import SessionState
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.consumers.weak_members import mend, sever
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.sessions import expire, opened
from zkconsumer.watching.watcher import Listening, Watcher

CHILDREN, DATA = Listening.CHILDREN, Listening.DATA


class Watching:
    """A watcher with running deliveries, and its notifications."""

    def __init__(self, session: ZooKeeperSession, tracer: ListTracer, *, one_read: bool) -> None:
        self.session = session
        self.tracer = tracer
        self.notified: list[str] = []
        self.watcher = Watcher(session, self._renewed, one_read=one_read)

    async def _renewed(self) -> None:
        self.notified.append("new session")

    async def listen(self, path: str, what: Listening) -> None:
        await self.watcher.listen(path, what, lambda _: self.notified.append(path))

    def reads(self, since: int = 0) -> list[str]:
        return [f"{each['op']} {each['path']}" for each in self.tracer.of("zk_op")[since:]]

    def re_armed(self) -> set[object]:
        return {each["path"] for each in self.tracer.of("zk_op") if each["step"] == "re-arm"}

    async def wait(self, *expected: str) -> None:
        """Wait for as many notifications, and compare."""
        await until(lambda: len(self.notified) >= len(expected), 60, lambda: f"{expected}, notified {self.notified}")
        assert self.notified == list(expected)


@asynccontextmanager
async def watching(connect_string: str, *, one_read: bool = False, timeout_ms: int = 15_000) -> AsyncIterator[Watching]:
    tracer = ListTracer()
    async with opened(connect_string, tracer, timeout_ms=timeout_ms, retry_forever=True) as session:
        made = Watching(session, tracer, one_read=one_read)
        made.watcher.begin()
        delivering = asyncio.create_task(made.watcher.deliver())
        try:
            yield made
        finally:
            delivering.cancel()


@pytest.mark.parametrize(
    ("one_read", "what", "subscribed", "delivered"),
    [
        (False, CHILDREN, ["exists /n", "getChildren /n"], ["exists /n", "getChildren /n"]),
        (False, DATA, ["exists /n"], ["exists /n", "getData /n"]),
        (True, CHILDREN, ["getChildren /n"], ["getChildren /n"]),
        (True, DATA, ["exists /n"], ["getData /n"]),
    ],
)
async def test_reads_of_a_subscription_and_of_a_delivery(chroot, one_read, what, subscribed, delivered):
    async with opened(chroot) as other, watching(chroot, one_read=one_read) as ours:
        await other.create("/n", b"")
        await ours.listen("/n", what)
        assert ours.reads() == subscribed
        await (other.create("/n/child", b"") if what is CHILDREN else other.set("/n", b"1"))
        await ours.wait("/n")
        assert ours.reads(since=len(subscribed)) == delivered


@pytest.mark.parametrize("one_read", [False, True])
@pytest.mark.parametrize("what", Listening)
async def test_missing_node_is_noticed_when_it_is_created(chroot, one_read, what):
    async with opened(chroot) as other, watching(chroot, one_read=one_read) as ours:
        await ours.listen("/n", what)
        await other.create("/n", b"")
        await ours.wait("/n")
        await (other.create("/n/child", b"") if what is CHILDREN else other.set("/n", b"1"))
        await ours.wait("/n", "/n")


async def test_listener_to_data_is_not_notified_of_a_deletion_but_of_the_next_creation(chroot):
    async with opened(chroot) as other, watching(chroot) as ours:
        await other.create("/n", b"")
        await ours.listen("/n", DATA)
        await other.delete("/n")
        await until(lambda: len(ours.reads()) == 3, 60, "the delivery of the deletion")
        assert ours.notified == []
        await other.create("/n", b"")
        await ours.wait("/n")


async def test_read_of_a_path_with_a_listener_leaves_a_watch_and_others_leave_none(chroot):
    """Rule 1: after the delivery's watch has fired, an ordinary read's watch notices the next change."""
    async with opened(chroot) as other, watching(chroot) as ours:
        await other.create("/n", b"")
        await other.create("/m", b"")
        await ours.listen("/n", CHILDREN)
        assert await ours.watcher.get("/n", step="R6") == b""  # it listens to children; this read watches the data
        assert await ours.watcher.get("/m", step="R6") == b""
        await other.set("/m", b"1")
        await other.set("/n", b"1")
        await until(lambda: len(ours.reads()) == 6, 60, "the watch to be registered again")
        assert ours.reads(since=4) == ["exists /n", "getChildren /n"]
        assert ours.notified == []  # data is not what it listens to
        with pytest.raises(NoNode):
            await ours.watcher.children("/none", step="R6")


async def test_slow_listener_delays_the_next_notification(chroot):
    async with opened(chroot) as other, watching(chroot) as ours:
        may_end = asyncio.Event()

        async def slow(_: str) -> None:
            ours.notified.append("begins")
            await may_end.wait()
            ours.notified.append("ends")

        for path in ("/slow", "/n"):
            await other.create(path, b"")
        await ours.watcher.listen("/slow", CHILDREN, slow)
        await ours.listen("/n", CHILDREN)
        await other.create("/slow/child", b"")
        await ours.wait("begins")
        await other.create("/n/child", b"")
        await until(lambda: len(ours.tracer.of("zk_notified")) == 2, 60, "the second watch to fire")
        assert ours.reads()[-1] == "getChildren /slow"
        may_end.set()
        await ours.wait("begins", "ends", "/n")


async def test_new_session_notifies_the_application_then_children_then_data(chroot):
    async with opened(chroot) as other, watching(chroot) as ours:
        for path, what in (("/data", DATA), ("/children", CHILDREN)):
            await other.create(path, b"")
            await ours.listen(path, what)
        await expire(ours.session)
        await ours.wait("new session", "/children", "/data")
        await other.set("/data", b"1")
        await ours.wait("new session", "/children", "/data", "/data")


async def test_cut_in_one_session_notifies_only_of_what_changed_meanwhile(chroot, link):
    """The child of `/grown` was deleted and recreated: an equal list, but another node."""
    paths = ("/same", "/grown", "/gone", "/new")
    async with opened(chroot) as other, watching(link.connect_string, timeout_ms=30_000) as ours:
        for path in paths[:3]:
            await other.create(path, b"")
        await other.create("/grown/back", b"")
        for path in paths:
            await ours.listen(path, CHILDREN)
        sever(link)
        await until(lambda: ours.session.state is not SessionState.CONNECTED, 60, "the connection to be lost")
        await other.delete("/grown/back")
        await other.create("/grown/back", b"")
        await other.delete("/gone")
        await other.create("/new", b"")
        mend(link)
        await until(lambda: ours.re_armed() >= set(paths), 60, lambda: f"all watches, not only {ours.re_armed()}")
        await until(lambda: len(ours.notified) >= 3, 60, lambda: f"three paths, notified {ours.notified}")
        assert sorted(ours.notified) == ["/gone", "/grown", "/new"]


async def test_forgotten_listener_is_not_notified(chroot):
    async with opened(chroot) as other, watching(chroot) as ours:
        await other.create("/n", b"")
        await ours.listen("/n", CHILDREN)
        ours.watcher.forget_listeners()
        await other.create("/n/child", b"")
        await until(lambda: ours.tracer.of("zk_notified"), 60, "the watch to fire")
        await ours.listen("/m", CHILDREN)
        await other.create("/m", b"")
        await ours.wait("/m")
        assert ours.reads(since=2) == ["exists /m", "getChildren /m"] * 2


async def test_failed_delivery_does_not_stop_the_next_one_but_the_end_of_the_session_does(chroot, caplog):
    async with opened(chroot) as other, watching(chroot) as ours:

        async def fails(_: str) -> None:
            raise NoNode("/elsewhere")

        async def ends(_: str) -> None:
            ours.notified.append("/ends")
            raise SessionClosed("closed")

        await ours.watcher.listen("/fails", CHILDREN, fails)
        await ours.watcher.listen("/ends", CHILDREN, ends)
        await ours.listen("/n", CHILDREN)
        await other.create("/fails", b"")
        await other.create("/n", b"")
        await ours.wait("/n")
        await other.create("/ends", b"")
        await ours.wait("/n", "/ends")
        await other.create("/n/child", b"")
        await until(lambda: len(ours.tracer.of("zk_notified")) == 4, 60, "the watch to fire")
        assert ours.notified == ["/n", "/ends"]
    assert "could not handle" in caplog.text
