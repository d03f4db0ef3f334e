"""What a connection holds in memory, told to the broker's budgets (`kernel.broker.server.budget`)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kernel.broker.loop.poller import READABLE
from kernel.broker.server.budget import FREE_BYTES, LOOK_S, PROGRESS_BYTES, STALL_S
from kernel.broker.server.connection_state import PARTIAL, QUIET
from kernel.broker.server.served_socket import ServedSocket
from kernel.wire.frames import FrameBuffer

if TYPE_CHECKING:
    import socket

    from kernel.broker.server.server import BrokerServer

log = logging.getLogger(__name__)

#: What is received at once when it is the rest of something long.
REST_BYTES = 256 * 1024
#: After this long without a look, a window of progress starts over: nobody was waiting in that time.
FORGOTTEN_S = 4 * LOOK_S


class HoldingSocket(ServedSocket):
    """A `kernel.broker.server.budget.Holder`. Up to `FREE_BYTES` of each kind, what it holds is not accounted for."""

    __slots__ = (
        "_at_work",
        "_buffer",
        "_claimed",
        "_claimed_unsent",
        "_host",
        "_id",
        "_looked_at",
        "_memory",
        "_state",
        "_window_at",
    )

    def __init__(self, server: BrokerServer, accepted: socket.socket, host: str, connection_id: int) -> None:
        super().__init__(server.readiness, accepted)
        self._host = host
        self._id = connection_id
        self._memory = server.memory
        self._state = QUIET
        self._buffer = FrameBuffer(server.limits.frame_bytes_max)
        self._at_work = 0  # bytes of the request that waits for its turn or is being worked on, if they are many
        self._claimed = self._claimed_unsent = 0
        #: Since when `_moved` is counted, and when that was looked at.
        self._window_at = self._looked_at = 0.0

    def _account(self) -> None:
        """Claim what is held of requests, or give back what is not held any more."""
        held = len(self._buffer) + self._at_work
        claim = held if held > FREE_BYTES else 0
        if claim != self._claimed:
            by, self._claimed = claim - self._claimed, claim
            self._memory.change_requests(by)
            self._hold()

    def _account_unsent(self) -> None:
        """The same of answers."""
        claim = self._unsent_bytes if self._unsent_bytes > FREE_BYTES else 0
        if claim != self._claimed_unsent:
            by, self._claimed_unsent = claim - self._claimed_unsent, claim
            self._memory.answers.change(by)
            self._hold()

    def _hold(self) -> None:
        if self._claimed or self._claimed_unsent:
            self._memory.holders.add(self)
        else:
            self._memory.holders.discard(self)

    def _finish_request(self) -> None:
        """The request at work needs its bytes no longer."""
        self._at_work = 0
        self._account()
        self._memory.done(self)

    def _receivable(self) -> int:
        """How many bytes may be received behind those that are kept; 0: none before there is room."""
        requests = self._memory.requests
        if requests.used < requests.bytes_max:
            return REST_BYTES
        free = FREE_BYTES - len(self._buffer)
        if free > 0:
            return free
        if self._state is PARTIAL and self._memory.may_read(self):
            return REST_BYTES
        return 0

    # -- Holder ------------------------------------------------------------------------------------------------------

    @property
    def announced(self) -> int:
        """The size of the frame that is being received."""
        return self._buffer.announced

    def has_room(self) -> None:
        """Read on."""
        if self._state is PARTIAL:
            self._watch(self._events | READABLE)

    def stalls(self, now: float, *, requests: bool, answers: bool) -> bool:
        """Whether its client was waited for, and has sent or taken next to nothing for `STALL_S`."""
        is_sender = bool(requests and self._claimed and self._state is PARTIAL and self._events & READABLE)
        is_waited_for = is_sender or (answers and self._claimed_unsent > 0)
        if not is_waited_for or now - self._looked_at > FORGOTTEN_S or self._moved >= PROGRESS_BYTES:
            self._window_at, self._moved = now, 0
        self._looked_at = now
        return now - self._window_at > STALL_S

    def give_up(self, why: str) -> None:
        """Close at once."""
        log.warning("connection %d from %s closed: %s", self._id, self._host, why)
        self.abort()
