"""The model of ZooKeeper beside a real one: every request goes to both, and the answers must be equal.

Members get the real server's answers, with its session ids and zxids translated to the model's. Compared are data,
names of children, errors, versions, owners of ephemeral nodes, the order of all changes (by zxid), and the
notifications of each session, in order.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import TypeVar

from comparison.simulation.zookeeper.model.protocol import EventType
from kernel.trace.writer import SilentTracer
from kernel.waiting import until
from kernel.zookeeper import errors, operations, paths
from kernel.zookeeper.operations import SessionState, ZnodeStat
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.model.zookeeper import Call, ModelZooKeeper, Notice, Reply, Server, Session, Stat
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import Watched, expire

T = TypeVar("T")
TIMEOUT_S = 60


class _Real:
    """The real session of a model session, behind its own proxy, which can break its connection."""

    def __init__(self, proxy: ZooKeeperProxy, session: ZooKeeperSession) -> None:
        self.proxy = proxy
        self.session = session
        self.watched = Watched()
        self.dropped = False
        self.expected: list[Notice] = []  #: notifications from the model, not compared yet


class MirroredZooKeeper(ModelZooKeeper):
    """One server; created by `mirrored`."""

    def __init__(self, chroot: str, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.compared = 0  #: answers and notifications
        self._chroot = chroot
        self._loop = loop
        self._real: dict[int, _Real] = {}
        self._zxids: dict[int, int] = {}  #: the real server's zxids -> the model's
        self._outside = self._run(self._open(chroot))

    def end(self) -> None:
        numbers = [number for _, number in sorted(self._zxids.items())]
        assert numbers == sorted(set(numbers)), "the changes were in another order"
        for session in self.sessions.values():
            if not session.ended:
                self.close(session)
        self._run(self._outside.close())

    def compare_notices(self, session: Session) -> None:
        """Check that the real server has sent this session the model's notifications."""
        real = self._real[session.number]
        # A reply arrives after all notifications of earlier changes.
        self._run(real.session.exists("/"))
        fired = [Notice(str(fired.event), fired.path) for fired in real.watched.fired]
        assert fired == real.expected, (
            f"session {session.number} was notified of {fired}, the model says {real.expected}"
        )
        self.compared += len(fired)
        real.watched.fired.clear()
        real.expected.clear()

    # -- the model's methods, performed on both ------------------------------------------------------------------------

    def open(self, server: int = 0) -> Session:
        session = super().open(server)
        proxy = ZooKeeperProxy(self._chroot)
        self._real[session.number] = _Real(proxy, self._run(self._open(proxy.connect_string)))
        return session

    def close(self, session: Session) -> None:
        real = self._real[session.number]
        if session.server is not None and not session.ended:
            self.compare_notices(session)
        super().close(session)
        self._drop(real)

    def expire(self, session: Session) -> None:
        was_live = not session.ended
        super().expire(session)
        if was_live:
            real = self._real[session.number]
            self._run(expire(real.session))
            self._drop(real)

    def disconnect(self, session: Session) -> set[str]:
        if session.server is not None and not session.ended:
            self.compare_notices(session)
            self._run(self._break(self._real[session.number]))
        return super().disconnect(session)

    def perform(self, session: Session, call: Call) -> Reply:
        expected = super().perform(session, call)
        real = self._run(self._perform(self._real[session.number], call, expected.stat))
        assert real == expected, f"{call}: {real}, the model says {expected}"
        self.compared += 1
        return real

    def put(self, path: str, data: bytes, owner: int = 0) -> None:
        assert not owner
        super().put(path, data)
        self._run(self._put(path, data))

    def remove(self, path: str) -> None:
        there = path in self.leader.nodes
        super().remove(path)
        if there:
            self._run(self._outside.delete(path))

    def _fire(self, server: Server, event: EventType, path: str) -> None:
        before = {number: len(session.inbox) for number, session in self.sessions.items()}
        super()._fire(server, event, path)
        for number, session in self.sessions.items():
            self._real[number].expected += list(session.inbox)[before[number] :]

    # -- the real server -----------------------------------------------------------------------------------------------

    def _run(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT_S)

    def _drop(self, real: _Real) -> None:
        if not real.dropped:
            real.dropped = True
            self._run(real.session.close())
            real.proxy.close()

    async def _open(self, connect_string: str) -> ZooKeeperSession:
        return await ZooKeeperSession.open(
            connect_string,
            session_timeout_ms=30_000,
            tracer=SilentTracer(),
            process="test",
            name="mirror",
            connection_timeout_ms=30_000,
        )

    async def _break(self, real: _Real) -> None:
        """Break the connection and restore it, in the same session, without its watches."""
        states, number = real.session.subscribe(), real.session.session_id
        real.proxy.cut()
        while (await states.get()).state is not SessionState.SUSPENDED:
            pass
        await until(lambda: real.session.connected, TIMEOUT_S, "the session to be connected again")
        assert real.session.session_id == number
        real.watched.fired.clear()  # kazoo's events for lost watches

    async def _put(self, path: str, data: bytes) -> None:
        try:
            await self._outside.set(path, data)
        except errors.NoNode:
            await self._outside.ensure_path(paths.parent(path))
            await self._outside.create(path, data)

    async def _perform(self, real: _Real, call: Call, expected: Stat | None) -> Reply:
        watch = real.watched if call.watch else None
        session, path, stat = real.session, call.path, None
        data = b""
        children: tuple[str, ...] = ()
        try:
            match call.op:
                case "exists":
                    if (stat := await session.exists(path, watch=watch)) is None:
                        raise errors.NoNode("as a server says it", path)
                case "getData":
                    data, stat = await session.get(path, watch=watch)
                case "getChildren":
                    children = tuple(await session.children(path, watch=watch))
                case "create":
                    await session.create(path, call.data, ephemeral=call.ephemeral)
                    stat = await session.exists(path)
                case "setData":
                    stat = await session.set(path, call.data, call.version)
                case "delete":
                    await session.delete(path, call.version)
                case "sync":
                    await session.sync(path)
                case "multi":
                    await session.transaction(*(_part(part) for part in call.parts))
        except errors.ZooKeeperError as error:
            part = [part.path for part in call.parts].index(error.path) if call.parts else 0
            return Reply(error=type(error).__name__, part=part, zxid=len(self.log))
        return Reply(data, children, None if stat is None else self._stat(stat, expected), zxid=len(self.log))

    def _stat(self, stat: ZnodeStat, expected: Stat | None) -> Stat:
        """The metadata in the model's zxids. A new zxid is paired with the one that the model expects."""
        owner = 0
        if stat.ephemeral_owner:
            owner = next(n for n, real in self._real.items() if real.session.session_id == stat.ephemeral_owner)
        changes = (stat.czxid, stat.mzxid, stat.pzxid)
        if expected is not None:
            for change, number in zip(changes, (expected.czxid, expected.mzxid, expected.pzxid), strict=True):
                self._zxids.setdefault(change, number)
        czxid, mzxid, pzxid = (self._zxids[change] for change in changes)
        return Stat(czxid, mzxid, pzxid, stat.version, stat.cversion, owner, stat.children)


def _part(part: Call) -> operations.TransactionPart:
    match part.op:
        case "create":
            return operations.Create(part.path, part.data, ephemeral=part.ephemeral)
        case "delete":
            return operations.Delete(part.path, part.version)
        case "setData":
            return operations.SetData(part.path, part.data, part.version)
    return operations.CheckVersion(part.path, part.version)


@contextmanager
def mirrored(chroot: str) -> Iterator[MirroredZooKeeper]:
    """An empty model and an empty chroot; their event loop runs in a separate thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="mirror", daemon=True)
    thread.start()
    try:
        zookeeper = MirroredZooKeeper(chroot, loop)
        try:
            yield zookeeper
        finally:
            zookeeper.end()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(TIMEOUT_S)
        loop.close()
