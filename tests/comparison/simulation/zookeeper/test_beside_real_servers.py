"""The model is faithful: random interleavings of sessions on a real ensemble of three servers and on the model."""

from __future__ import annotations

import asyncio
import random
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.protocol.serialization import Connect

from comparison.simulation.zookeeper.servers import SimulatedZooKeeper
from kernel.waiting import until
from kernel.zookeeper import operations, requests
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.servers import leader_of
from tests.comparison.simulation.zookeeper.twins import TIMEOUT_S, Sides, Twins

#: Long enough for a watch on the znode to be set before, also on a busy machine.
TIMEOUT_MS = 3000


async def silent_session(address: str, path: str) -> None:
    """Returns once the znode is there. The connection is closed, which does not end the session."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    create = requests.create(path, b"", ephemeral=True)
    body = struct.pack(">ii", 1, create.type) + create.serialize()
    for frame in (Connect(0, 0, TIMEOUT_MS, 0, bytes(16), False).serialize(), body):
        writer.write(struct.pack(">i", len(frame)) + frame)
    for _ in range(2):
        (length,) = struct.unpack(">i", await reader.readexactly(4))
        await reader.readexactly(length)
    writer.close()


STEPS = 300
SESSIONS_MAX = 5
ROOT = "/root"
NAMES = ("a", "b", "ephemeral", "x-y", "é")
#: What a step is drawn from, and how often.
WEIGHTS = {
    "open": 3, "close": 1, "end": 1, "move": 2, "expire": 0.3, "create": 24, "delete": 12, "set_data": 10, "read": 36,
    "multi": 12, "burst": 6, "sync": 2, "malformed": 3,
}  # fmt: skip


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[EmbeddedZooKeeper]:
    """A new one, so that even its root is as the model's."""
    with EmbeddedZooKeeper(tmp_path, servers=3) as servers:
        yield servers


async def test_answers_and_notifications_are_the_real_ones(ensemble: EmbeddedZooKeeper) -> None:
    await play(ensemble, seed=1, steps=STEPS)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 12))
async def test_answers_and_notifications_are_the_real_ones_under_more_seeds(
    ensemble: EmbeddedZooKeeper, seed: int
) -> None:
    """Ten thousand steps in all."""
    await play(ensemble, seed, steps=1000)


async def play(ensemble: EmbeddedZooKeeper, seed: int, steps: int) -> None:
    modelled = SimulatedZooKeeper(lambda _, __: 0.0005, lambda: int(time.time() * 1000), servers=3)
    await modelled.start()
    try:
        await until(lambda: all(server.mode for server in modelled.servers), TIMEOUT_S, "the model to serve")
        leader = leader_of(ensemble.servers)
        real = [leader.address, *(server.address for server in ensemble.servers if server is not leader)]
        model = sorted(modelled.servers, key=lambda server: (server.mode != "leader", server.number))
        sides = Sides(real, [server.address for server in model])
        await sides.start()
        steps_of = Steps(sides, random.Random(seed))
        await steps_of.begin()
        for name in steps_of.chosen.choices([*WEIGHTS], [*WEIGHTS.values()], k=steps):
            await getattr(steps_of, name)()
        await steps_of.expire()
        await sides.stop()
        assert sides.compared > steps / 2, "hardly anything was compared"
    finally:
        modelled.stop()


