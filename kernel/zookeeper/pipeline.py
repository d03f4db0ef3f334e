"""Operations on their way: sent in the order of issue, a window at a time, each try answered and traced once.

The session says when it is connected and what was answered; nothing here waits.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from kernel.zookeeper import requests
from kernel.zookeeper.errors import NoNode, ZooKeeperError
from kernel.zookeeper.operations import Try

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.zookeeper.inbox import Answered
    from kernel.zookeeper.operations import Operation

#: Requests that kazoo holds at a time. More gains nothing (16 or 128: no difference) and could fill the socket
#: pair by which kazoo is woken, one byte a request.
WINDOW = 64


class Pipeline:
    """What was issued and not yet answered.

    `send` hands a request over, with the one session that it is for or 0; `finished` is told of every try that
    ended: the operation, its error or None, the zxid of the reply or 0.
    """

    def __init__(
        self,
        send: Callable[[Any, Try, int], None],
        finished: Callable[[Operation, ZooKeeperError | None, int], None],
    ) -> None:
        self._send = send
        self._finished = finished
        self._unsent: deque[Try] = deque()
        self._sent: dict[Try, None] = {}

    def append(self, attempt: Try) -> None:
        self._unsent.append(attempt)

    def flow(self) -> None:
        """Send what the window lets through."""
        while self._unsent and len(self._sent) < WINDOW:
            attempt = self._unsent.popleft()
            if attempt.future.cancelled():
                continue  # nobody waits and nothing was sent: as if it had not been issued
            self._sent[attempt] = None
            self._send(attempt.operation.request, attempt, attempt.operation.only_in)

    def answer(self, answered: Answered) -> None:
        attempt = answered.token
        assert isinstance(attempt, Try)
        if attempt not in self._sent:
            return  # given up before
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
        """Give up everything; an answer that comes later is ignored."""
        attempts = [*self._sent, *self._unsent]
        self._sent.clear()
        self._unsent.clear()
        for attempt in attempts:
            self._finish(attempt, None, kind(message, attempt.operation.path), 0)

    def fail_bound(self, session_id: int, kind: type[ZooKeeperError], message: str) -> None:
        """Give up what waits to be sent in that session only; what was sent is failed by kazoo."""
        bound = [attempt for attempt in self._unsent if attempt.operation.only_in == session_id]
        for attempt in bound:
            self._unsent.remove(attempt)
            self._finish(attempt, None, kind(message, attempt.operation.path), 0)

    def _finish(self, attempt: Try, value: Any, error: ZooKeeperError | None, zxid: int) -> None:
        self._finished(attempt.operation, error, zxid)
        if attempt.future.done():
            return  # its caller was cancelled meanwhile
        if error is None:
            attempt.future.set_result(value)
        else:
            attempt.future.set_exception(error)
