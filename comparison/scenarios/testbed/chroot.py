"""Creates and removes a run's chroot in a ZooKeeper that is not ours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kernel.zookeeper.errors import NoNode
from kernel.zookeeper.session import ZooKeeperSession, untraced

if TYPE_CHECKING:
    from collections.abc import Sequence


def chroot_name(run: str) -> str:
    """A chroot's name, from a run's id."""
    return "rebalance-lab-" + re.sub(r"[^A-Za-z0-9_-]", "-", run)


async def make_chroot(connect_string: str, name: str) -> str:
    """Create `name` in the connect string's own chroot; the connect string with the new chroot."""
    hosts, slash, folder = connect_string.partition("/")
    path = f"{slash}{folder}/{name}"
    async with await untraced(hosts, "chroot") as session:
        await session.ensure_path(path)
    return f"{hosts}{path}"


async def remove_chroot(connect_string: str) -> None:
    """Delete the chroot with everything in it."""
    hosts, _, folder = connect_string.partition("/")
    async with await untraced(hosts, "chroot") as session:
        await _remove(session, f"/{folder}")


async def _remove(session: ZooKeeperSession, path: str) -> None:
    try:
        children: Sequence[str] = await session.children(path)
    except NoNode:
        return
    for child in children:
        await _remove(session, f"{path}/{child}")
    try:
        await session.delete(path)
    except NoNode:
        return
