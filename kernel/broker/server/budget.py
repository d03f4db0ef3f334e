"""Memory budgets for all connections of a broker: which connections wait, and which are closed, when they are used up.

There are two budgets: for requests, from their first byte until they are answered (Kafka's
queued.max.request.bytes), and for responses that clients have not read yet. Both are enforced by reading no further,
and neither delays anything small: a connection may hold `FREE_BYTES` without a reservation, so heartbeats, joins and
commits are always served.

- Only bytes actually held are reserved; an announced frame size reserves nothing (Kafka's memory pool allocates
  whole frames).
- Requests may reserve the budget less the largest frame. Beyond that a connection is not read, and waits. One
  connection at a time is favoured and read until its frame is complete, so partial frames cannot deadlock. The
  others resume in the order of their announced sizes, so short requests overtake requests of 100 MiB.
- A Fetch reads as many records as fit into the response budget, and waits when nothing fits.
- While a connection waits, those that hold memory and depend on their client (the favoured one, and clients that do
  not read their responses) have to move `PROGRESS_BYTES` within `STALL_S` seconds, or they are closed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

#: Bytes of requests, and again of responses, that a connection may hold without a reservation.
FREE_BYTES = 16 * 1024
#: Bytes received at once from a connection that holds nothing, while the budget lasts.
RECEIVED_BYTES = 64 * 1024
#: The least progress, in bytes per seconds, of a connection that blocks others.
PROGRESS_BYTES, STALL_S = 64 * 1024, 5.0
#: How often progress is checked while a connection waits.
CHECK_S = 0.5
#: A Fetch waits while the budget has less room than this, unless it asks for less.
ROOM_BYTES_LOW = 64 * 1024


class MemoryHolder(Protocol):
    """A connection that holds reserved memory."""

    @property
    def announced(self) -> int:
        """The announced size of the frame being received."""
        ...

    def resume_reading(self) -> None:
        """The budget has room again."""
        ...

    def stalls(self, now: float, *, requests: bool, responses: bool) -> bool:
        """Whether it has blocked others for too long; the flags say which budgets others are waiting for."""
        ...

    def evict(self, why: str) -> None:
        """Close immediately."""
        ...


class Reservation:
    """Bytes of a budget, reserved until `release` or until the object is dropped along with what it belongs to."""

    __slots__ = ("_budget", "bytes")

    def __init__(self, budget: Budget, reserved: int) -> None:
        self._budget = budget
        self.bytes = reserved
        budget.change(reserved)

    def resize(self, held: int) -> None:
        """Match what is actually held."""
        self._budget.change(held - self.bytes)
        self.bytes = held

    def release(self) -> None:
        self.resize(0)

    def __del__(self) -> None:
        self.release()


class Budget:
    """A number of bytes, and a queue of waiters for when all of them are used."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.used = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self.on_shortage: Callable[[], object] = lambda: None

    @property
    def room(self) -> int:
        return max(self.bytes_max - self.used, 0)

    @property
    def is_short(self) -> bool:
        """Whether there are waiters, or the budget is exceeded."""
        return bool(self._waiters) or self.used > self.bytes_max

    def change(self, by: int) -> None:
        """Count `by` more bytes as used; fewer if negative."""
        self.used += by
        if by < 0:
            self._wake_next()
        elif self.used > self.bytes_max:
            self.on_shortage()

    async def reserve(self, wanted: int) -> Reservation:
        """Reserve `wanted` bytes, or as many as there is room for; wait while there is next to no room."""
        enough = min(wanted, ROOM_BYTES_LOW, self.bytes_max)
        waited = False
        while self.room < enough:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            (self._waiters.appendleft if waited else self._waiters.append)(waiting)
            self.on_shortage()
            try:
                await waiting
            except asyncio.CancelledError:
                self._wake_next()
                raise
            waited = True
        reservation = Reservation(self, min(wanted, self.room))
        self._wake_next()
        return reservation

    def _wake_next(self) -> None:
        while self._waiters and self.room:
            waiting = self._waiters.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return  # once it has its reservation it wakes the next one


class MemoryBudgets:
    """A broker's two budgets, and the check for connections that block others."""

    def __init__(self, *, requests_bytes_max: int, responses_bytes_max: int, frame_bytes_max: int) -> None:
        self.requests = Budget(max(requests_bytes_max - frame_bytes_max, 0))
        self.responses = Budget(responses_bytes_max)
        self.holders: set[MemoryHolder] = set()
        self.first_bytes = RECEIVED_BYTES  #: how much may be received from a connection that holds nothing
        self._favoured: MemoryHolder | None = None
        self._waiting: dict[MemoryHolder, None] = {}  # not read for lack of memory; insertion order
        self._timer: asyncio.TimerHandle | None = None
        self.requests.on_shortage = self.responses.on_shortage = self._schedule_check

    def change_requests(self, by: int) -> None:
        """Count `by` more bytes of requests as held; fewer if negative."""
        self.requests.change(by)
        has_room = self.requests.used < self.requests.bytes_max
        self.first_bytes = RECEIVED_BYTES if has_room else FREE_BYTES
        if has_room and self._waiting:
            room = self.requests.room
            for holder in sorted(self._waiting, key=lambda holder: holder.announced):
                del self._waiting[holder]
                holder.resume_reading()
                room -= holder.announced
                if room <= 0:
                    break

    def may_read(self, holder: MemoryHolder) -> bool:
        """Whether `holder` may receive more than `FREE_BYTES` of a frame. If not, `resume_reading` follows."""
        if self.requests.used < self.requests.bytes_max or self._favoured is holder:
            return True
        if self._favoured is None:
            self._favoured = holder
            return True
        self._waiting[holder] = None
        self._schedule_check()
        return False

    def done(self, holder: MemoryHolder) -> None:
        """Its request has been answered, or its connection closed."""
        self._waiting.pop(holder, None)
        if self._favoured is holder:
            self._favoured = None
        if self._waiting and self._favoured is None and self.requests.used >= self.requests.bytes_max:
            self._favoured = min(self._waiting, key=lambda holder: holder.announced)
            del self._waiting[self._favoured]
            self._favoured.resume_reading()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _schedule_check(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(CHECK_S, self._check)

    def _check(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        requests, responses = bool(self._waiting), self.responses.is_short
        for holder in list(self.holders):
            if holder.stalls(now, requests=requests, responses=responses):
                holder.evict(
                    f"it moved less than {PROGRESS_BYTES} bytes in {STALL_S:.0f} s while others waited for memory"
                    " (queued.max.request.bytes, queued.max.response.bytes)"
                )
        if self._waiting or self.responses.is_short:
            self._schedule_check()
