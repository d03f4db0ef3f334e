"""A broker with its coordinator as a child process limited to `ADDRESS_SPACE` bytes of memory.

    async with limited_broker(chroot, tmp_path, {"queued.max.request.bytes": "25000000"}) as broker:
        before = broker.peak_bytes()

`python -m tests.support.brokers.limited ZOOKEEPER DATA_DIR SETTINGS STALL_S` prints its port once it serves, and ends
with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from coordinator.service.mount import mount
from kernel.broker.server import budgeted_socket
from tests.support.brokers.live import running_broker
from tests.support.lean_child import lean_child

#: `prlimit --as`: larger allocations fail, and the machine does not run out of memory.
ADDRESS_SPACE = 3 * 1024**3


class LimitedBroker(NamedTuple):
    process: Process
    host: str
    port: int
    log: Path | None = None  #: its standard error, if kept

    def peak_bytes(self) -> int:
        """The peak of its resident memory."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("/proc does not show VmHWM")


async def serve(zookeeper: str, data_dir: Path, settings: Mapping[str, str], stall_s: float) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    budgeted_socket.STALL_S = stall_s  # type: ignore[attr-defined]  # imported there
    async with running_broker(zookeeper, data_dir, settings=settings, mount=(mount,)) as broker:
        sys.stdout.write(f"{broker.address.port}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


@asynccontextmanager
async def limited_broker(
    zookeeper: str, data_dir: Path, settings: Mapping[str, str], *, stall_s: float = 5.0, log: Path | None = None
) -> AsyncIterator[LimitedBroker]:
    """`stall_s`: how long a connection that others wait for may stall. `log`: a file for its standard error."""
    arguments = (zookeeper, data_dir, json.dumps(settings), stall_s)
    with log.open("w") if log is not None else nullcontext() as stderr:
        async with lean_child("tests.support.brokers.limited", *arguments, stderr=stderr) as process:
            assert process.stdout is not None
            yield LimitedBroker(process, "127.0.0.1", int(await process.stdout.readline()), log)
            assert process.returncode is None, "the broker ended"


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]), float(sys.argv[4])))
