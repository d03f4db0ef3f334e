"""Groups of librdkafka's consumers on a real broker: what a join, a leave and a crash cost."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from bench.rolling_ledger import Ledger
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.phase import share_of
from docs.generators.simulation_records import Measured
from kernel.client.client import ClusterClient
from kernel.designs import DESIGNS
from kernel.platform.ports import LOOPBACK
from kernel.platform.processes import start_child
from kernel.waiting import until
from kernel.wire.codec import decode_request
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from comparison.scenarios.plan.parameters import Parameters

TOPIC = "orders"
_SETTLES_S = 60.0
#: More than a heartbeat: then every member is up to date.
_QUIET_S = 1.5
_COUNTED = (Api.JoinGroup, Api.SyncGroup)


class CountingProxy:
    """In front of a broker, which has to advertise its port: counts requests of groups, and knows their generations."""

    def __init__(self) -> None:
        self.requests: defaultdict[str, Counter[str]] = defaultdict(Counter)  #: by group
        self.generations: Counter[str] = Counter()  #: the newest of each group for which a member asked its assignment
        self.port = 0
        self._upstream = 0

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._serve, LOOPBACK, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def forward_to(self, port: int) -> None:
        self._upstream = port

    def stop(self) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, onward = await asyncio.open_connection(LOOPBACK, self._upstream)
        back = asyncio.create_task(_copied(answers, writer))
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while True:
                    size = await reader.readexactly(4)
                    frame = await reader.readexactly(struct.unpack(">i", size)[0])
                    self._count(frame)
                    onward.write(size + frame)
                    await onward.drain()
        finally:
            back.cancel()
            onward.close()
            writer.close()

    def _count(self, frame: bytes) -> None:
        (api,) = struct.unpack_from(">h", frame)
        if api not in (each.value for each in _COUNTED):
            return
        request = decode_request(frame)
        group = request.body.group_id
        self.requests[group][request.api.name] += 1
        if request.api is Api.SyncGroup:
            self.generations[group] = max(self.generations[group], request.body.generation_id)


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()


class StockMember:
    """A member in a process of its own, which tells the ledger what it owns."""

    def __init__(self, name: str, settings: Mapping[str, str], ledger: Ledger) -> None:
        self._name = name
        self._ledger = ledger
        self._child = start_child(
            [sys.executable, "-m", "docs.generators.stock_member", json.dumps(dict(settings)), TOPIC],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def leave(self) -> None:
        assert self._child.stdin is not None
        self._ledger.leaves(self._name)
        self._child.stdin.close()

    def kill(self) -> None:
        self._ledger.leaves(self._name)
        self._child.kill()

    async def gone(self) -> None:
        """It has ended."""
        await asyncio.to_thread(self._child.wait)
        await asyncio.to_thread(self._reading.join)

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            for what, partitions in json.loads(line).items():
                {"gains": self._ledger.gains, "loses": self._ledger.loses}[what](self._name, partitions)


class StockGroup:
    """One group from forming to its end."""

    def __init__(self, design: str, seed: int, parameters: Parameters, proxy: CountingProxy) -> None:
        self.design = design
        self._group = f"{design}-{seed}"
        self._seed = seed
        self._made = configuration(design, parameters)
        self._parameters = parameters
        self._proxy = proxy
        self._ledger = Ledger(parameters.partitions)
        self._members: dict[str, StockMember] = {}

    async def run(self) -> dict[str, Measured]:
        """What a join, a leave and a crash cost, each in a group of as many members as the scenarios begin with."""
        first = [f"m{number}" for number in range(1, self._parameters.members + 1)]
        last, newcomer = first[-1], f"m{len(first) + 1}"
        found = {}
        try:
            for name in first:
                self._start(name)
            await self._settled()
            found["join"] = await self._change("join", lambda: self._start(newcomer))
            await self._change("", lambda: self._end(newcomer, StockMember.leave))
            found["leave"] = await self._change("leave", lambda: self._end(last, StockMember.leave))
            await self._change("", lambda: self._start(last))
            found["crash"] = await self._change("crash", lambda: self._end(last, StockMember.kill))
        finally:
            left = list(self._members.values())
            for member in left:
                member.kill()
            await asyncio.gather(*(member.gone() for member in left))
        return found

    def _start(self, name: str) -> None:
        settings = {
            "bootstrap.servers": f"{LOOPBACK}:{self._proxy.port}",
            "group.id": self._group,
            "client.id": name,
            **({"group.protocol": "consumer"} if DESIGNS[self.design].reconciles else {}),
            **self._made.member,
        }
        self._members[name] = StockMember(name, settings, self._ledger)

    async def _end(self, name: str, end: Callable[[StockMember], None]) -> None:
        member = self._members.pop(name)
        end(member)
        await member.gone()

    async def _change(self, scenario: str, change: Callable[[], object]) -> Measured:
        # Heartbeats are in step after a rebalance: begin where the scenario would within their interval.
        await asyncio.sleep(share_of(self._seed, scenario, 1) * self._made.heartbeat_ms / 1000)
        requests, generation = self._proxy.requests[self._group].copy(), await self._generation()
        begun = time.monotonic()
        made = change()
        if isinstance(made, Awaitable):
            await made
        settled = await self._settled()
        generations = await self._generation() - generation
        cost = self._ledger.cost(begun, settled, generations).counts
        counts = {"stopped": cost.stopped, "moved": cost.moved, "generations": generations}
        return Measured(counts | (self._proxy.requests[self._group] - requests), round(1000 * (settled - begun)))

    async def _settled(self) -> float:
        return await until(
            lambda: self._ledger.settled_since(self._members, _QUIET_S),
            _SETTLES_S,
            f"{self._group} with {sorted(self._members)} to settle",
        )

    async def _generation(self) -> int:
        """The group's newest generation; in KIP-848 its epoch."""
        if not DESIGNS[self.design].reconciles:
            return self._proxy.generations[self._group]
        client = ClusterClient([(LOOPBACK, self._proxy.port)], "records")
        try:
            connection = await client.any_connection()
            answer = await connection.call(Api.ConsumerGroupDescribe, {"group_ids": [self._group]})
            return int(answer.groups[0].group_epoch)
        finally:
            await client.close()
