"""Accounts for the memory a connection holds (`kernel.broker.server.budget`)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kernel.broker.loop.poller import READABLE
from kernel.broker.server.budget import CHECK_S, FREE_BYTES, PROGRESS_BYTES, STALL_S
from kernel.broker.server.buffered_socket import BufferedSocket
from kernel.broker.server.connection_state import IDLE, PARTIAL
from kernel.wire.frames import FrameBuffer

if TYPE_CHECKING:
    import socket

    from kernel.broker.server.connection_resources import ConnectionResources

log = logging.getLogger(__name__)

#: Bytes received at once for the rest of a long frame.
REST_BYTES = 256 * 1024
#: After this long without a check, progress is measured from scratch: no connection was waiting in that time.
FORGOTTEN_S = 4 * CHECK_S


class BudgetedSocket(BufferedSocket):
    """A `kernel.broker.server.budget.MemoryHolder`. Up to `FREE_BYTES` of requests and of responses are free."""

    __slots__ = (
        "_at_work",
        "_buffer",
        "_checked_at",
        "_host",
        "_id",
        "_memory",
        "_reserved",
        "_reserved_unsent",
        "_state",
        "_window_at",
    )

    def __init__(self, resources: ConnectionResources, accepted: socket.socket, host: str, connection_id: int) -> None:
        super().__init__(resources.readiness, accepted)
        self._host = host
        self._id = connection_id
        self._memory = resources.memory
        self._state = IDLE
        self._buffer = FrameBuffer(resources.frame_bytes_max)
        self._at_work = 0  # bytes of the queued or pending request, if more than FREE_BYTES
        self._reserved = self._reserved_unsent = 0
        #: When counting of `_moved` began, and when it was last checked.
        self._window_at = self._checked_at = 0.0

    def _account(self) -> None:
        """Reserve the bytes of requests that are held, or release those that no longer are."""
        held = len(self._buffer) + self._at_work
        reserved = held if held > FREE_BYTES else 0
        if reserved != self._reserved:
            by, self._reserved = reserved - self._reserved, reserved
            self._memory.change_requests(by)
            self._hold()

    def _account_unsent(self) -> None:
        """Account for the responses that wait to be sent."""
        reserved = self._unsent_bytes if self._unsent_bytes > FREE_BYTES else 0
        if reserved != self._reserved_unsent:
            by, self._reserved_unsent = reserved - self._reserved_unsent, reserved
            self._memory.responses.change(by)
            self._hold()

    def _hold(self) -> None:
        if self._reserved or self._reserved_unsent:
            self._memory.holders.add(self)
        else:
            self._memory.holders.discard(self)

    def _finish_request(self) -> None:
        """The pending request no longer needs its bytes."""
        self._at_work = 0
        self._account()
        self._memory.done(self)

    def _receivable(self) -> int:
        """How many more bytes may be received; 0 until the budget has room."""
        requests = self._memory.requests
        if requests.used < requests.bytes_max:
            return REST_BYTES
        free = FREE_BYTES - len(self._buffer)
        if free > 0:
            return free
        if self._state is PARTIAL and self._memory.may_read(self):
            return REST_BYTES
        return 0

    # -- MemoryHolder ------------------------------------------------------------------------------------------------

    @property
    def announced(self) -> int:
        """The announced size of the frame being received."""
        return self._buffer.announced

    def resume_reading(self) -> None:
        """The budget has room again."""
        if self._state is PARTIAL:
            self._watch(self._events | READABLE)

    def stalls(self, now: float, *, requests: bool, responses: bool) -> bool:
        """Whether others depend on its client, which has sent or read next to nothing for `STALL_S`."""
        is_sender = bool(requests and self._reserved and self._state is PARTIAL and self._events & READABLE)
        blocks_others = is_sender or (responses and self._reserved_unsent > 0)
        if not blocks_others or now - self._checked_at > FORGOTTEN_S or self._moved >= PROGRESS_BYTES:
            self._window_at, self._moved = now, 0
        self._checked_at = now
        return now - self._window_at > STALL_S

    def evict(self, why: str) -> None:
        """Close immediately."""
        log.warning("connection %d from %s closed: %s", self._id, self._host, why)
        self.abort()
