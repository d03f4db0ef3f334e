"""Reads ready connections in two classes, so that thousands of them cannot delay heartbeats.

*Prompt* connections, those of members that heartbeat, are read first in every turn of the loop. *Patient* ones, all
others (thousands when a large group connects or rebalances), are read, and served as they are read, for a millisecond
per turn; unread data stays in the kernel and is reported again. Each class has its own poller, which the loop watches,
so a read costs no asyncio handle, and an idle connection costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kernel.broker.loop.poller import poller

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from kernel.broker.loop.poller import Poller
    from kernel.broker.loop.turns import Turns

#: Prompt connections read in one turn.
PROMPT_MAX = 256
#: Patient connections read and served in one turn, and the time allowed for it.
PATIENT_MAX, PATIENT_BUDGET_S = 32, 0.001
#: Patient connections polled at a time. All of them are read: epoll queues a connection that it has reported behind
#: the others, so skipping one would starve it.
PATIENT_AT_ONCE = 4


class SocketOwner(Protocol):
    """A socket's owner; `on_ready` gets epoll's events."""

    fd: int
    is_prompt: bool

    @property
    def last_read(self) -> str:
        """The name of the last request read from it."""
        ...

    def on_ready(self, events: int) -> None: ...


class Readiness:
    """Calls `on_ready` of watched sockets until `close`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, turns: Turns, stopwatch: Callable[[], float]) -> None:
        """Records in `turns` how long serving a patient connection has taken."""
        self.clock = loop.time
        self.now = loop.time()  #: seconds of the loop's clock, as of the last poll
        self._loop = loop
        self._turns = turns
        self._stopwatch = stopwatch
        self._watched: dict[int, SocketOwner] = {}
        self._prompt, self._patient = poller(), poller()
        loop.add_reader(self._prompt.fileno(), self._poll_prompt)
        loop.add_reader(self._patient.fileno(), self._poll_patient)

    def close(self) -> None:
        assert not self._watched, "close all connections first"
        for epoll in (self._prompt, self._patient):
            self._loop.remove_reader(epoll.fileno())
            epoll.close()

    def watch(self, one: SocketOwner, events: int) -> None:
        self._watched[one.fd] = one
        self._epoll_of(one).register(one.fd, events)

    def change(self, one: SocketOwner, events: int) -> None:
        """Errors and hang-ups are reported whatever `events` says."""
        self._epoll_of(one).modify(one.fd, events)

    def move(self, one: SocketOwner, events: int, *, prompt: bool) -> None:
        """Move to the other class."""
        self._epoll_of(one).unregister(one.fd)
        one.is_prompt = prompt
        self._epoll_of(one).register(one.fd, events)

    def forget(self, one: SocketOwner) -> None:
        del self._watched[one.fd]
        self._epoll_of(one).unregister(one.fd)

    def _epoll_of(self, one: SocketOwner) -> Poller:
        return self._prompt if one.is_prompt else self._patient

    def _poll_prompt(self) -> None:
        self.now = self._loop.time()
        watched = self._watched
        for fd, events in self._prompt.poll(0, PROMPT_MAX):
            one = watched.get(fd)
            if one is not None:  # else another connection's request has just closed it
                one.on_ready(events)

    def _poll_patient(self) -> None:
        self.now = self._loop.time()
        watched = self._watched
        turns, stopwatch = self._turns, self._stopwatch
        before = stopwatch()
        end = before + PATIENT_BUDGET_S
        for _ in range(PATIENT_MAX // PATIENT_AT_ONCE):
            ready = self._patient.poll(0, PATIENT_AT_ONCE)
            for fd, events in ready:
                one = watched.get(fd)
                if one is not None:
                    one.on_ready(events)
                    now = stopwatch()
                    if now - before > turns.longest_s:
                        turns.longest_s, turns.longest = now - before, one.last_read
                    before = now
            if len(ready) < PATIENT_AT_ONCE or before > end:
                return