class Steps:
    """Every public method but `begin` is a step; one that is impossible does nothing."""

    def __init__(self, sides: Sides, chosen: random.Random) -> None:
        self.sides = sides
        self.chosen = chosen

    async def begin(self) -> None:
        await self.open()
        await self._write(requests.create(ROOT, b"", ephemeral=False))

    # -- sessions ------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        if len(self.sides.twins) < SESSIONS_MAX:
            await self.sides.open(self.chosen.sample(range(3), 3))

    async def close(self) -> None:
        if len(self.sides.twins) > 1:
            await self.sides.close(self._twins())
            self._compare()

    async def end(self) -> None:
        await self.sides.end(self._twins())
        self._compare()

    async def move(self) -> None:
        await self.sides.move(self._twins())

    async def expire(self) -> None:
        """A client that says nothing any more: its znode goes a timeout and up to a tick later."""
        path, server = f"{ROOT}/silent", self.chosen.randrange(3)
        await asyncio.gather(*(silent_session(side[server], path) for side in (self.sides.real, self.sides.model)))
        watching = self._twins()
        await self.sides.settle()
        for one in watching.both:
            await one.ask(requests.exists(path, watch=True))
        for one in watching.both:
            await until(
                lambda one=one: any(fired.path == path and fired.kind == 2 for fired in one.fired),
                TIMEOUT_S,
                f"{path} to be deleted with its session",
            )
        await self.sides.settle()
        self._compare()

    # -- requests ------------------------------------------------------------------------------------------------------

    async def create(self) -> None:
        await self._write(self._a_create())

    async def delete(self) -> None:
        await self._write(self._a_delete())

    async def set_data(self) -> None:
        await self._write(requests.set_data(self._path(), self._data(), self._version()))

    async def read(self) -> None:
        await self.sides.ask(self._twins(), self._a_read())

    async def multi(self) -> None:
        await self._write(self._a_multi())

    async def burst(self) -> None:
        """Several requests at once: a session's reads see its own writes, also on a follower."""
        twins = self._twins()
        requested = [
            self.chosen.choice((self._a_create, self._a_read, self._a_delete, self._a_multi))()
            for _ in range(self.chosen.randint(2, 6))
        ]
        await asyncio.gather(*(self.sides.ask(twins, request) for request in requested))
        await self.sides.settle()
        self._compare()

    async def sync(self) -> None:
        await self.sides.ask(self._twins(), requests.sync(self._path()))

    async def malformed(self) -> None:
        path = self.chosen.choice(
            ("/", "/zookeeper", "/zookeeper/quota", f"{ROOT}/", f"{ROOT}//a", f"{ROOT}/a/..",
             f"{ROOT}/.", f"{ROOT}/\u0001", f"{ROOT}/none/", "none")
        )  # fmt: skip
        await self._write(
            self.chosen.choice(
                (
                    requests.create(path, b"", ephemeral=self.chosen.random() < 0.5),
                    requests.delete(path, -1),
                    requests.set_data(path, b"", 99),
                )
            )
        )

    # -- choices -------------------------------------------------------------------------------------------------------

    async def _write(self, request: object) -> None:
        await self.sides.ask(self._twins(), request)
        await self.sides.settle()
        self._compare()

    def _compare(self) -> None:
        for twins in self.sides.twins:
            self.sides.compare_notifications(twins)

    def _twins(self) -> Twins:
        return self.chosen.choice(self.sides.twins)

    def _path(self) -> str:
        names = self.chosen.choices(NAMES, k=self.chosen.choice((1, 1, 2, 2, 3)))
        return "/".join((ROOT, *names))

    def _version(self) -> int:
        return self.chosen.choice((-1, -1, 0, 1, 2))

    def _data(self) -> bytes | None:
        return self.chosen.choice((None, b"", b"data", bytes(3000)))

    def _a_create(self) -> object:
        if self.chosen.random() < 0.2:
            return requests.create_numbered(self._path(), self._data())
        return requests.create(self._path(), self._data(), ephemeral=self.chosen.random() < 0.4)

    def _a_delete(self) -> object:
        return requests.delete(self._path(), self._version())

    def _a_read(self) -> object:
        read = self.chosen.choice((requests.exists, requests.get, requests.children))
        path = self.chosen.choice((self._path(), self._path(), ROOT, "/"))
        return read(path, watch=self.chosen.random() < 0.6)

    def _a_multi(self) -> object:
        parts = tuple(self._part() for _ in range(self.chosen.randint(1, 4)))
        return requests.transaction(parts, lambda path: path)

    def _part(self) -> operations.TransactionPart:
        path = self._path()
        match self.chosen.randrange(4):
            case 0:
                return operations.Create(path, self._data(), self.chosen.random() < 0.4)
            case 1:
                return operations.Delete(path, self._version())
            case 2:
                return operations.SetData(path, self._data(), self._version())
        return operations.CheckVersion(path, self._version())
