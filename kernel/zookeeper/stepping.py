"""Step by step: a session's operations wait in front of a gate, and are let go one at a time.

For somebody who wants to watch what a member does. While operations wait the session stays alive: pings pass. The
order of the operations stays the same, so whatever is asked for meanwhile waits behind the first one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.zookeeper.operations import Operation


class StepGate:
    """The gate of one session, open at first.

    `report` is called with the operation that waits and how many wait behind it whenever that changes, and with None
    when none waits any more.
    """

    def __init__(self, report: Callable[[Operation | None, int], None]) -> None:
        self._report = report
        self._stepping = False
        self._let_go = False
        self._waiting: tuple[Operation, int] | None = None
        self._flow: Callable[[], None] = lambda: None

    def attach(self, flow: Callable[[], None]) -> None:
        """`flow` sends what may be sent now."""
        self._flow = flow

    def step(self) -> None:
        """From now on each operation waits."""
        self._stepping = True

    def open(self) -> None:
        """From now on none waits."""
        self._stepping = False
        self._flow()

    def let_go(self) -> None:
        """Let the operation that waits pass. Does nothing if none waits."""
        if self._waiting is not None:
            self._let_go = True
            self._flow()

    def admits(self, operation: Operation, behind: int) -> bool:
        """Whether the operation may be sent now; `behind` are waiting behind it."""
        if self._stepping and not self._let_go:
            if self._waiting != (operation, behind):
                self._waiting = (operation, behind)
                self._report(operation, behind)
            return False
        self._let_go = False
        if self._waiting is not None:
            self._waiting = None
            self._report(None, 0)
        return True
