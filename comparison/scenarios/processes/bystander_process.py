"""The bystander as a process: a client of ZooKeeper that has nothing to do with the group.

It reads and writes a znode of its own in a session of its own, evenly, and traces how long each operation took. An
operation is sent when it is due, whether the earlier ones have been answered or not: otherwise a slow server would be
asked less often just while it is slow. One that came due while this process got no processor is left out.

Standard input: one line of configuration (`BystanderConfig`). The end of the input, or `{"command": "stop"}`, ends it.
Standard output: `{"event": "operated", "operations": N}` after every few operations; when it cannot start,
`{"event": "failed", "error": ...}`.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.scenarios.processes.child_trace import ChildConfig, ChildTrace
from comparison.scenarios.processes.host import Host
from comparison.scenarios.processes.lines import configured, stopping_after
from kernel.errors import RebalanceLabError
from kernel.trace.events import Role
from kernel.zookeeper.errors import NodeExists, ZooKeeperError
from kernel.zookeeper.session import ZooKeeperSession, untraced

if TYPE_CHECKING:
    from kernel.trace.writer import Tracer

#: Its znode. It is a namespace of its own in the servers' counters, which are compared with the traced operations of
#: the others.
NAMESPACE = "rebalance-lab-bystander"
PATH = f"/{NAMESPACE}"
#: What it does in turn, by ZooKeeper's names, so many times a second in all.
OPERATIONS, RATE = ("getData", "setData"), 200
_DATA = b"x" * 64
_REPORTED_EVERY = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class BystanderConfig(ChildConfig):
    """The first line."""

    zookeeper: str


class Bystander:
    """Reads and writes its znode in an open session, until it is cancelled."""

    def __init__(self, session: ZooKeeperSession, tracer: Tracer, host: Host) -> None:
        self._session = session
        self._host = host
        self._now_ns = host.runtime.clock.monotonic_ns
        self._tracer = tracer
        self._answered = 0
        self._asking: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        with contextlib.suppress(NodeExists):
            await self._session.create(PATH, _DATA)
        loop = asyncio.get_running_loop()
        begun, number = loop.time(), 0
        try:
            while True:
                self._ask(number)
                number = max(number + 1, int((loop.time() - begun) * RATE))
                await asyncio.sleep(begun + number / RATE - loop.time())
        finally:
            for each in self._asking:
                each.cancel()

    def _ask(self, number: int) -> None:
        task = asyncio.create_task(self._timed(OPERATIONS[number % 2]))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _timed(self, op: str) -> None:
        begun_ns = self._now_ns()
        error = None
        try:
            if op == "getData":
                await self._session.get(PATH)
            else:
                await self._session.set(PATH, _DATA)
        except ZooKeeperError as caught:
            error = type(caught).__name__
        latency_ns = self._now_ns() - begun_ns
        self._tracer.emit("bystander_op", op=op, ok=error is None, latency_ns=latency_ns, error=error)
        self._answered += 1
        if self._answered % _REPORTED_EVERY == 0:
            self._host.write({"event": "operated", "operations": self._answered})


async def run(host: Host) -> int:
    lines = host.lines()
    config = await configured(lines, BystanderConfig)
    if config is None:
        return 0
    tracer = ChildTrace(config, Role.BYSTANDER, host)
    stopping = stopping_after(host, lines)
    code = 0
    try:
        # Its operations are events of a kind of their own.
        async with await untraced(config.zookeeper, "bystander", runtime=host.runtime) as session:
            operating = asyncio.create_task(Bystander(session, tracer, host).run())
            await asyncio.wait([stopping, operating], return_when=asyncio.FIRST_COMPLETED)
            operating.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await operating
    except RebalanceLabError as error:
        host.write({"event": "failed", "error": str(error)})
        code = 1
    stopping.cancel()
    tracer.close()
    return code


def main() -> None:
    raise SystemExit(asyncio.run(run(Host())))


if __name__ == "__main__":
    main()
