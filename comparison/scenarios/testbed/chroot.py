"""Creates and removes a run's chroot in a ZooKeeper that is not ours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kernel.trace.writer import SilentTracer
from kernel.zookeeper.errors import NoNode
from kernel.zookeeper.session import ZooKeeperSession

if TYPE_CHECKING:
    from collections.abc import Sequence

_TIMEOUT_MS = 10_000


def chroot_name(run: str) -> str:
    """A chroot's name, from a run's id."""
    return "rebalance-lab-" + re.sub(r"[^A-Za-z0-9_-]", "-", run)


async def make_chroot(connect_string: str, name: str) -> str:
    """Create `name` in the connect string's own chroot; the connect string with the new chroot."""
    hosts, slash, folder = connect_string.partition("/")
    path = f"{slash}{folder}/{name}"
    async with await _session(hosts) as session:
        await session.ensure_path(path)
    return f"{hosts}{path}"


async def remove_chroot(connect_string: str) -> None:
    """Delete the chroot with everything in it."""
    hosts, _, folder = connect_string.partition("/")
    async with await _session(hosts) as session:
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


async def _session(hosts: str) -> ZooKeeperSession:
    return await ZooKeeperSession.open(
        hosts,
        session_timeout_ms=_TIMEOUT_MS,
        connection_timeout_ms=_TIMEOUT_MS,
        tracer=SilentTracer(),
        name="chroot",
    )
