"""Members of the server design built only from the codec: a ZooKeeper session for the id, and a connection.

    async with raw_member(chroot, brokers, "a") as member:
        await member.running(1)

A member registers and then obeys commands; while `hears` is cleared it neither obeys nor sends AwaitCommand.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from coordinator.groups.errors import Error
from coordinator.protocol.server.commands import (
    NO_GENERATION,
    AwaitCommand,
    Command,
    CommandAnswer,
    CommitOwned,
    OwnedOffset,
)
from coordinator.protocol.server.errors import ServerError
from coordinator.protocol.server.member_znode import registration_payload
from coordinator.protocol.server.messages import await_body, commit_body, read_command_answer, read_commit_answer
from kernel.client.client import ClusterClient
from kernel.client.connection import BrokerConnection
from kernel.errors import Unavailable
from kernel.tasks import cancel_and_wait
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.versions import Api
from kernel.zookeeper import paths
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.zookeeper.sessions import opened

GROUP = "g"


class RawMember:
    """`commands`: those received, as (command, generation), no errors. `offsets`: where it starts, by partition."""

    def __init__(self, member_id: str, session: ZooKeeperSession, bootstrap: Sequence[tuple[str, int]]) -> None:
        self.id = member_id
        self.session = session
        self.topics: tuple[str, ...] = ()
        self.generation = self.stopped = NO_GENERATION
        self.offsets: Mapping[TopicPartition, int] = {}
        self.commands: list[tuple[str, int]] = []
        self.hears = asyncio.Event()
        self.hears.set()
        self._client = ClusterClient(bootstrap, member_id)
        #: Connections to the coordinator, by API: a waiting AwaitCommand would delay the commits behind it.
        self._connections: dict[Api, BrokerConnection] = {}

    @property
    def path(self) -> str:
        return paths.member_id(GROUP, self.id)

    async def register(self, *topics: str) -> None:
        self.topics = topics
        await self.session.create(self.path, registration_payload(topics, 0), ephemeral=True, makepath=True)

    async def obey_forever(self, wait_ms: int) -> None:
        """Ask for a command, obey, ask again; also across failovers."""
        while True:
            try:
                answer = await self.ask(wait_ms=wait_ms)
            except Unavailable:
                answer = CommandAnswer(error=ServerError.NOT_COORDINATOR)
            if self.hears.is_set():
                self.obey(answer)
            if answer.error:
                await self.forget_coordinator()
                await asyncio.sleep(0.05)
            await self.hears.wait()

    def obey(self, answer: CommandAnswer) -> None:
        if not answer.error:
            self.commands.append((answer.command.name, answer.generation))
        if answer.command is Command.STOP:
            self.stopped, self.offsets = self.generation, {}
        elif answer.command is Command.START:
            self.generation, self.stopped = answer.generation, NO_GENERATION
            self.offsets = {TopicPartition(part.topic, part.partition): part.offset for part in answer.partitions}

    async def ask(self, **fields: object) -> CommandAnswer:
        """One AwaitCommand. Raises `Unavailable`."""
        asked = {"generation": self.generation, "stopped": self.stopped, "topics": self.topics, "wait_ms": 0, **fields}
        command = AwaitCommand(group_id=GROUP, member_id=self.id, **asked)  # type: ignore[arg-type]
        connection = await self.coordinator(Api.AwaitCommand)
        return read_command_answer(await connection.call(Api.AwaitCommand, await_body(command)))

    async def commit(self, offsets: Mapping[TopicPartition, int], *, generation: int | None = None) -> dict[str, str]:
        """{"t-0": error}."""
        commit = CommitOwned(
            group_id=GROUP,
            member_id=self.id,
            generation=self.generation if generation is None else generation,
            offsets=tuple(OwnedOffset(tp.topic, tp.partition, offset) for tp, offset in offsets.items()),
        )
        connection = await self.coordinator(Api.CommitOwned)
        answer = read_commit_answer(await connection.call(Api.CommitOwned, commit_body(commit)))
        return {f"{part.topic}-{part.partition}": part.error.name for part in answer.partitions}

    async def coordinator(self, api: Api) -> BrokerConnection:
        open_one = self._connections.get(api)
        if open_one is not None and not open_one.closed:
            return open_one
        while True:
            connection = await self._client.any_connection()
            found = await connection.call(Api.FindCoordinator, {"key": GROUP, "key_type": 0}, version=3)
            if found.error_code == Error.NONE:
                break
            await asyncio.sleep(0.05)
        opened = await BrokerConnection.open(found.host, found.port, self.id, node_id=found.node_id)
        self._connections[api] = opened
        return opened

    async def forget_coordinator(self) -> None:
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            connection.close()
            await connection.wait_closed()

    async def running(self, generation: int, *, timeout_s: float = 60) -> None:
        await until(
            lambda: self.generation == generation and self.stopped != generation,
            timeout_s,
            lambda: f"{self.id} to run generation {generation}; its commands: {self.commands}",
        )

    async def close(self) -> None:
        await self.forget_coordinator()
        await self._client.close()


@asynccontextmanager
async def raw_member(
    zookeeper: str, bootstrap: Sequence[tuple[str, int]], member_id: str, *, wait_ms: int = 5_000
) -> AsyncIterator[RawMember]:
    """A registered member; the end of the block closes its session."""
    async with opened(zookeeper) as session:
        member = RawMember(member_id, session, bootstrap)
        await member.register("t")
        task = asyncio.create_task(member.obey_forever(wait_ms))
        try:
            yield member
        finally:
            await cancel_and_wait(task)
            await member.close()
