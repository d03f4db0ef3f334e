"""Makes sure that all brokers of a cluster use one data folder, and no older copy of it.

Brokers do not copy records to each other: a new leader reads the files of the one before it (`storage/terms.py`). Any
live replica counts as in sync for that reason, and a broker that has its own folder, as Kafka's do, would lead a
partition without its records. So the cluster's folder is recorded in ZooKeeper, and a broker with another one does not
start. Names and paths cannot tell: a copy has all the names of the original, and two containers have different disks
at one path.

    the folder   epochs/uses                 a line for each use: a token that a broker appends when it starts, and
                                             the last one when it stops
                 epochs/data-folder          a marker that is written once. Its change time (ctime) tells the folder
                                             from its copies, because no tool can set it
    ZooKeeper    /rebalance_lab/data_folder  the last use: token, change time of the marker, and whether it was closed,
                                             that is, whether no broker has been running since

A folder is the cluster's, and up to date, if

1. it has the token of the last use: otherwise somebody has used another folder, or this one after it was copied; and
2. the last use was closed, so that nothing can have been written after a copy was made; or the marker is the very same
   file. While brokers run, and after a `kill -9`, only the folder itself is accepted, wherever it was moved to within
   its file system.

A use is recorded in the folder first and then in ZooKeeper, on condition that ZooKeeper still has the use that was
checked. So of two brokers that start at once in two copies, the second one finds a token that its folder lacks. A
broker that dies between the two leaves a token that nobody asks for. Restoring single files of an old copy into the
folder, without its marker, goes unnoticed.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from kernel.broker.cluster import znodes
from kernel.broker.cluster.identity import choosing, disk_faults_named, others_serve
from kernel.broker.storage.epochs import FOLDER
from kernel.errors import EnvironmentFault, UserError
from kernel.platform.syncing import synced
from kernel.random_ids import fresh_uuid
from kernel.runtime import REAL, Runtime
from kernel.zookeeper import paths
from kernel.zookeeper.errors import BadVersion, NodeExists, NoNode

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from kernel.broker.cluster.identity import Identity
    from kernel.zookeeper.session import ZooKeeperSession

_USES, _MARKER = "uses", "data-folder"
_MARKER_TEXT = (
    "The brokers of one cluster share the folder above this one. Never start a broker on a copy of it that was made\n"
    "while brokers were running or after they had been killed. See docs/by-hand.md of rebalance-lab.\n"
)
_STEP = "data-folder"


class OtherFolder(UserError):
    """The cluster's brokers use another data folder, or have used this one since it was copied."""


@dataclass(frozen=True, slots=True)
class FolderUse:
    """The last use of the cluster's data folder; `path` and `host` are for messages."""

    token: str
    marker_ns: int  #: st_ctime_ns of the marker
    closed: bool
    path: str
    host: str


@dataclass(frozen=True, slots=True)
class FolderState:
    """What a folder says of itself; `marker_ns` is None if it has no marker."""

    path: str
    tokens: Collection[str]
    marker_ns: int | None


def problem(last: FolderUse | None, folder: FolderState) -> str:
    """Why a broker must not start in the folder, as a sentence; '' if it may. `last` is None in a new cluster."""
    if last is None or (last.token in folder.tokens and (last.closed or last.marker_ns == folder.marker_ns)):
        return ""
    is_here = folder.path == last.path
    original = "the folder that was here" if is_here else f"the original folder ({last.path} on {last.host})"
    if last.token in folder.tokens:
        return (
            f"{folder.path} was copied, moved to another file system or changed in its owner or mode while brokers were"
            " running or after they had been killed, so it may lack records that they have acknowledged since. Start a"
            f" broker in {original}, stop it with Ctrl-C, and copy the folder then."
        )
    if folder.tokens:
        return (
            f"{folder.path} is an old copy of the data folder: a broker has used {original} since, and the copy may"
            f" lack records that were acknowledged. {_use(last, is_here=is_here)}"
        )
    where = "which is another one" if is_here else f"not {folder.path}"
    return (
        f"the brokers of this cluster share one data folder, {last.path} on {last.host}, {where}: a broker with a"
        f" folder of its own would lead partitions without their records. {_use(last, is_here=is_here)}"
    )


def _use(last: FolderUse, *, is_here: bool) -> str:
    if is_here:
        return "Put that folder (or its disk) back in its place."
    return f"Start the broker with --folder {last.path}."


