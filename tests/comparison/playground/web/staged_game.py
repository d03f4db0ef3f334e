"""A game that a test plays by hand, and its server on a thread of its own, for a browser that blocks the test's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from comparison.playground import commands, messages
from comparison.playground.applying import applied
from comparison.playground.web.server import Served, serving
from kernel.waiting import wait_until
from tests.support.own_thread import held_open


class StagedGame:
    """Implements `comparison.playground.messages.Game`; `kept` increments can be received later."""

    def __init__(self, first: messages.Snapshot, *, kept: int = 1000) -> None:
        self.now = first
        self.commands: list[commands.AnyCommand] = []
        self.answers: list[commands.Answer] = []  #: to the next commands; the others are accepted
        self.saved: list[messages.SavedScenario] = []
        self.watching = 0
        self.received = 0  #: items that subscribers were given
        self._kept = kept
        self._increments: list[messages.Increment] = []
        self._news = asyncio.Event()
        self._is_over = False
        self._losses = 0

    def change(self, *changes: messages.AnyChange, after_ms: int = 100) -> None:
        """One increment. On the loop's thread."""
        increment = messages.Increment(seq=self.now.seq + 1, at_ms=self.now.at_ms + after_ms, changes=changes)
        self.now = applied(self.now, increment)
        self._increments = [*self._increments, increment][-self._kept :]
        self._wake()

    def begin_again(self, first: messages.Snapshot) -> None:
        """Go on from another snapshot. On the loop's thread."""
        self.now = replace(first, seq=self.now.seq + 1)
        self._increments = []
        self._wake()

    def end(self) -> None:
        self._is_over = True
        self._wake()

    def lose(self) -> None:
        """Break the connections to all pages."""
        self._losses += 1
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def snapshot(self) -> messages.Snapshot:
        return self.now

    async def subscribe(self, after: int | None = None) -> AsyncIterator[messages.Snapshot | messages.Increment]:
        self.watching += 1
        losses = self._losses
        try:
            while True:
                if losses != self._losses:
                    raise ConnectionResetError("lost by a test")
                item = self._next(after)
                if item is not None:
                    self.received += 1
                    after = item.seq
                    yield item
                elif self._is_over:
                    return
                else:
                    await self._news.wait()
        finally:
            self.watching -= 1

    def _next(self, after: int | None) -> messages.Snapshot | messages.Increment | None:
        if after == self.now.seq:
            return None
        return next((each for each in self._increments if after is not None and each.seq == after + 1), self.now)

    def scenarios(self) -> Sequence[messages.SavedScenario]:
        return self.saved

    async def command(self, command: commands.AnyCommand) -> commands.Answer:
        self.commands.append(command)
        return self.answers.pop(0) if self.answers else commands.Answer(accepted=True)


class ServedGame:
    """A staged game with its server, used from another thread."""

    def __init__(self, game: StagedGame, served: Served, loop: asyncio.AbstractEventLoop) -> None:
        self.game, self.served, self._loop = game, served, loop

    @property
    def address(self) -> str:
        return self.served.address

    def change(self, *changes: messages.AnyChange, after_ms: int = 100) -> None:
        self._loop.call_soon_threadsafe(lambda: self.game.change(*changes, after_ms=after_ms))

    def begin_again(self, first: messages.Snapshot) -> None:
        self._loop.call_soon_threadsafe(self.game.begin_again, first)

    def lose(self) -> None:
        self._loop.call_soon_threadsafe(self.game.lose)

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self.game.end)


@contextmanager
def served_game(first: messages.Snapshot) -> Iterator[ServedGame]:
    """Serve a staged game that begins with this snapshot, until the context ends."""
    game = StagedGame(first)
    with held_open(serving(game)) as (served, loop):
        yield ServedGame(game, served, loop)


def sent(game: ServedGame, *expected: commands.AnyCommand) -> None:
    """Wait until the game has been given these commands, and no others."""
    wait_until(lambda: len(game.game.commands) >= len(expected), 60, lambda: f"{expected}, not {game.game.commands}")
    assert game.game.commands == list(expected)
    game.game.commands.clear()
