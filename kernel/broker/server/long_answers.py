"""Answers that take long to make or to encode: by rows in turns of the loop, or as a whole on a thread."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from kernel.broker.server.budget import Budget, Claim
from kernel.wire.rows import RowEncoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.broker.loop.turns import Turns
    from kernel.broker.server.handlers import RequestContext, Rows

#: Rows of one piece of work; most take some ten microseconds.
ROWS_OF_A_PIECE = 25


class LongAnswer:
    """Makes `rows` and encodes them, a piece in each turn, and puts itself behind whatever else waits for a turn.

    What has been encoded counts as an answer that has not been taken. `give` gets the bytes behind the correlation
    id; `fail` is called when a row cannot be made, and the failure is raised into the turns, which report it. Nothing
    more is done once `is_wanted` says no.
    """

    def __init__(
        self,
        context: RequestContext,
        answer: Rows,
        *,
        turns: Turns,
        budget: Budget,
        give: Callable[[bytes], object],
        fail: Callable[[], object],
        is_wanted: Callable[[], bool],
    ) -> None:
        self._name = context.api.name
        self._rows = answer.rows
        self._turns = turns
        self._claim = Claim(budget, 0)
        self._give, self._fail, self._is_wanted = give, fail, is_wanted
        self._encoder = RowEncoder(context.api, context.version, answer.head, answer.name)
        turns.soon(self._step, self._name)

    def _step(self) -> None:
        good = False
        try:
            self._do_one_piece()
            good = True
        finally:
            if not good:
                self._claim.free()
                self._fail()

    def _do_one_piece(self) -> None:
        if not self._is_wanted():
            self._claim.free()
            self._give(b"")
            return
        rows = list(itertools.islice(self._rows, ROWS_OF_A_PIECE))
        if rows:
            self._encoder.add(rows)
            self._claim.keep(len(self._encoder))
            self._turns.soon(self._step, self._name)
            return
        self._give(self._encoder.finish())
        self._claim.free()
