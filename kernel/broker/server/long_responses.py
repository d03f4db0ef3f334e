"""Generates and encodes a long response a few rows per turn of the loop."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from kernel.broker.server.budget import Budget, Reservation
from kernel.wire.rows import RowEncoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.broker.loop.turns import Turns
    from kernel.broker.server.handlers import RequestContext, Rows

#: Rows per chunk; most take some ten microseconds each.
ROWS_PER_CHUNK = 25


class LongResponse:
    """Encodes one chunk per turn, and queues again behind all other work.

    Encoded bytes count as unread by the client. `complete` gets the bytes after the correlation id; `fail` is called
    when a row raises, and the exception is left to `Turns`, which reports it. Work stops once `is_wanted` is false.
    """

    def __init__(
        self,
        context: RequestContext,
        response: Rows,
        *,
        turns: Turns,
        budget: Budget,
        complete: Callable[[bytes], object],
        fail: Callable[[], object],
        is_wanted: Callable[[], bool],
    ) -> None:
        self._name = context.api.name
        self._rows = response.rows
        self._turns = turns
        self._reservation = Reservation(budget, 0)
        self._complete, self._fail, self._is_wanted = complete, fail, is_wanted
        self._encoder = RowEncoder(context.api, context.version, response.head, response.name)
        turns.soon(self._step, self._name)

    def _step(self) -> None:
        good = False
        try:
            self._encode_chunk()
            good = True
        finally:
            if not good:
                self._reservation.release()
                self._fail()

    def _encode_chunk(self) -> None:
        if not self._is_wanted():
            self._reservation.release()
            self._complete(b"")
            return
        rows = list(itertools.islice(self._rows, ROWS_PER_CHUNK))
        if rows:
            self._encoder.add([row for row in rows if row is not None])
            self._reservation.resize(len(self._encoder))
            self._turns.soon(self._step, self._name)
            return
        self._complete(self._encoder.finish())
        self._reservation.release()
