"""Who waits for an answer of one partition's machine, and the answers on their way to them.

One event may answer ten thousand members. Their answers are given in turns (`kernel.broker.loop.turns`), so that others
are served in between, which means that the machine is ahead of what has been sent. What holds nevertheless:

1. Every answer that the machine hands out is given exactly once. An answer that fails for a mistake of ours keeps no
   other from being given, and closes its own connection: a client that waits for ever is worse off.
2. Answers are given in the order in which the machine handed them out, over all groups of the partition: what a later
   event answers queues behind what an earlier one did. Only a request that its own event answers, and nobody else
   with it, is answered there and then (`LedPartition.ask`): its connection waits for nothing else.
3. What the machine has answered is final. It forgets a token when it answers it, so that no later event answers it
   again, abandons it, or takes the answer back; unloading answers those that still wait, behind the others.
4. Nothing is told before it is durable: the machine hands an answer out when the write has been stored. That writes
   may start while answers of the same event still wait is no harm, because no write presupposes an answer.
5. Whoever gives the partition up waits for `emptied`.

To clients a queued answer is one that is still on its way through the network: each connection has one request at
work, and gets its answers in order. A member whose answer is queued may have been overtaken by events (its group
prepares the next rebalance, it was removed, the partition has moved): it learns so from its next request, as it would
had the answer been slow to arrive.
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


class Outbox:
    """Of one partition, for as long as somebody waits."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._waiting: dict[int, tuple[DeferredResponse[Any], Callable[[Any], Any]]] = {}
        self._queue: deque[Reply] = deque()
        self._is_giving = False
        self._emptied: list[asyncio.Future[None]] = []

    def expect(self, token: int, translate: Callable[[Any], Any]) -> DeferredResponse[Any]:
        """The answer to `token`, translated, when the machine has handed it out."""
        later: DeferredResponse[Any] = DeferredResponse()
        self._waiting[token] = (later, translate)
        return later

    def abandon(self, token: int) -> None:
        """The machine will never answer this one."""
        del self._waiting[token]

    def put(self, replies: Iterable[Reply]) -> None:
        """The machine has handed these out, in this order."""
        self._queue.extend(replies)
        if self._queue and not self._is_giving:
            self._is_giving = True
            self._turns.run_in_turns(self._pieces(), "answers of a group")

    def lose_rest(self) -> None:
        """Nothing will be handed out any more. Nobody waits by now, unless a mistake of ours has lost an answer."""
        waiting, self._waiting = self._waiting, {}
        for later, _ in waiting.values():
            later.fail()

    async def emptied(self) -> None:
        """Return when everything that was handed out has been given."""
        if self._is_giving:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._emptied.append(future)
            await future

    def _pieces(self) -> Iterator[None]:
        while self._queue:
            token, answer = self._queue.popleft()
            later, translate = self._waiting.pop(token)
            try:
                if isinstance(answer, JoinAnswer) and answer.members:
                    yield from entries_ahead(translate, answer)
                later.complete(translate(answer))
            except Exception:  # reported by whoever runs the pieces; the others wait for theirs
                self._turns.run_in_turns(self._pieces(), "answers of a group")
                later.fail()
                raise
            yield
        self._is_giving = False
        emptied, self._emptied = self._emptied, []
        for future in emptied:
            if not future.done():
                future.set_result(None)
