"""The watches that a server keeps for the clients connected to it: one-shot, by path and kind (WatchManager).

A connection's watches end with it: kazoo does not set them again, and neither does our `Bridge`.
"""

from __future__ import annotations

from comparison.simulation.zookeeper.model.protocol import EventType


class WatchTable:
    """Connections by watched path, and watched paths by connection, both in the order of arming."""

    def __init__(self) -> None:
        self._data = _Watches()
        self._children = _Watches()

    def arm_data(self, path: str, connection: int) -> None:
        self._data.arm(path, connection)

    def arm_children(self, path: str, connection: int) -> None:
        self._children.arm(path, connection)

    def trigger(self, event: EventType, path: str) -> list[int]:
        """Remove the watches that fire, and return the connections to notify.

        A deletion fires both kinds, with one notification (DataTree.deleteNode).
        """
        if event is EventType.CHILDREN_CHANGED:
            return self._children.fire(path)
        fired = self._data.fire(path)
        if event is EventType.DELETED:
            fired += [connection for connection in self._children.fire(path) if connection not in fired]
        return fired

    def drop(self, connection: int) -> set[str]:
        """Forget a connection that has ended. Returns the paths that it watched."""
        return {*self._data.drop(connection), *self._children.drop(connection)}

    def __len__(self) -> int:
        """As zk_watch_count counts: each pair of path and connection, by kind."""
        return len(self._data) + len(self._children)


class _Watches:
    """Those of one kind."""

    def __init__(self) -> None:
        self._connections: dict[str, dict[int, None]] = {}
        self._paths: dict[int, dict[str, None]] = {}

    def arm(self, path: str, connection: int) -> None:
        self._connections.setdefault(path, {})[connection] = None
        self._paths.setdefault(connection, {})[path] = None

    def fire(self, path: str) -> list[int]:
        fired = list(self._connections.pop(path, ()))
        for connection in fired:
            del self._paths[connection][path]
        return fired

    def drop(self, connection: int) -> dict[str, None]:
        paths = self._paths.pop(connection, {})
        for path in paths:
            watching = self._connections[path]
            del watching[connection]
            if not watching:
                del self._connections[path]
        return paths

    def __len__(self) -> int:
        return sum(map(len, self._connections.values()))
