"""A broker with its coordinator as a child process that tests may stop and kill.

`python -m tests.support.coordinators.child ZOOKEEPER DATA_DIR BROKER_ID SESSION_TIMEOUT_MS` prints its port once it
serves, and ends with its standard input.

If the data folder has a file `FREEZE`, the process stops itself (SIGSTOP) after the commit of its next write, at the
place that the file names.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from coordinator.service.mount import mount
from kernel.broker.storage import writer
from kernel.broker.storage.errors import StorageError
from kernel.broker.storage.terms import Term
from tests.support.brokers.live import running_broker
from tests.support.lean_child import lean_child


def settings_of(session_timeout_ms: int) -> dict[str, str]:
    return {"zookeeper.session.timeout.ms": str(session_timeout_ms), "offsets.topic.replication.factor": "2"}


#: The file's name, and its possible contents: stop after or before the check of the publications, which decides.
FREEZE = "freeze"
BEHIND_THE_LOOK, BEFORE_THE_LOOK = "behind", "before"


def _stop_here() -> None:
    """Stop the process before this thread continues.

    Another thread may receive a signal to the process, and this one would run on until that thread wakes up.
    """
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def freeze_on_request(data_dir: Path) -> None:
    settled, order = writer._settled, data_dir / FREEZE

    def stopping(term: Term, becomes: Any) -> StorageError | None:
        where = order.read_text() if order.exists() else ""
        order.unlink(missing_ok=True)
        if where == BEFORE_THE_LOOK:
            _stop_here()
        found = settled(term, becomes)
        if where == BEHIND_THE_LOOK:
            _stop_here()
        return found

    writer._settled = stopping


async def serve(zookeeper: str, data_dir: Path, node_id: int, session_timeout_ms: int) -> None:
    settings = settings_of(session_timeout_ms)
    freeze_on_request(data_dir)
    async with running_broker(zookeeper, data_dir, node_id=node_id, settings=settings, mount=(mount,)) as broker:
        sys.stdout.write(f"{broker.address.port}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


@asynccontextmanager
async def coordinator_child(
    zookeeper: str, data_dir: Path, node_id: int, session_timeout_ms: int
) -> AsyncIterator[tuple[Process, int]]:
    """The process and its port."""
    arguments = (zookeeper, data_dir, node_id, session_timeout_ms)
    async with lean_child("tests.support.coordinators.child", *arguments) as process:
        assert process.stdout is not None
        yield process, int(await process.stdout.readline())


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
