"""A broker as a child process that tests may stop (SIGSTOP) and kill: `python -m tests.support.brokers.child`.

Arguments: ZooKeeper, data directory, broker id, session timeout ms, linger ms (inside each write transaction, between
its rows and its commit). Prints its port once it serves; ends with its standard input.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import Process
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from tests.support.brokers.live import running_broker
from tests.support.brokers.storage_process import linger
from tests.support.lean_child import lean_child


def broker_child(
    zookeeper: str, data_dir: Path, node_id: int, session_timeout_ms: int, *, linger_ms: int = 0, **how: Any
) -> AbstractAsyncContextManager[Process]:
    """`how` is as in `lean_child`."""
    module = "tests.support.brokers.child"
    return lean_child(module, zookeeper, data_dir, node_id, session_timeout_ms, linger_ms, **how)


async def serve(zookeeper: str, data_dir: Path, node_id: int, session_timeout_ms: str) -> None:
    settings = {"zookeeper.session.timeout.ms": session_timeout_ms}
    async with running_broker(zookeeper, data_dir, node_id=node_id, settings=settings) as broker:
        sys.stdout.write(f"{broker.address.port}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    zookeeper, data_dir, node_id, session_timeout_ms, linger_ms = sys.argv[1:]
    if int(linger_ms):
        linger(int(linger_ms))
    asyncio.run(serve(zookeeper, Path(data_dir), int(node_id), session_timeout_ms))


if __name__ == "__main__":
    main()
