"""The chroot of a connect string: a session of `host:port,host:port/some/where` sees that znode as the root."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.runtime import REAL, Runtime
from kernel.zookeeper.bridge import Bridge
from kernel.zookeeper.session import ZooKeeperSession

if TYPE_CHECKING:
    from kernel.trace.writer import Tracer


def split_chroot(connect_string: str) -> tuple[str, str]:
    """(servers, chroot), where chroot is "" or begins with a slash and does not end with one."""
    servers, slash, folder = connect_string.partition("/")
    return servers, f"/{folder}".rstrip("/") if slash else ""


async def ensure_chroot(
    connect_string: str, *, tracer: Tracer, name: str, connection_timeout_ms: int, runtime: Runtime = REAL
) -> None:
    """Create a missing chroot, as a Kafka broker does when it starts (a consumer does not).

    This needs a separate session, since one with the chroot cannot name it. Without a chroot, nothing is sent.
    """
    servers, folder = split_chroot(connect_string)
    if not folder:
        return
    async with await ZooKeeperSession.open(
        servers,
        session_timeout_ms=max(connection_timeout_ms, 1000),
        tracer=tracer,
        name=name,
        connection_timeout_ms=connection_timeout_ms,
        bridge=runtime.edge(Bridge),
    ) as session:
        if await session.exists(folder) is None:
            await session.ensure_path(folder)
