"""Two ensembles side by side, a real one and the modelled one, and sessions that do the same on both.

The same client talks to both: our `Bridge`, which is kazoo. Every answer and every notification of the real side must
equal the model's, where session ids and zxids are only paired: the pairs must have one order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kazoo.exceptions import ZookeeperError
from kazoo.protocol.states import ZnodeStat

from comparison.simulation.zookeeper.model.sessions import password_of
from kernel.waiting import until
from kernel.zookeeper import requests
from kernel.zookeeper.bridge import Bridge
from kernel.zookeeper.end_session import SessionCredentials, end_session
from kernel.zookeeper.event_queue import Answered, Notified, SessionEvent, StateChanged

TIMEOUT_S = 60
SESSION_MS = 30_000
#: What the end of a session may be notified of to itself: znodes deleted, and children changed.
_OF_ITS_OWN = (2, 4)
ZXIDS = ("czxid", "mzxid", "pzxid")


class OneSession:
    """A session on one side, and what has arrived."""

    def __init__(self, connect_string: str, name: str) -> None:
        self.connect_string = connect_string
        self.fired: list[Notified] = []
        self.states: list[str] = []
        self.session_id = 0
        self._waiting: dict[object, asyncio.Future[Answered]] = {}
        self.bridge = Bridge(
            connect_string,
            session_timeout_ms=SESSION_MS,
            name=name,
            loop=asyncio.get_running_loop(),
            handle=self._handle,
        )

    async def open(self) -> None:
        self.bridge.start()
        await self.reach("CONNECTED")

    async def reach(self, state: str) -> None:
        await until(lambda: self.states[-1:] == [state], TIMEOUT_S, lambda: f"{state}, came to {self.states}")

    async def ask(self, request: object) -> Answered:
        future: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        token = id(future)
        self._waiting[token] = future
        self.bridge.send(request, token)
        return await asyncio.wait_for(future, TIMEOUT_S)

    async def close(self) -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        self.bridge.stop_in_background(lambda: loop.call_soon_threadsafe(ended.set))
        await asyncio.wait_for(ended.wait(), TIMEOUT_S)

    def _handle(self, event: SessionEvent) -> None:
        match event:
            case Answered(token):
                self._waiting.pop(token).set_result(event)
            case Notified():
                self.fired.append(event)
            case StateChanged(state, session_id):
                self.states.append(state)
                self.session_id = session_id


@dataclass
class Twins:
    """The same session on both sides; `servers` gives the order in which it tries the servers, by role."""

    real: OneSession
    model: OneSession

    @property
    def both(self) -> tuple[OneSession, OneSession]:
        return self.real, self.model


@dataclass
class Sides:
    """Both ensembles: addresses by role (the leader first), all twins, and what was compared."""

    real: Sequence[str]
    model: Sequence[str]
    twins: list[Twins] = field(default_factory=list)
    compared: int = 0
    #: Real and modelled zxids and session ids that stand for the same.
    zxids: dict[int, int] = field(default_factory=dict)
    owners: dict[int, int] = field(default_factory=lambda: {0: 0})
    _helpers: list[Twins] = field(default_factory=list)
    _began_ms: int = field(default_factory=lambda: int(time.time() * 1000))

    async def start(self) -> None:
        for number in range(len(self.real)):
            self._helpers.append(await self._opened(f"helper-{number}", (number,)))

    async def stop(self) -> None:
        for twins in (*self.twins, *self._helpers):
            await asyncio.gather(*(one.close() for one in twins.both))
        numbers = [number for _, number in sorted(self.zxids.items())]
        assert numbers == sorted(set(numbers)), "the changes were in another order"

    async def open(self, servers: Sequence[int]) -> Twins:
        """Open a session that tries the servers in this order."""
        twins = await self._opened(f"twins-{len(self.owners)}", servers)
        self.twins.append(twins)
        return twins

    async def _opened(self, name: str, servers: Sequence[int]) -> Twins:
        twins = Twins(
            OneSession(",".join(self.real[number] for number in servers), name),
            OneSession(",".join(self.model[number] for number in servers), name),
        )
        await asyncio.gather(*(one.open() for one in twins.both))
        await self.settle()
        for one in twins.both:
            session_id, password = one.bridge.credentials
            assert password == password_of(session_id)
        self.owners[twins.real.session_id] = twins.model.session_id
        return twins

    async def close(self, twins: Twins) -> None:
        self.twins.remove(twins)
        await asyncio.gather(*(one.close() for one in twins.both))
        await self.settle()
        self.compare_notifications(twins)

    async def end(self, twins: Twins) -> None:
        """Have the session closed by somebody else: for its client it has expired, and it gets a new one.

        Of its own ephemeral znodes it hears, or not: a real server writes the notification and closes the connection
        in two threads (about as often as not, tried on 3.9.5). The model always writes it.
        """
        await self.settle()
        self.compare_notifications(twins)
        for one in twins.both:
            before = one.session_id
            assert await end_session(
                one.connect_string, SessionCredentials(*one.bridge.credentials), timeout_s=TIMEOUT_S
            )
            await until(
                lambda one=one, before=before: one.states[-1] == "CONNECTED" and one.session_id != before,
                TIMEOUT_S,
                "a new session",
            )
        await self.settle()
        self.owners[twins.real.session_id] = twins.model.session_id
        assert twins.real.states[-3:] == twins.model.states[-3:]
        for one in twins.both:
            assert all(fired.kind in _OF_ITS_OWN for fired in one.fired)
            one.fired.clear()

    async def move(self, twins: Twins) -> None:
        """Break the connection: the client connects to the next server, in the same session, without watches."""
        for one in twins.both:
            before, changes = one.session_id, len(one.states)
            one.bridge.break_connection()
            await until(
                lambda one=one, changes=changes: len(one.states) >= changes + 2 and one.states[-1] == "CONNECTED",
                TIMEOUT_S,
                "the next connection",
            )
            assert one.session_id == before
        self.compare_notifications(twins)

    async def ask(self, twins: Twins, request: object) -> None:
        """Do the same on both sides, and compare the answers."""
        real, model = await asyncio.gather(*(one.ask(request) for one in twins.both))
        found, expected = self._plain(real.value, real=True), self._plain(model.value, real=False)
        answers = (found, _name(real.error)), (expected, _name(model.error))
        assert answers[0] == answers[1], f"{request}: {answers[0]}, on the model {answers[1]}"
        self._pair(real.value, model.value)
        self._pair_zxid(real.zxid, model.zxid)
        self.compared += 1

    async def settle(self) -> None:
        """Wait until all servers have caught up, and all notifications have arrived."""
        asked = [one.ask(requests.sync("/")) for twins in self._helpers for one in twins.both]
        await asyncio.gather(*asked)
        asked = [one.ask(requests.exists("/", watch=False)) for twins in self.twins for one in twins.both]
        await asyncio.gather(*asked)

    def compare_notifications(self, twins: Twins) -> None:
        real, model = twins.real.fired, twins.model.fired
        of_real, of_model = ([(n.kind, n.path) for n in fired] for fired in (real, model))
        assert of_real == of_model, f"notified of {of_real}, on the model {of_model}"
        for found, expected in zip(real, model, strict=True):
            assert found.zxid is not None
            assert expected.zxid is not None
            self._pair_zxid(found.zxid, expected.zxid)
        self.compared += len(real)
        real.clear()
        model.clear()

    # -- comparing -----------------------------------------------------------------------------------------------------

    def _plain(self, value: Any, *, real: bool) -> Any:
        """A value without zxids and times; a real session id as the model's."""
        match value:
            case ZnodeStat():
                now_ms = int(time.time() * 1000)
                for at in (value.ctime, value.mtime):
                    assert at == 0 or self._began_ms - 1000 <= at <= now_ms + 1000
                owner = self.owners[value.ephemeralOwner] if real else value.ephemeralOwner
                return value._replace(czxid=0, mzxid=0, pzxid=0, ctime=0, mtime=0, ephemeralOwner=owner)
            case tuple() | list():
                plain = [self._plain(each, real=real) for each in value]
                return sorted(plain) if all(isinstance(each, str) for each in plain) else plain
            case ZookeeperError():
                return _name(value)
        return value

    def _pair(self, real: Any, model: Any) -> None:
        match real:
            case ZnodeStat():
                for name in ZXIDS:
                    self._pair_zxid(getattr(real, name), getattr(model, name))
            case tuple() | list():
                for one, other in zip(real, model, strict=True):
                    self._pair(one, other)

    def _pair_zxid(self, real: int, model: int) -> None:
        assert self.zxids.setdefault(real, model) == model, f"zxid {real:x} is {model:x}, was {self.zxids[real]:x}"


def _name(error: object) -> str:
    return "" if error is None else type(error).__name__
