"""The client side of ZooKeeper's one-shot watches: callbacks by path.

For each path and session the server keeps a data watch (set by exists and getData) and a child watch (set by
getChildren), and sends one notification however many reads set it. So a callback is registered once for each path and
kind, and a deletion, which fires both kinds with one notification, calls it once.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from kernel.zookeeper.operations import WatchCallback, WatchEvent, WatchFired

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Event numbers of the protocol (Watcher.Event.EventType).
EVENTS = {1: WatchEvent.CREATED, 2: WatchEvent.DELETED, 3: WatchEvent.CHANGED, 4: WatchEvent.CHILDREN}

_DATA, _CHILDREN = "data", "children"
_FIRES = {
    WatchEvent.CREATED: (_DATA,),
    WatchEvent.CHANGED: (_DATA,),
    WatchEvent.DELETED: (_DATA, _CHILDREN),
    WatchEvent.CHILDREN: (_CHILDREN,),
}


class WatchRegistry:
    """Callbacks by kind and path, in the order in which they were registered. Equal callbacks count as one."""

    def __init__(self) -> None:
        self._armed: dict[str, defaultdict[str, dict[WatchCallback, None]]] = {
            _DATA: defaultdict(dict),
            _CHILDREN: defaultdict(dict),
        }

    def arm(self, op: str, path: str, callback: WatchCallback) -> None:
        """Register the callback of the read `op`, for which the server set a watch."""
        self._armed[_CHILDREN if op == "getChildren" else _DATA][path][callback] = None

    def fire(self, fired: WatchFired) -> list[WatchCallback]:
        """Remove and return the callbacks of a notification."""
        taken: dict[WatchCallback, None] = {}
        for kind in _FIRES[fired.event]:
            taken.update(self._armed[kind].pop(fired.path, {}))
        return list(taken)

    def drop_all(self, seen_zxid: int) -> Iterator[tuple[WatchFired, WatchCallback]]:
        """Remove all callbacks: yields one `none` event for each path and callback. `seen_zxid`: see `WatchFired`."""
        dropped: dict[tuple[str, WatchCallback], None] = {}
        for by_path in self._armed.values():
            dropped.update({(path, callback): None for path, callbacks in by_path.items() for callback in callbacks})
            by_path.clear()
        for path, callback in dropped:
            yield WatchFired(path, WatchEvent.NONE, seen_zxid), callback

    def __len__(self) -> int:
        return sum(len(callbacks) for by_path in self._armed.values() for callbacks in by_path.values())
