"""What a broker has in place of the machine's sockets: `Listener`, `Readiness`, and what `accept` returns."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import TYPE_CHECKING, cast

from kernel.broker.loop.poller import READABLE, WRITABLE
from kernel.platform.ports import LOOPBACK

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from comparison.simulation.network import Endpoint, ListeningSocket, Network
    from comparison.simulation.virtual_loop import VirtualLoop
    from kernel.broker.loop.readiness import SocketOwner
    from kernel.broker.loop.turns import Turns

#: epoll's mask for a connection that was reset.
_HUNG_UP = 16


def _virtual_loop() -> VirtualLoop:
    return cast("VirtualLoop", asyncio.get_running_loop())


class AcceptedSocket:
    """The part of `socket.socket` that `kernel.broker.server.buffered_socket` uses."""

    def __init__(self, network: Network, endpoint: Endpoint) -> None:
        self.recv = endpoint.recv
        self.send = endpoint.send
        self._network = network
        self._endpoint = endpoint
        self._descriptor = network.descriptor(endpoint)

    def fileno(self) -> int:
        return self._descriptor

    def setblocking(self, flag: bool) -> None:  # socket's
        """It never blocks."""

    def setsockopt(self, *_: object) -> None:
        """Nothing is held back to be sent together."""

    def close(self) -> None:
        self._network.by_descriptor.pop(self._descriptor, None)
        self._endpoint.close()


class SimulatedListener:
    """In place of `kernel.broker.server.accepting.Listener`."""

    _listening: ListeningSocket | None = None

    def __init__(self, host: str, port: int, stopwatch: Callable[[], float]) -> None:
        self._network = _virtual_loop().network
        self.port = port or self._network.free_port()

    def start(self, accepted: Callable[[socket.socket, str], None]) -> None:
        network = self._network

        def admit(endpoint: Endpoint) -> None:
            accepted(cast("socket.socket", AcceptedSocket(network, endpoint)), LOOPBACK)

        self._listening = network.listen(self.port, admit)

    def close(self) -> None:
        if self._listening is not None:
            self._listening.close()


class SimulatedReadiness:
    """In place of `kernel.broker.loop.readiness.Readiness`: reports again as long as there is something to report.

    Prompt connections and patient ones are served alike, since no time passes while they are.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, turns: Turns, stopwatch: Callable[[], float]) -> None:
        self.clock = loop.time
        self.now = loop.time()
        self._loop = loop
        self._context = copy_context()
        self._endpoints = _virtual_loop().network.by_descriptor
        self._watched: dict[int, tuple[SocketOwner, int]] = {}
        self._due: dict[int, None] = {}

    def close(self) -> None:
        assert not self._watched, "close all connections first"

    def watch(self, one: SocketOwner, events: int) -> None:
        self._watched[one.fd] = one, events
        fd = one.fd
        self._endpoints[fd].on_change = lambda: self._changed(fd)
        self._changed(fd)

    def change(self, one: SocketOwner, events: int) -> None:
        self._watched[one.fd] = one, events
        self._changed(one.fd)

    def move(self, one: SocketOwner, events: int, *, prompt: bool) -> None:
        one.is_prompt = prompt
        self.change(one, events)

    def forget(self, one: SocketOwner) -> None:
        del self._watched[one.fd]
        self._endpoints[one.fd].on_change = None

    def _changed(self, fd: int) -> None:
        if fd not in self._due and self._ready(fd):
            self._due[fd] = None
            self._loop.call_soon(self._report, fd, context=self._context)

    def _ready(self, fd: int) -> int:
        watched = self._watched.get(fd)
        if watched is None:
            return 0
        endpoint, events = self._endpoints[fd], watched[1]
        ready = events & READABLE if endpoint.is_readable else 0
        if events & WRITABLE:
            if endpoint.is_writable:
                ready |= WRITABLE
            else:
                endpoint.is_full = True
        return ready | _HUNG_UP if endpoint.is_reset else ready

    def _report(self, fd: int) -> None:
        del self._due[fd]
        ready = self._ready(fd)
        if ready:
            self.now = self._loop.time()
            self._watched[fd][0].on_ready(ready)
            self._changed(fd)