class DataFolder:
    """A broker's use of its folder. Methods raise OtherFolder, EnvironmentFault (disk), and ZooKeeper's errors.

    `adopt`: use the folder even if it is not the cluster's, as long as no broker is running.
    """

    def __init__(self, data_dir: Path, *, adopt: bool = False, runtime: Runtime = REAL) -> None:
        self._runtime = runtime
        self._data_dir = data_dir
        self._adopt = adopt
        self._identity: Identity | None = None

    async def check(self, session: ZooKeeperSession) -> None:
        """Raise OtherFolder if it is not the cluster's. Writes nothing."""
        await self._checked(session)

    async def open(self, session: ZooKeeperSession, identity: Identity) -> None:
        """Record a use by the broker with this identity."""
        while not await self._record(session, await self._checked(session), closed=False):
            continue
        self._identity = identity
        self._adopt = False  # from now on another one may have been adopted

    async def leave(self, session: ZooKeeperSession) -> None:
        """Record that the use is closed if no other broker uses the folder. This broker must write no more.

        A broker that starts after we looked for others finds our use, or we find that it has replaced the znode.
        """
        identity = self._identity
        assert identity is not None, "not opened"
        with disk_faults_named(self._data_dir):
            await self._runtime.threads.run(identity.leave)
            version = await self._checked(session)
            if await self._runtime.threads.run(others_serve, self._data_dir, identity.node_id):
                return
        await self._record(session, version, closed=True)

    async def _checked(self, session: ZooKeeperSession) -> int | None:
        """The version of the znode for which the folder was found to be the cluster's; None: there is none."""
        last, version = await _last_use(session)
        with disk_faults_named(self._data_dir):
            found = problem(last, await self._runtime.threads.run(self._state))
        if found and self._adopt:
            if running := await _registered(session):
                raise OtherFolder(
                    f"{found} It cannot be adopted while other brokers are registered in ZooKeeper ({running}): stop"
                    " them; one that was killed is gone when its session ends."
                )
            return version
        if found:
            raise OtherFolder(
                f"{found} If that folder is lost, --adopt-folder goes on with this one, and without the records that"
                " only the other one has."
            )
        return version

    async def _record(self, session: ZooKeeperSession, version: int | None, *, closed: bool) -> bool:
        """False if another broker was faster."""
        with disk_faults_named(self._data_dir):
            use = await self._runtime.threads.run(self._used, closed=closed)
        data = msgspec.json.encode(use)
        try:
            if version is None:
                await session.create(paths.DATA_FOLDER, data, makepath=True, step=_STEP)
            else:
                await session.set(paths.DATA_FOLDER, data, version, step=_STEP)
        except (NodeExists, NoNode, BadVersion):
            return False
        return True

    def _state(self) -> FolderState:
        folder = self._data_dir / FOLDER
        try:
            tokens = frozenset((folder / _USES).read_text(encoding="ascii", errors="replace").split())
        except FileNotFoundError:
            tokens = frozenset()
        marker = folder / _MARKER
        return FolderState(
            str(self._data_dir.resolve()), tokens, marker.stat().st_ctime_ns if marker.exists() else None
        )

    def _used(self, *, closed: bool) -> FolderUse:
        """Append a token to the folder, durably."""
        folder, token = self._data_dir / FOLDER, znodes.id_text(fresh_uuid(self._runtime.random))
        with choosing(self._data_dir):
            folder.mkdir(exist_ok=True)
            marker = folder / _MARKER
            if not marker.exists():
                temporary = folder / f"{_MARKER}.new"
                temporary.write_text(_MARKER_TEXT, encoding="utf-8")
                temporary.replace(marker)  # the last change of the file
            # A line that a power cut has torn must not take this one with it.
            with (folder / _USES).open("ab") as file:
                file.write(f"\n{token}\n".encode())
            synced(marker, folder / _USES, folder, self._data_dir)
        host = self._runtime.edge(socket.gethostname)()
        return FolderUse(token, marker.stat().st_ctime_ns, closed, str(self._data_dir.resolve()), host)


async def _last_use(session: ZooKeeperSession) -> tuple[FolderUse | None, int | None]:
    """The znode and its version; None in a cluster that no broker has used."""
    try:
        data, stat = await session.get(paths.DATA_FOLDER, step=_STEP)
    except NoNode:
        return None, None
    try:
        return msgspec.json.decode(data, type=FolderUse), stat.version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EnvironmentFault(
            f"{paths.DATA_FOLDER} in ZooKeeper is malformed: {error}. It names the data folder of the brokers; delete"
            " it if you are sure that all of them use the same one."
        ) from error


async def _registered(session: ZooKeeperSession) -> str:
    """The ids of the brokers in ZooKeeper, as text."""
    try:
        return ", ".join(await session.children(paths.BROKER_IDS, step=_STEP))
    except NoNode:
        return ""
