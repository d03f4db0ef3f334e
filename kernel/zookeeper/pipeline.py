"""The operations in flight: sent in order within a window, with each attempt answered and traced once.

The session calls it with state changes and replies; nothing here waits.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from kernel.zookeeper import requests
from kernel.zookeeper.errors import NoNode, ZooKeeperError
from kernel.zookeeper.operations import Attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.zookeeper.event_queue import Answered
    from kernel.zookeeper.stepping import StepGate

#: The most requests in flight. More gains nothing (16 or 128 made no difference) and could fill the socket pair that
#: wakes kazoo, one byte for each request.
WINDOW = 64


class Pipeline:
    """The unanswered operations.

    `send(request, attempt, only_in)` sends a request. `finished(attempt, error, zxid)` is called when an attempt ends,
    with its error or None and the zxid of the reply or 0.
    """

    def __init__(
        self,
        send: Callable[[Any, Attempt, int], None],
        finished: Callable[[Attempt, ZooKeeperError | None, int], None],
    ) -> None:
        self._send = send
        self._finished = finished
        self.gate: StepGate | None = None  #: in front of it, each operation may have to wait
        self._unsent: deque[Attempt] = deque()
        self._sent: dict[Attempt, None] = {}
        self._held: deque[Attempt] = deque()
        self.holding = False

    @property
    def oldest(self) -> Attempt | None:
        """The first of the operations that wait for their answer; answers come in order."""
        return next(iter(self._sent), None)

    def append(self, attempt: Attempt, *, repeated: bool = False) -> None:
        """Queue an attempt; a repeated one is held if the pipeline is `holding`."""
        (self._held if repeated and self.holding else self._unsent).append(attempt)

    def hold(self) -> None:
        """Hold what is waiting to be sent, and repeated operations, until `let_go`."""
        self.holding = True
        self._held.extend(self._unsent)
        self._unsent.clear()

    def let_go(self) -> None:
        """Send what is held, after what is waiting by now."""
        self.holding = False
        self._unsent.extend(self._held)
        self._held.clear()

    def flow(self) -> None:
        """Send as many operations as the window allows."""
        while self._unsent and len(self._sent) < WINDOW:
            attempt = self._unsent[0]
            if attempt.future.cancelled():
                self._unsent.popleft()
                continue  # cancelled before it was sent, so it is neither sent nor traced
            if self.gate is not None and not self.gate.admits(attempt.operation, len(self._unsent) - 1):
                return
            self._unsent.popleft()
            self._sent[attempt] = None
            attempt.mark_sent()
            self._send(attempt.operation.request, attempt, attempt.operation.only_in)

    def answer(self, answered: Answered) -> None:
        attempt = answered.token
        assert isinstance(attempt, Attempt)
        if attempt not in self._sent:
            return  # already failed
        del self._sent[attempt]
        operation = attempt.operation
        error: ZooKeeperError | None = None
        if answered.error is not None:
            error = requests.translate(answered.error, operation.path)
        elif operation.parts:
            error = requests.failed_part(answered.value, operation.parts)
        elif operation.op == "exists" and answered.value is None:
            error = NoNode("no such znode", operation.path)
        self._finish(attempt, answered.value, error, answered.zxid)

    def fail_all(self, kind: type[ZooKeeperError], message: str) -> None:
        """Fail all operations; later replies are ignored."""
        self.let_go()
        attempts = [*self._sent, *self._unsent]
        self._sent.clear()
        self._unsent.clear()
        for attempt in attempts:
            self._finish(attempt, None, kind(message, attempt.operation.path), 0)

    def fail_bound(self, session_id: int, kind: type[ZooKeeperError], message: str) -> None:
        """Fail the unsent operations that are bound to that session; kazoo fails the sent ones."""
        for waiting in (self._unsent, self._held):
            for attempt in [attempt for attempt in waiting if attempt.operation.only_in == session_id]:
                waiting.remove(attempt)
                self._finish(attempt, None, kind(message, attempt.operation.path), 0)

    def _finish(self, attempt: Attempt, value: Any, error: ZooKeeperError | None, zxid: int) -> None:
        self._finished(attempt, error, zxid)
        if attempt.future.done():
            return  # the caller was cancelled meanwhile
        if error is None:
            attempt.future.set_result(value)
        else:
            attempt.future.set_exception(error)
