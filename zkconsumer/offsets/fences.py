"""What a commit to ZooKeeper must pass (`fix.commit.fence`): nothing, the session of the claim, or an epoch.

The original has no fence: whoever believes to own a partition overwrites its offset, in whatever session its
request ends up. The owner node's version is no fence either, since a node that was deleted and made again starts
at version 0.

- *session*: sent in the session in which the partition was claimed, or not at all. As long as that session lives
  nobody else can have claimed the partition (unless somebody deleted the owner node). One setData, as without.
- *epoch*: a transaction that checks the version of `/consumers/G/epochs/T/P`, which every claim bumps, and sets the
  offset. It holds even against a foreign owner in the same session, and lets an owner through that nobody
  followed. One multi for each partition, and one setData more for each claim.

Both guard ZooKeeper only: with `offsets.storage=kafka` they guard the second write of a dual commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.zookeeper import paths
from kernel.zookeeper.errors import BadVersion, NodeExists, NoNode, SessionExpired
from kernel.zookeeper.operations import CheckVersion, Create, SetData

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from kernel.zookeeper.operations import TransactionPart
    from kernel.zookeeper.session import ZooKeeperSession
    from zkconsumer.records.streams import PartitionInfo

#: What a fence refuses with; anything else is a failure.
REFUSALS = (SessionExpired, BadVersion)


async def unfenced(session: ZooKeeperSession, info: PartitionInfo, path: str, data: bytes, step: str) -> None:
    """ZkUtils.updatePersistentPath: three requests for a partition's first commit, one for each later one."""
    await _update(session, path, data, step, only_in=0)


async def in_session(session: ZooKeeperSession, info: PartitionInfo, path: str, data: bytes, step: str) -> None:
    """As `unfenced`, in the session of the claim only. Raises `SessionExpired`."""
    assert info.session, f"{info.topic_partition} was adopted without the session of its claim"
    await _update(session, path, data, step, only_in=info.session)


async def in_epoch(session: ZooKeeperSession, info: PartitionInfo, path: str, data: bytes, step: str) -> None:
    """Checked and written in one transaction. Raises `BadVersion`, also when the epoch's node is gone."""
    assert info.epoch is not None, f"{info.topic_partition} was adopted without the epoch of its claim"
    named = paths.parse_offset(path)
    assert named is not None, path
    epoch = paths.epoch(*named)
    check = CheckVersion(epoch, info.epoch)

    async def write(part: TransactionPart) -> None:
        try:
            await session.transaction(check, part, step=step)
        except NoNode as missing:
            if missing.path == epoch:
                raise BadVersion("the epoch is gone, so this claim is not the last one", epoch) from missing
            raise

    try:
        await write(SetData(path, data))
    except NoNode:
        await session.ensure_path(paths.parent(path), step=step)
        try:
            await write(Create(path, data))
        except NodeExists:
            await write(SetData(path, data))


async def _update(session: ZooKeeperSession, path: str, data: bytes, step: str, *, only_in: int) -> None:
    try:
        await session.set(path, data, step=step, only_in=only_in)
    except NoNode:
        await session.ensure_path(paths.parent(path), step=step)
        try:
            await session.create(path, data, step=step, only_in=only_in)
        except NodeExists:
            await session.set(path, data, step=step, only_in=only_in)


#: By the setting's value.
FENCES: Mapping[str, Callable[[ZooKeeperSession, PartitionInfo, str, bytes, str], Awaitable[None]]] = {
    "none": unfenced,
    "session": in_session,
    "epoch": in_epoch,
}
