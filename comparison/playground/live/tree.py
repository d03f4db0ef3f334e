"""The znodes of a group as they change, from whole readings of the tree. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.playground.messages import Znode

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The most of a znode's data that is shown.
DATA_MAX = 200


class Seen(NamedTuple):
    """A znode as it was read. `created` and `written` are zxids: a znode that was deleted and created again differs."""

    data: str
    version: int
    ephemeral: bool
    created: int
    written: int


class Tree:
    """The last reading, and what changed since the last `drained`."""

    def __init__(self) -> None:
        self._known: dict[str, Seen] = {}
        self._put: dict[str, Znode] = {}
        self._gone: set[str] = set()

    def see(self, at_ms: int, seen: Mapping[str, Seen]) -> None:
        """A whole reading of the tree."""
        for path, node in seen.items():
            if self._known.get(path) != node:
                self._put[path] = Znode(
                    path=path,
                    data=node.data[:DATA_MAX],
                    version=node.version,
                    ephemeral=node.ephemeral,
                    changed_ms=at_ms,
                )
                self._gone.discard(path)
        for path in self._known.keys() - seen.keys():
            self._put.pop(path, None)
            self._gone.add(path)
        self._known = dict(seen)

    def drained(self) -> tuple[tuple[Znode, ...], tuple[str, ...]]:
        """What was put, and the paths that are gone, since the last call."""
        put, gone = self._put, self._gone
        self._put, self._gone = {}, set()
        return tuple(put[path] for path in sorted(put)), tuple(sorted(gone))
