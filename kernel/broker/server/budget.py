"""How many bytes all connections of a broker may hold together, and who waits or has to go when that is reached.

Two budgets: for requests, received or being received and not answered yet (Kafka's queued.max.request.bytes), and for
answers that clients have not taken yet. Both are kept by not reading on, and neither holds up what is small: a
connection may hold `FREE_BYTES` without asking, so that heartbeats, joins and commits are served whatever others do.

- What is claimed is what is held: an announced size claims nothing (Kafka's memory pool allocates whole frames).
- Requests may claim up to the budget less the largest frame. Beyond that a connection is read no further, and waits;
  but one at a time is favoured, and read until its frame is whole. So unfinished frames never block one another.
  Whoever waits is read on in the order of what they announced, so that short requests pass those of 100 MiB.
- A Fetch reads as many records as there is room for in the answers' budget, and waits when there is none.
- While anybody waits, whoever holds bytes and is waited for (the favoured one; a client that does not take its answer)
  has to move `PROGRESS_BYTES` in `STALL_S` seconds, or its connection is closed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

#: What a connection may hold without claiming it, of requests and again of answers.
FREE_BYTES = 16 * 1024
#: What is received at once of a connection that holds nothing, while there is room.
RECEIVED_BYTES = 64 * 1024
#: Whoever is waited for moves as many bytes in as many seconds.
PROGRESS_BYTES, STALL_S = 64 * 1024, 5.0
#: How often that is looked at while somebody waits.
LOOK_S = 0.5
#: A Fetch is not answered with less than it asked for while there is no more room than this: it waits.
ROOM_BYTES_LOW = 64 * 1024


class Holder(Protocol):
    """A connection that has claimed something."""

    @property
    def announced(self) -> int:
        """The size of the frame that is being received."""
        ...

    def has_room(self) -> None:
        """Read on."""
        ...

    def stalls(self, now: float, *, requests: bool, answers: bool) -> bool:
        """Whether it has held up others for too long; they wait for room for requests, or for answers, or for both."""
        ...

    def give_up(self, why: str) -> None:
        """Close at once."""
        ...


class Claim:
    """Bytes of a budget that somebody holds, until `free`, or until it is dropped with whatever it belongs to."""

    __slots__ = ("_budget", "bytes")

    def __init__(self, budget: Budget, claimed: int) -> None:
        self._budget = budget
        self.bytes = claimed
        budget.change(claimed)

    def keep(self, held: int) -> None:
        """So many are held in fact."""
        self._budget.change(held - self.bytes)
        self.bytes = held

    def free(self) -> None:
        self.keep(0)

    def __del__(self) -> None:
        self.free()


class Budget:
    """Bytes, and a line of those who wait until less than `bytes_max` are used."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.used = 0
        self._line: deque[asyncio.Future[None]] = deque()
        self.on_shortage: Callable[[], object] = lambda: None

    @property
    def room(self) -> int:
        return max(self.bytes_max - self.used, 0)

    @property
    def is_short(self) -> bool:
        """Whether somebody waits, or more is used than should be."""
        return bool(self._line) or self.used > self.bytes_max

    def change(self, by: int) -> None:
        """So many more, or less, are used."""
        self.used += by
        if by < 0:
            self._wake_next()
        elif self.used > self.bytes_max:
            self.on_shortage()

    async def claim(self, wanted: int) -> Claim:
        """As much of `wanted` as there is room for; waits while that is next to nothing."""
        enough = min(wanted, ROOM_BYTES_LOW, self.bytes_max)
        waited = False
        while self.room < enough:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            (self._line.appendleft if waited else self._line.append)(waiting)
            self.on_shortage()
            try:
                await waiting
            except asyncio.CancelledError:
                self._wake_next()
                raise
            waited = True
        claimed = Claim(self, min(wanted, self.room))
        self._wake_next()
        return claimed

    def _wake_next(self) -> None:
        while self._line and self.room:
            waiting = self._line.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return  # it claims something first; then the next one is woken


class Memory:
    """The two budgets of a broker, and the eye on those who hold others up."""

    def __init__(self, *, requests_bytes_max: int, answers_bytes_max: int, frame_bytes_max: int) -> None:
        self.requests = Budget(max(requests_bytes_max - frame_bytes_max, 0))
        self.answers = Budget(answers_bytes_max)
        self.holders: set[Holder] = set()
        self.first_bytes = RECEIVED_BYTES  #: what may be received of a connection that holds nothing
        self._favoured: Holder | None = None
        self._waiting: dict[Holder, None] = {}  # to be read on, in order
        self._timer: asyncio.TimerHandle | None = None
        self.requests.on_shortage = self.answers.on_shortage = self._watch

    def change_requests(self, by: int) -> None:
        """So many bytes of requests more, or less, are held."""
        self.requests.change(by)
        has_room = self.requests.used < self.requests.bytes_max
        self.first_bytes = RECEIVED_BYTES if has_room else FREE_BYTES
        if has_room and self._waiting:
            room = self.requests.room
            for one in sorted(self._waiting, key=lambda one: one.announced):
                del self._waiting[one]
                one.has_room()
                room -= one.announced
                if room <= 0:
                    break

    def may_read(self, holder: Holder) -> bool:
        """Whether more than `FREE_BYTES` of a frame may be received; if not, `holder` hears by `has_room`."""
        if self.requests.used < self.requests.bytes_max or self._favoured is holder:
            return True
        if self._favoured is None:
            self._favoured = holder
            return True
        self._waiting[holder] = None
        self._watch()
        return False

    def done(self, holder: Holder) -> None:
        """Its frame has been answered, or its connection closed."""
        self._waiting.pop(holder, None)
        if self._favoured is holder:
            self._favoured = None
        if self._waiting and self._favoured is None and self.requests.used >= self.requests.bytes_max:
            self._favoured = min(self._waiting, key=lambda one: one.announced)
            del self._waiting[self._favoured]
            self._favoured.has_room()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        requests, answers = bool(self._waiting), self.answers.is_short
        for holder in list(self.holders):
            if holder.stalls(now, requests=requests, answers=answers):
                holder.give_up(
                    f"others wait for memory, and it moved less than {PROGRESS_BYTES} bytes in {STALL_S:.0f} s"
                    " (queued.max.request.bytes, queued.max.response.bytes)"
                )
        if self._waiting or self.answers.is_short:
            self._watch()
