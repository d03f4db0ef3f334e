"""What a virtual loop runs: `asyncio.Handle` and `asyncio.TimerHandle` by their documented methods.

Asyncio's own classes ask their loop whether it is being debugged, each time one is made and each time one is cancelled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from comparison.simulation.node import CURRENT, NOBODY

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from contextvars import Context

    from comparison.simulation.node import Node


class Callback:
    """What a node runs, as `asyncio.Handle` by its documented methods."""

    __slots__ = ("_arguments", "_callback", "_context", "is_cancelled", "node")

    def __init__(self, callback: Callable[..., object], arguments: tuple[Any, ...], context: Context) -> None:
        self._callback: Callable[..., object] | None = callback
        self._arguments = arguments
        self._context = context
        self.is_cancelled = False
        self.node: Node = context.get(CURRENT, NOBODY)

    def cancel(self) -> None:
        self.is_cancelled = True
        self._callback, self._arguments = None, ()  # what they hold is free now

    def cancelled(self) -> bool:
        return self.is_cancelled

    def get_context(self) -> Context:
        return self._context

    def run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run it unless it is cancelled. The loop's handler learns of an exception."""
        callback = self._callback
        if callback is None:
            return
        try:
            self._context.run(callback, *self._arguments)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  # as asyncio does
            message = f"Exception in callback {callback!r}"
            loop.call_exception_handler({"message": message, "exception": error, "handle": self})

    def __repr__(self) -> str:
        return f"<callback {self._callback!r} of {self.node.name}>"


class Timer(Callback):
    """As `asyncio.TimerHandle`; the loop is told when one is cancelled that is still set."""

    __slots__ = ("_tell", "_when", "is_set")

    def __init__(
        self,
        callback: Callable[..., object],
        arguments: tuple[Any, ...],
        context: Context,
        when: float,
        cancelled: Callable[[], object],
    ) -> None:
        super().__init__(callback, arguments, context)
        self._when = when
        self._tell = cancelled
        self.is_set = True  #: it is among the loop's timers

    def when(self) -> float:
        return self._when

    def cancel(self) -> None:
        if not self.is_cancelled:
            super().cancel()
            if self.is_set:
                self._tell()
