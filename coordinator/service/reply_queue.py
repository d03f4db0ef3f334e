"""The requests that wait for an answer of one partition's machine, and the queue of answers to send.

One event may answer ten thousand members. Their answers are sent in turns (`kernel.broker.loop.turns`), so that other
work runs in between, and the machine is ahead of what was sent. These invariants hold:

1. Every answer of the machine is sent exactly once. If sending one fails because of a bug, only its connection is
   closed, so that its client does not wait forever; the others are sent.
2. Answers are sent in the machine's order, across all groups of the partition. Only a request that its own event
   answers, and no other with it, skips the queue (`LedPartition.ask`): its connection waits for nothing else.
3. Answers are final. The machine forgets a token when it answers it, so no later event can answer or abandon it again;
   unloading answers the requests that still wait, after the queued answers.
4. No answer precedes its write: the machine hands it out when the write is stored. Writes may start while answers of
   the same event are queued, because no write depends on an answer.
5. Giving a partition up waits for `emptied`.

For clients a queued answer is one that is slow to arrive: each connection has one request at a time and gets its
answers in order. If the answer is outdated by then (the group rebalances again, the member was removed, the partition
has moved), the member learns so from its next request.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from coordinator.groups.answers import JoinAnswer
from coordinator.service.group_answers import entries_ahead
from kernel.broker.server.handlers import DeferredResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from coordinator.groups.effects import Reply
    from kernel.broker.loop.turns import Turns


class ReplyQueue:
    """The replies of one led partition that wait to be sent, in order."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._waiting: dict[int, tuple[DeferredResponse[Any], Callable[[Any], Any]]] = {}
        self._queue: deque[Reply] = deque()
        self._is_giving = False
        self._emptied: list[asyncio.Future[None]] = []

    def expect(self, token: int, translate: Callable[[Any], Any]) -> DeferredResponse[Any]:
        """The translated answer to `token`, once the machine hands it out."""
        later: DeferredResponse[Any] = DeferredResponse()
        self._waiting[token] = (later, translate)
        return later

    def abandon(self, token: int) -> None:
        """The machine will never answer this token."""
        del self._waiting[token]

    def put(self, replies: Iterable[Reply]) -> None:
        """Queue answers in the machine's order."""
        self._queue.extend(replies)
        if self._queue and not self._is_giving:
            self._is_giving = True
            self._turns.run_in_turns(self._pieces(), "answers of a group")

    def lose_rest(self) -> None:
        """No more answers will come. Requests still wait only if a bug has lost their answers; fail them."""
        waiting, self._waiting = self._waiting, {}
        for later, _ in waiting.values():
            later.fail()

    async def emptied(self) -> None:
        """Return when all queued answers are sent."""
        if self._is_giving:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._emptied.append(future)
            await future

    def _pieces(self) -> Iterator[None]:
        while self._queue:
            token, answer = self._queue.popleft()
            later: DeferredResponse[Any] | None = None
            try:
                later, translate = self._waiting.pop(token)
                if isinstance(answer, JoinAnswer) and answer.members:
                    yield from entries_ahead(translate, answer)
                later.complete(translate(answer))
            except Exception:  # the caller reports it; the rest of the queue goes on
                self._turns.run_in_turns(self._pieces(), "answers of a group")
                if later is not None:  # else nobody waits for this answer
                    later.fail()
                raise
            yield
        self._is_giving = False
        emptied, self._emptied = self._emptied, []
        for future in emptied:
            if not future.done():
                future.set_result(None)
