"""DescribeLoop, a request of our own: the durations of the broker's event-loop turns."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from kernel.broker.loop.measured_loop import MeasuredLoop
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.broker.loop.turns import Turns
    from kernel.broker.server.handlers import HandlerTable, RequestContext


class LoopHandlers:
    """`turns` knows the longest piece of work, which is usually what made the longest turn long."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def table(self) -> HandlerTable:
        return {Api.DescribeLoop: self.describe}

    def describe(self, context: RequestContext, body: Any) -> Mapping[str, Any]:
        """Respond with UNSUPPORTED_VERSION in a program whose loop is not measured."""
        loop, turns = asyncio.get_running_loop(), self._turns
        if not isinstance(loop, MeasuredLoop):
            return {"error_code": ErrorCode.unsupported_version}
        figures = loop.stopwatch.figures()
        answer = {
            "error_code": ErrorCode.none,
            **{name: getattr(figures, name) for name in figures._fields},
            "longest_piece_us": int(turns.longest_s * 1_000_000),
            "longest_piece": turns.longest,
        }
        if body.reset:
            loop.stopwatch.reset()
            turns.forget_longest()
        return answer
