"""A ZooKeeper session for asyncio that hides kazoo with its threads and errors.

Guarantees:

- **Every operation that reaches the server is traced**: one `zk_op` for each attempt, named as in the protocol, with
  `ok` only if the server reported success, and with the time since it was sent. Besides operations, only pings are
  sent. (An `exists` that finds no znode is a normal result for the caller but a failed operation for the server: ok is
  false, error NoNode.)
- **Order**: operations are sent in the order of the calls, on one connection, pipelined within a window. Replies,
  watch notifications and state changes arrive in the order in which the server sent them.
- **Watches** are ZooKeeper's: one-shot, set by a successful read (or by an `exists` that found no znode). A
  notification calls each callback of its path once, however many reads set it, and is traced once as `zk_notified`.
  Watches do not survive a disconnect: kazoo drops them, whereas Java's client restores them. Their callbacks are then
  called once with the event `none`, which means "set the watch again", not "something changed". It is no notification
  and is not traced as one.
- **States**: CONNECTED, SUSPENDED (unknown), LOST (a server reported the expiry, so it comes only after a reconnect),
  CLOSED. The CONNECTED after LOST is a *new session*: nothing of the old one is left, and nothing is recreated.
- **Retries** (`retry_forever=True`) are those of ZkClient's retryUntilConnected: after ConnectionLost, SessionExpired
  and OperationTimeout, without limit, so an operation may begin in one session and end in the next. A retried create
  can find the znode of its own first attempt: NodeExists. Otherwise an operation waits at most
  `connection_timeout_ms` for a connection and then raises `ConnectionLost`.
- **Answers have a deadline**: a server that is there, so that no connection breaks, and does not answer an operation
  makes it fail with `Unanswered`, also with `retry_forever`: after the connection timeout or `ANSWER_S`, and not before
  the session timeout.
- **A bug ends the session**: if its thread ends by an error, the session becomes LOST, and every operation raises
  `SessionFailed`, as does `raise_failure`, for which the holder of a session waits.
- **Replies are not trusted**: `replies.py` says what is refused. A reply that cannot be read is an `OperationRefused`.

Two limits of kazoo: it considers a silent server lost after two thirds of the session timeout, and it deliberately
sends pings up to 0.4 s late, so a session timeout below a second may expire without any fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.runtime import REAL, Runtime
from kernel.trace.writer import SilentTracer
from kernel.zookeeper import requests
from kernel.zookeeper.bridge import Bridge
from kernel.zookeeper.errors import NoChroot, NodeExists, NoNode
from kernel.zookeeper.lifecycle import SessionLifecycle
from kernel.zookeeper.operations import Operation
from kernel.zookeeper.paths import parent

if TYPE_CHECKING:
    from kernel.zookeeper.operations import TransactionPart, WatchCallback, ZnodeStat

#: The timeouts of sessions that are `untraced`.
UNTRACED_MS = 10_000


class ZooKeeperSession(SessionLifecycle):
    """A session and its operations; created by `open`, for use on the event loop that opened it.

    All operations take `step` and `cause` for the trace. Creates, sets and deletes take `only_in`, a session id: they
    are then performed in that session or raise `SessionExpired`, even with `retry_forever`.
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
        """Create a znode and return its path; `data=None` stores null, as Kafka does in mere parents.

        With `makepath`, missing parents are created as Kafka does it: after a NoNode, create the parents (persistent,
        with null data), then try once more. Raises `NodeExists`, `NoNode` (without `makepath`: no parent),
        `NoChildrenForEphemerals`.
        """
        request = requests.create(self._bridge.absolute(path), data, ephemeral=ephemeral)
        operation = Operation(op="create", path=path, request=request, step=step, cause=cause, only_in=only_in)
        try:
            return self._bridge.relative(await self._perform(operation))
        except NoNode as error:
            if not makepath:
                raise
            if parent(path) == "/":
                raise await self._without_parent(error) from None
        await self.ensure_path(parent(path), step=step, cause=cause)
        return self._bridge.relative(await self._perform(operation))

    async def create_numbered(self, path: str, data: bytes | None = b"", *, step: str = "") -> str:
        """Create a persistent sequential znode: `path` and ten digits, counted by the parent. Returns its path.

        A retry after a broken connection may create a second one. Raises `NoNode`.
        """
        request = requests.create_numbered(self._bridge.absolute(path), data)
        operation = Operation(op="create", path=path, request=request, step=step)
        return self._bridge.relative(await self._perform(operation))

    async def ensure_path(self, path: str, *, step: str = "", cause: str = "") -> None:
        """Create a persistent znode with null data and any missing parents; existing ones stay unchanged."""
        wanted = [path]
        while wanted:
            try:
                await self.create(wanted[-1], None, step=step, cause=cause)
            except NoNode as error:
                if parent(wanted[-1]) == "/":
                    raise await self._without_parent(error) from None
                wanted.append(parent(wanted[-1]))
                continue
            except NodeExists:
                pass
            wanted.pop()

    async def _without_parent(self, error: NoNode) -> NoNode:
        """The error of a create just below the chroot whose parent is missing."""
        complaint = await self.missing_chroot()
        return NoChroot(complaint) if complaint else error

    async def missing_chroot(self) -> str:
        """The complaint that the session's chroot does not exist; '' if it does, or if there is none."""
        chroot = self._bridge.absolute("/")
        if chroot == "/" or await self._is_at(chroot):
            return ""
        above = parent(chroot)
        while above != "/" and not await self._is_at(above):
            above = parent(above)
        found = f"only {above} does" if above != "/" else "nor does any part of it"
        return (
            f"the chroot {chroot} does not exist ({found}). Correct it, or start a broker with it: brokers create "
            "theirs, consumers do not"
        )

    async def _is_at(self, absolute: str) -> bool:
        """Whether a znode exists, by its path from the root of the server."""
        request = requests.exists(absolute, watch=False)
        try:
            await self._perform(Operation(op="exists", path=self._bridge.relative(absolute), request=request))
        except NoNode:
            return False
        return True

    async def delete(self, path: str, version: int = -1, *, step: str = "", cause: str = "", only_in: int = 0) -> None:
        """Delete a znode; version -1 matches every version. Raises `NoNode`, `NotEmpty`, `BadVersion`."""
        request = requests.delete(self._bridge.absolute(path), version)
        await self._perform(Operation(op="delete", path=path, request=request, step=step, cause=cause, only_in=only_in))

    async def exists(
        self, path: str, *, watch: WatchCallback | None = None, step: str = "", cause: str = ""
    ) -> ZnodeStat | None:
        """The znode's metadata, or None if it does not exist; the watch is set either way."""
        request = requests.exists(self._bridge.absolute(path), watch=watch is not None)
        operation = Operation(op="exists", path=path, request=request, step=step, cause=cause, watch=watch)
        try:
            return requests.stat(await self._perform(operation))
        except NoNode:
            return None

    async def get(
        self, path: str, *, watch: WatchCallback | None = None, step: str = "", cause: str = ""
    ) -> tuple[bytes, ZnodeStat]:
        """Data (b"" for null) and metadata. Raises `NoNode`, without setting a watch."""
        request = requests.get(self._bridge.absolute(path), watch=watch is not None)
        data, stat = await self._perform(
            Operation(op="getData", path=path, request=request, step=step, cause=cause, watch=watch)
        )
        return data or b"", requests.stat(stat)

    async def children(
        self, path: str, *, watch: WatchCallback | None = None, step: str = "", cause: str = ""
    ) -> list[str]:
        """Names of the children, sorted. Raises `NoNode`, without setting a watch."""
        request = requests.children(self._bridge.absolute(path), watch=watch is not None)
        names: list[str] = await self._perform(
            Operation(op="getChildren", path=path, request=request, step=step, cause=cause, watch=watch)
        )
        return sorted(names)

    async def set(
        self, path: str, data: bytes | None, version: int = -1, *, step: str = "", cause: str = "", only_in: int = 0
    ) -> ZnodeStat:
        """Replace the data. Raises `NoNode` and `BadVersion`. A recreated znode starts at version 0 again."""
        request = requests.set_data(self._bridge.absolute(path), data, version)
        operation = Operation(op="setData", path=path, request=request, step=step, cause=cause, only_in=only_in)
        return requests.stat(await self._perform(operation))

    async def put(self, path: str, data: bytes, *, step: str = "", cause: str = "", only_in: int = 0) -> None:
        """Set a persistent znode, creating it and its parents where they are missing (ZkUtils.updatePersistentPath).

        One request for a znode that is there, otherwise three or more.
        """
        try:
            await self.set(path, data, step=step, cause=cause, only_in=only_in)
        except NoNode:
            await self.ensure_path(parent(path), step=step, cause=cause)
            try:
                await self.create(path, data, step=step, cause=cause, only_in=only_in)
            except NodeExists:
                await self.set(path, data, step=step, cause=cause, only_in=only_in)

    async def sync(self, path: str, *, step: str = "", cause: str = "") -> None:
        """Make the connected server catch up with the leader; later reads see everything up to now."""
        request = requests.sync(self._bridge.absolute(path))
        await self._perform(Operation(op="sync", path=path, request=request, step=step, cause=cause))

    async def transaction(self, *parts: TransactionPart, step: str = "", cause: str = "") -> None:
        """Perform all of `parts` or none; traced as one `multi` with the path of the first part.

        Raises the error of the part that failed, with its path.
        """
        assert parts, "an empty transaction"
        request = requests.transaction(parts, self._bridge.absolute)
        await self._perform(
            Operation(op="multi", path=parts[0].path, request=request, step=step, cause=cause, parts=parts)
        )


async def untraced(
    connect_string: str, name: str, *, retry_forever: bool = False, runtime: Runtime = REAL
) -> ZooKeeperSession:
    """A session beside a group: what is done in it is in no trace. Raises as `open`, after ten seconds."""
    return await ZooKeeperSession.open(
        connect_string,
        session_timeout_ms=UNTRACED_MS,
        connection_timeout_ms=UNTRACED_MS,
        tracer=SilentTracer(),
        name=name,
        retry_forever=retry_forever,
        bridge=runtime.edge(Bridge),
    )
