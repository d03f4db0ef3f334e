"""A node: what a process is in the simulated world, with a queue of its own of what is ready to run.

Whatever a node starts belongs to it, through a context variable that tasks and callbacks inherit. So a node can be
killed, after which nothing of it runs any more, no `finally` either, or frozen, after which all of it waits.
"""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from comparison.scenarios.plan.links import Kind

if TYPE_CHECKING:
    from collections.abc import Callable


class Socket(Protocol):
    """What the machine closes when a node ends."""

    port: int

    def close(self) -> None: ...


class Node:
    """The loop runs what is in `ready` in order, unless the node is frozen."""

    __slots__ = ("held", "is_alive", "is_busy", "is_frozen", "is_listed", "kind", "name", "number", "ready", "sockets")

    def __init__(self, name: str, kind: Kind, number: int) -> None:
        self.name = name
        self.kind = kind
        self.number = number  #: in place of a process id
        self.ready: deque[Any] = deque()  #: the loop's callbacks
        self.is_alive = True
        self.is_frozen = False
        self.is_busy = False  #: it is still at what it ran last
        self.is_listed = False  #: the loop knows that something is ready
        self.sockets: dict[Socket, None] = {}  #: open ones
        #: What it sends and traces once it goes on: it was frozen in the middle of a callback.
        self.held: list[Callable[[], None]] = []

    def end(self) -> None:
        """Nothing of it runs from now on, and its sockets are closed. Idempotent."""
        self.is_alive = False
        self.ready.clear()
        self.held.clear()
        for socket in list(self.sockets):
            socket.close()

    def __repr__(self) -> str:
        return f"<node {self.name}>"


#: The node that runs.
CURRENT: ContextVar[Node] = ContextVar("node")
#: Whose bytes a proxy of the runner passes on; its onward connection counts as theirs.
PROXIED: ContextVar[Kind] = ContextVar("proxied")
#: Where Python closes what an ended world has left: nothing runs there.
NOBODY = Node("nobody", Kind.RUNNER, 0)
NOBODY.end()
