"""Reads a tree of znodes, again and again, in a session of its own that no counter counts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from comparison.playground.live.tree import Seen
from kernel.runtime import REAL
from kernel.trace.writer import SilentTracer
from kernel.zookeeper.bridge import Bridge
from kernel.zookeeper.errors import NoNode
from kernel.zookeeper.session import ZooKeeperSession

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.runtime import Runtime

_TIMEOUT_MS = 10_000


class TreeReader:
    """A znode and all below it, such as `/consumers/<group>`."""

    def __init__(self, session: ZooKeeperSession, root: str) -> None:
        self._session = session
        self._root = root

    @classmethod
    async def open(cls, connect_string: str, root: str, runtime: Runtime = REAL) -> TreeReader:
        """Raises `Unavailable`."""
        session = await ZooKeeperSession.open(
            connect_string,
            session_timeout_ms=_TIMEOUT_MS,
            connection_timeout_ms=_TIMEOUT_MS,
            tracer=SilentTracer(),
            name="tree",
            retry_forever=True,
            bridge=runtime.edge(Bridge),
        )
        return cls(session, root)

    async def read(self) -> Mapping[str, Seen]:
        """Every znode by its path. It is no picture of one moment: each level is read after the one above."""
        found: dict[str, Seen] = {}
        level = [self._root]
        while level:
            read = await asyncio.gather(*(self._node(path) for path in level))
            below: list[str] = []
            for path, (seen, children) in zip(level, read, strict=True):
                if seen is not None:
                    found[path] = seen
                    below += [f"{path.rstrip('/')}/{name}" for name in children]
            level = below
        return found

    async def _node(self, path: str) -> tuple[Seen | None, list[str]]:
        try:
            data, stat = await self._session.get(path)
            children = await self._session.children(path) if stat.children else []
        except NoNode:  # gone meanwhile
            return None, []
        text = data.decode("utf-8", "replace")
        return Seen(text, stat.version, stat.ephemeral_owner != 0, stat.czxid, stat.mzxid), children

    async def close(self) -> None:
        await self._session.close()
