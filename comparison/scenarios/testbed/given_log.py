"""Reads the transaction log of a ZooKeeper that is not ours, from the folders that `--zookeeper-log` names.

It has the changes of other clients, too: only those in the run's chroot count, by their paths in it. ZooKeeper writes a
change to the log before it answers, so the log is complete while the server runs.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from kernel.errors import ConfigurationError
from kernel.waiting import WaitTimeout, until
from kernel.zookeeper.session import untraced
from kernel.zookeeper.txnlog import read_ensemble

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from kernel.zookeeper.txnlog import Transaction

_WRITTEN_S = 5.0
#: The log's times are those of the server's clock, and are compared with ours.
_APART_MS_MAX = 250


class GivenLog:
    """The log of one run: what happened below its chroot since that was created."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = [folder.parent if folder.name == "version-2" else folder for folder in folders]
        self._chroot = ""
        self._since = 0

    async def begin(self, connect_string: str) -> None:
        """Find the creation of the run's chroot in the log.

        Raises `ConfigurationError` if it is not there, so that this is the log of another ZooKeeper, or if the
        server's clock differs from ours.
        """
        hosts, slash, path = connect_string.partition("/")
        self._chroot = f"{slash}{path}"
        async with await untraced(hosts, "log") as session:
            # A change that is made now, to compare the clocks.
            before_ms = time.time_ns() // 1_000_000
            stat = await session.set(self._chroot, b"")
            after_ms = time.time_ns() // 1_000_000
            _, created = await session.get(self._chroot)
        self._since = created.czxid
        if not before_ms - _APART_MS_MAX <= stat.mtime_ms <= after_ms + _APART_MS_MAX:
            raise ConfigurationError(
                f"the clock of the ZooKeeper at {hosts} is {stat.mtime_ms - after_ms} ms ahead of this machine's, so "
                "its log cannot be compared with the members' traces. Leave out --zookeeper-log"
            )
        try:
            await until(
                lambda: asyncio.to_thread(self._has, stat.mzxid), _WRITTEN_S, "the run's first change in the log"
            )
        except WaitTimeout:
            named = ", ".join(str(folder) for folder in self._folders)
            raise ConfigurationError(
                f"--zookeeper-log {named} does not have what was just written to the ZooKeeper at {hosts}. Give the "
                "dataLogDir (or dataDir) of that server, or of each server of the ensemble"
            ) from None

    def transactions(self) -> list[Transaction]:
        """The run's transactions. Raises `FileNotFoundError`, and ValueError for a file that is no log."""
        return list(within(self._chroot, read_ensemble(self._folders, since=self._since)))

    def _has(self, zxid: int) -> bool:
        try:
            return any(each.zxid >= zxid for each in read_ensemble(self._folders, since=self._since))
        except FileNotFoundError:
            return False


def within(chroot: str, transactions: Iterable[Transaction]) -> Iterator[Transaction]:
    """The transactions below a chroot, with the paths that its clients use."""
    below = f"{chroot}/"
    for each in transactions:
        removed = tuple(path.removeprefix(chroot) for path in each.removed_paths if path.startswith(below))
        if each.path.startswith(below) or removed:
            yield replace(each, path=each.path.removeprefix(chroot), removed_paths=removed)
