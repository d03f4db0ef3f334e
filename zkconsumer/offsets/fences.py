"""Fences for commits to ZooKeeper (`fix.commit.fence`): none, the session of the claim, or an epoch.

The original has no fence: every member that believes it owns a partition overwrites its offset, in whichever session
its request arrives. The owner node's version is no fence either, since a node that was deleted and created again
starts at version 0.

- *session*: the write is sent in the session of the claim, or not at all. While that session lives, no other member
  can have claimed the partition (unless the owner node was deleted). One setData, as without a fence.
- *epoch*: a transaction checks the version of `/consumers/G/epochs/T/P`, which every claim bumps, and sets the offset.
  It holds even against a foreign owner in the same session, and still accepts an owner that has no successor. One
  multi for each partition, and one more setData for each claim.

Both guard only ZooKeeper: with `offsets.storage=kafka` they guard the second write of a dual commit.
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

#: The errors by which a fence refuses; any other error is a failure.
REFUSALS = (SessionExpired, BadVersion)


async def unfenced(session: ZooKeeperSession, info: PartitionInfo, path: str, data: bytes, step: str) -> None:
    """Three requests for a partition's first commit, one for each later one."""
    await session.put(path, data, step=step)


async def in_session(session: ZooKeeperSession, info: PartitionInfo, path: str, data: bytes, step: str) -> None:
    """As `unfenced`, but only in the session of the claim. Raises `SessionExpired`."""
    assert info.session, f"{info.topic_partition} was adopted without the session of its claim"
    await session.put(path, data, step=step, only_in=info.session)


async def in_epoch(session: ZooKeeperSession, info: PartitionInfo, path: str, data: bytes, step: str) -> None:
    """Check and write in one transaction. Raises `BadVersion`, also if the epoch node is gone."""
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
                raise BadVersion("the epoch node is gone, so this claim is not the latest one", epoch) from missing
            raise

    try:
        await write(SetData(path, data))
    except NoNode:
        await session.ensure_path(paths.parent(path), step=step)
        try:
            await write(Create(path, data))
        except NodeExists:
            await write(SetData(path, data))


#: By the setting's value.
FENCES: Mapping[str, Callable[[ZooKeeperSession, PartitionInfo, str, bytes, str], Awaitable[None]]] = {
    "none": unfenced,
    "session": in_session,
    "epoch": in_epoch,
}
