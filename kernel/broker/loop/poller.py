"""Readiness of many file descriptors: epoll, or the standard library's selectors on other systems.

An event loop can watch either one itself (`fileno`). Both are level-triggered.
"""

from __future__ import annotations

import select
import selectors
import sys
from typing import Protocol

#: Epoll's event masks, which are used on all systems.
READABLE, WRITABLE = 1, 4


class Poller(Protocol):
    """The part of `select.epoll` that is used. Hang-ups and errors are always reported."""

    def fileno(self) -> int: ...

    def register(self, fd: int, eventmask: int) -> None: ...

    def modify(self, fd: int, eventmask: int) -> None: ...

    def unregister(self, fd: int) -> None: ...

    def poll(self, timeout: float | None, maxevents: int) -> list[tuple[int, int]]: ...

    def close(self) -> None: ...


class SelectorPoller:
    """The standard library's selector: kqueue on macOS and BSD."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def fileno(self) -> int:
        fd: int = self._selector.fileno()
        return fd

    def register(self, fd: int, eventmask: int) -> None:
        self._selector.register(fd, _selector_mask(eventmask))

    def modify(self, fd: int, eventmask: int) -> None:
        self._selector.modify(fd, _selector_mask(eventmask))

    def unregister(self, fd: int) -> None:
        self._selector.unregister(fd)

    def poll(self, timeout: float | None, maxevents: int) -> list[tuple[int, int]]:
        ready = self._selector.select(timeout)[:maxevents]
        return [(key.fd, _epoll_mask(mask)) for key, mask in ready]

    def close(self) -> None:
        self._selector.close()


def _selector_mask(events: int) -> int:
    return (selectors.EVENT_READ if events & READABLE else 0) | (selectors.EVENT_WRITE if events & WRITABLE else 0)


def _epoll_mask(mask: int) -> int:
    return (READABLE if mask & selectors.EVENT_READ else 0) | (WRITABLE if mask & selectors.EVENT_WRITE else 0)


def poller() -> Poller:
    """The best poller of this system."""
    return select.epoll() if sys.platform == "linux" else SelectorPoller()
