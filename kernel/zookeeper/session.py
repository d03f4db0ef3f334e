"""One ZooKeeper session for asyncio, in our own words: nothing of kazoo, its threads and errors, comes through it.

What it promises:

- **Every operation that reaches the server is traced**: one `zk_op` a physical try, under the operation's own
  name in the protocol, `ok` only when the server says so. Nothing else is sent but pings. (An `exists` that
  finds nothing is an answer for the caller, a failed operation for the server: ok is false, error NoNode.)
- **Order**: operations are sent in the order in which they were issued, on one connection, pipelined up to a
  window; replies, watch notifications and state changes come back in the order in which the server sent them.
- **Watches** are ZooKeeper's own: one-shot, armed by a read that succeeded (`exists` also by one that found
  nothing). One notification calls every callback that was armed on its path once, however many reads armed
  it, and is traced once as `zk_notified`. A watch does not survive a break of the connection: kazoo drops
  them, where Java's client sends them again. Its callbacks are then called once with the event `none`, which
  says "arm again", not "something changed"; it is not a notification and is not traced as one.
- **States**: CONNECTED, SUSPENDED (nobody knows), LOST (the server said that the session is over; it comes
  only once a server is reached again), CLOSED. After LOST the next CONNECTED is a *new session*: nothing of the
  old one is left, and nothing is created again by itself.
- **Retries** (`retry_forever=True`) are those of ZkClient's retryUntilConnected: over ConnectionLost,
  SessionExpired and OperationTimeout, without limit, so that an operation may begin in one session and end in
  the next. A retried create can meet its own first try: NodeExists. Without it an operation waits for a
  connection for `connection_timeout_ms` at most and then raises `ConnectionLost`.

Two limits of kazoo's: it takes a silent server for lost after two thirds of the session's timeout, and its pings
come up to 0.4 s late on purpose, so a session of less than a second may expire without any fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.zookeeper import requests
from kernel.zookeeper.errors import NodeExists, NoNode
from kernel.zookeeper.life import SessionLife
from kernel.zookeeper.operations import Operation
from kernel.zookeeper.paths import parent

if TYPE_CHECKING:
    from kernel.zookeeper.operations import TransactionPart, WatchCallback, ZnodeStat


class ZooKeeperSession(SessionLife):
    """A session with its operations; made by `open`, usable on the event loop that opened it.

    Every operation takes `step` and `cause` for the trace. Creates, sets and deletes take `only_in`, a session's
    id: they are then done in that session or raise `SessionExpired`, also with `retry_forever`.
    """

    async def create(
        self,
        path: str,
        data: bytes | None = b"",
        *,
        ephemeral: bool = False,
        makepath: bool = False,
        step: str = "",
        cause: str = "",
        only_in: int = 0,
    ) -> str:
        """Create a znode and return its path; `data=None` stores null, as Kafka does for plain folders.

        With `makepath`, missing parents are made as Kafka makes them: try, on NoNode create the parents
        (persistent, null data, existing ones are fine), then try once more.
        Raises `NodeExists`, `NoNode` (a missing parent, without `makepath`), `NoChildrenForEphemerals`.
        """
        request = requests.create(self._bridge.absolute(path), data, ephemeral=ephemeral)
        operation = Operation(op="create", path=path, request=request, step=step, cause=cause, only_in=only_in)
        try:
            return self._bridge.relative(await self._perform(operation))
        except NoNode:
            if not makepath:
                raise
        await self.ensure_path(parent(path), step=step, cause=cause)
        return self._bridge.relative(await self._perform(operation))

    async def create_numbered(self, path: str, data: bytes | None = b"", *, step: str = "", cause: str = "") -> str:
        """Create a persistent znode whose name is that of `path` with ten digits behind it, counted by the parent.

        Returns its path; a try that is repeated after a broken connection may leave two. Raises `NoNode`.
        """
        request = requests.create_numbered(self._bridge.absolute(path), data)
        operation = Operation(op="create", path=path, request=request, step=step, cause=cause)
        return self._bridge.relative(await self._perform(operation))

    async def ensure_path(self, path: str, *, step: str = "", cause: str = "") -> None:
        """Make a persistent znode with null data, and its parents where they miss; what exists is left alone."""
        try:
            await self.create(path, None, makepath=path.count("/") > 1, step=step, cause=cause)
        except NodeExists:
            return

    async def delete(self, path: str, version: int = -1, *, step: str = "", cause: str = "", only_in: int = 0) -> None:
        """Raises `NoNode`, `NotEmpty`, `BadVersion`; version -1 deletes whatever is there."""
        request = requests.delete(self._bridge.absolute(path), version)
        await self._perform(Operation(op="delete", path=path, request=request, step=step, cause=cause, only_in=only_in))

    async def exists(
        self, path: str, *, watch: WatchCallback | None = None, step: str = "", cause: str = ""
    ) -> ZnodeStat | None:
        """The znode's metadata, or None when there is none; the watch is armed either way."""
        request = requests.exists(self._bridge.absolute(path), watch=watch is not None)
        operation = Operation(op="exists", path=path, request=request, step=step, cause=cause, watch=watch)
        try:
            return requests.stat(await self._perform(operation))
        except NoNode:
            return None

    async def get(
        self, path: str, *, watch: WatchCallback | None = None, step: str = "", cause: str = ""
    ) -> tuple[bytes, ZnodeStat]:
        """Data (null reads as b"") and metadata. Raises `NoNode`, and then no watch is armed."""
        request = requests.get(self._bridge.absolute(path), watch=watch is not None)
        data, stat = await self._perform(
            Operation(op="getData", path=path, request=request, step=step, cause=cause, watch=watch)
        )
        return data or b"", requests.stat(stat)

    async def children(
        self, path: str, *, watch: WatchCallback | None = None, step: str = "", cause: str = ""
    ) -> list[str]:
        """Names of the children, sorted. Raises `NoNode`, and then no watch is armed."""
        request = requests.children(self._bridge.absolute(path), watch=watch is not None)
        names: list[str] = await self._perform(
            Operation(op="getChildren", path=path, request=request, step=step, cause=cause, watch=watch)
        )
        return sorted(names)

    async def set(
        self, path: str, data: bytes | None, version: int = -1, *, step: str = "", cause: str = "", only_in: int = 0
    ) -> ZnodeStat:
        """Raises `NoNode` and `BadVersion`. A version is no fence across a re-creation: it starts at 0 again."""
        request = requests.set_data(self._bridge.absolute(path), data, version)
        operation = Operation(op="setData", path=path, request=request, step=step, cause=cause, only_in=only_in)
        return requests.stat(await self._perform(operation))

    async def sync(self, path: str, *, step: str = "", cause: str = "") -> None:
        """Let the connected server catch up with the leader; reads issued after this one see what was there."""
        request = requests.sync(self._bridge.absolute(path))
        await self._perform(Operation(op="sync", path=path, request=request, step=step, cause=cause))

    async def transaction(self, *parts: TransactionPart, step: str = "", cause: str = "") -> None:
        """All of `parts` or none, as one operation `multi` under the first part's path.

        Raises the error of the part that failed, with its path.
        """
        assert parts, "a transaction of nothing"
        request = requests.transaction(parts, self._bridge.absolute)
        await self._perform(
            Operation(op="multi", path=parts[0].path, request=request, step=step, cause=cause, parts=parts)
        )
