"""What a virtual loop runs: `asyncio.Handle` and `asyncio.TimerHandle` by their documented methods.

Asyncio's own classes ask their loop whether it is being debugged, each time one is made and each time one is cancelled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from comparison.simulation.node import CURRENT, NOBODY

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from comparison.simulation.node import Node


class Callback:
    """What a node runs, as `asyncio.Handle` by its documented methods. The loop runs it unless `function` is None."""

    __slots__ = ("arguments", "context", "function", "node")

    def __init__(self, function: Callable[..., object], arguments: tuple[Any, ...], context: Context) -> None:
        self.function: Callable[..., object] | None = function
        self.arguments = arguments
        self.context = context
        self.node: Node = context.get(CURRENT, NOBODY)

    def cancel(self) -> None:
        self.function, self.arguments = None, ()  # what they hold is free now

    def cancelled(self) -> bool:
        return self.function is None

    def get_context(self) -> Context:
        return self.context

    def __repr__(self) -> str:
        return f"<callback {self.function!r} of {self.node.name}>"


class Timer(Callback):
    """As `asyncio.TimerHandle`; the loop is told when one is cancelled that is still set."""

    __slots__ = ("_tell", "_when", "is_set")

    def __init__(
        self,
        function: Callable[..., object],
        arguments: tuple[Any, ...],
        context: Context,
        when: float,
        cancelled: Callable[[], object],
    ) -> None:
        super().__init__(function, arguments, context)
        self._when = when
        self._tell = cancelled
        self.is_set = True  #: it is among the loop's timers

    def when(self) -> float:
        return self._when

    def cancel(self) -> None:
        if self.function is not None:
            self.function, self.arguments = None, ()
            if self.is_set:
                self._tell()
