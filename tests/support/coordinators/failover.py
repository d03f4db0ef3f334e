"""A cluster of broker processes that tests kill, and clients that keep committing meanwhile.

async with cluster(chroot, tmp_path, 2) as brokers:
    async with committing(brokers, "g1", "g2") as clients:      # members, many commits in flight
        await until(lambda: clients[0].acknowledged > 100, 60, "commits")
        await brokers.kill(1)
        await clients[0].verify()       # every acknowledged commit is stored, wherever its coordinator is now
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.conversations.recorded import ConnectionEnded
from tests.support.coordinators.child import coordinator_child
from tests.support.wire.clients import WireConnection
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import end_session

#: Longer than any pause of a busy machine; when a broker is killed, its sessions are ended explicitly.
SESSION_MS = 30_000
#: Concurrent commits of one client.
WINDOW = 16
FINDING_S = 60
#: Between two attempts of a client, like retry.backoff.ms.
BACKOFF_S = 0.05


class Brokers:
    """The running processes, by broker id."""

    def __init__(self, chroot: str, data_dir: Path) -> None:
        self._chroot, self._data_dir = chroot, data_dir
        self.running: dict[int, tuple[Process, int]] = {}
        self._links: dict[int, ZooKeeperProxy] = {}  #: by broker id; they know the sessions
        self._stack = AsyncExitStack()

    async def start(self, node_id: int) -> None:
        """Start a broker. One that was killed comes back as another incarnation."""
        link = self._links[node_id] = self._stack.enter_context(ZooKeeperProxy(self._chroot))
        child = coordinator_child(link.connect_string, self._data_dir, node_id, SESSION_MS)
        self.running[node_id] = await self._stack.enter_async_context(child)

    async def kill(self, node_id: int) -> None:
        """SIGKILL; its sessions are ended as if they had expired."""
        process, _ = self.running.pop(node_id)
        process.kill()
        await process.wait()
        for credentials in self._links.pop(node_id).all_credentials():
            await asyncio.to_thread(end_session, self._chroot, credentials)

    async def close(self) -> None:
        await self._stack.aclose()

    async def connect(self, node_id: int) -> WireConnection:
        return await WireConnection.open("127.0.0.1", self.running[node_id][1], "client")

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for _, port in self.running.values())

    async def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create it with a replica on every broker. Waits until all know it: offsets of unknown topics are refused."""
        sizes = {"num_partitions": partitions, "replication_factor": len(self.running)}
        for node_id in self.running:
            connection = await self.connect(node_id)
            try:
                wanted = {"name": name, "assignments": [], "configs": [], **sizes}
                await connection.send(Api.CreateTopics, 5, {"topics": [wanted], "timeout": 60_000})

                async def known(connection: WireConnection = connection) -> bool:
                    answer = await connection.send(Api.Metadata, 4, {"topics": [{"name": name}]})
                    return bool(answer.topics[0].error_code is ErrorCode.none)

                await until(known, 60, f"broker {node_id} to know {name}")
            finally:
                connection.close()

    async def found_at(self, node_id: int, *group_ids: str) -> list[int]:
        """The coordinators of these groups according to this broker: broker ids, -1 for unknown."""
        connection = await self.connect(node_id)
        try:
            answer = await connection.send(Api.FindCoordinator, 4, {"key_type": 0, "coordinator_keys": group_ids})
        finally:
            connection.close()
        return [row.node_id if row.error_code is ErrorCode.none else -1 for row in answer.coordinators]

    async def coordinator_of(self, group_id: str) -> int:
        """Wait until a running broker names a running one, which may not have taken over yet."""
        found = -1

        async def is_found() -> bool:
            nonlocal found
            for node_id in list(self.running):
                try:
                    (found,) = await self.found_at(node_id, group_id)
                except (ConnectionEnded, OSError, KeyError):
                    continue
                if found in self.running:
                    return True
            return False

        await until(is_found, FINDING_S, lambda: f"a coordinator of {group_id} among {sorted(self.running)}")
        return found


@asynccontextmanager
async def cluster(chroot: str, data_dir: Path, number: int) -> AsyncIterator[Brokers]:
    """Brokers 1 to `number` as processes, and a topic `t`; processes still running end with the context."""
    brokers = Brokers(chroot, data_dir)
    try:
        await asyncio.gather(*(brokers.start(node_id) for node_id in range(1, number + 1)))
        await brokers.create_topic("t")
        yield brokers
    finally:
        await brokers.close()


class CommittingClient:
    """The only member of a group. It commits 1, 2, 3, ... concurrently, and follows its coordinator."""

    def __init__(self, brokers: Brokers, group_id: str) -> None:
        self.group_id = group_id
        self._brokers = brokers
        self.member_id = ""
        self.sent = self.acknowledged = 0
        self.under_way = 0
        self._stopping = False
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._asked(self._form)
        self._running = asyncio.create_task(self._commit_on(), name=f"commits of {self.group_id}")

    async def stop(self) -> None:
        """Stop, and wait for commits in flight."""
        self._stopping = True
        if self._running is not None:
            await self._running

    def check(self) -> None:
        """Raise the error that ended its work, if any."""
        if self._running is not None and self._running.done():
            self._running.result()

    async def verify(self) -> None:
        """Check that all acknowledged commits are stored, nothing else, and that the group has not changed."""
        least = self.acknowledged
        offset = await self._asked(self._fetch)
        assert least <= offset <= self.sent, f"{self.group_id} is at {offset}, acknowledged {least}, sent {self.sent}"
        assert await self._asked(self._heartbeat) == "none"

    # -- internals ---------------------------------------------------------------------------------------------------

    async def _asked(self, question: Any) -> Any:
        """The result of `question(connection)` at the current coordinator; repeated while it is None."""
        answer: Any = None

        async def is_answered() -> bool:
            nonlocal answer
            try:
                connection = await self._brokers.connect(await self._brokers.coordinator_of(self.group_id))
            except (OSError, KeyError):
                return False
            try:
                answer = await question(connection)
            except ConnectionEnded:
                return False
            finally:
                connection.close()
            return answer is not None

        await until(is_answered, FINDING_S, f"{question.__name__} of {self.group_id}", every_s=BACKOFF_S)
        return answer

    async def _form(self, connection: WireConnection) -> str | None:
        if not await self._is_loaded(connection):
            return None
        request = {
            "group_id": self.group_id,
            "session_timeout": 60_000,
            "rebalance_timeout": 10_000,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        }
        self.member_id = (await connection.send(Api.JoinGroup, 5, request)).member_id
        await connection.send(Api.JoinGroup, 5, request | {"member_id": self.member_id})
        given = {"assignments": [{"member_id": self.member_id, "assignment": b"all"}]}
        synced = await connection.send(Api.SyncGroup, 3, self._me() | given)
        assert synced.assignment == b"all", synced
        return self.member_id

    async def _is_loaded(self, connection: WireConnection) -> bool:
        """Heartbeats would not show it: they succeed while the group is being loaded."""
        answer = await connection.send(Api.DescribeGroups, 1, {"groups": [self.group_id]})
        return bool(answer.groups[0].error_code is ErrorCode.none)

    async def _fetch(self, connection: WireConnection) -> int | None:
        topics = [{"name": "t", "partition_indexes": [0]}]
        answer = await connection.send(Api.OffsetFetch, 7, {"group_id": self.group_id, "topics": topics})
        if answer.error_code is not ErrorCode.none:
            return None
        return int(answer.topics[0].partitions[0].committed_offset)

    async def _heartbeat(self, connection: WireConnection) -> str | None:
        if not await self._is_loaded(connection):
            return None
        return str((await connection.send(Api.Heartbeat, 3, self._me())).error_code.name)

    def _me(self) -> dict[str, Any]:
        return {"group_id": self.group_id, "member_id": self.member_id, "generation_id": 1}

    async def _commit_on(self) -> None:
        while not self._stopping:
            try:
                connection = await self._brokers.connect(await self._brokers.coordinator_of(self.group_id))
            except (OSError, KeyError):  # it was killed a moment ago
                await asyncio.sleep(BACKOFF_S)
                continue
            try:
                await self._commit_while_it_lasts(connection)
            finally:
                connection.close()
            await asyncio.sleep(BACKOFF_S)

    async def _commit_while_it_lasts(self, connection: WireConnection) -> None:
        good = True
        while good and not self._stopping:
            first = self.sent + 1
            self.sent += WINDOW
            self.under_way = WINDOW
            answers = [self._commit(connection, offset) for offset in range(first, first + WINDOW)]
            good = all(await asyncio.gather(*answers))

    async def _commit(self, connection: WireConnection, offset: int) -> bool:
        partition = {"partition_index": 0, "committed_offset": offset}
        member = {"member_id": self.member_id, "generation_id_or_member_epoch": 1}
        topics = [{"name": "t", "partitions": [partition]}]
        body = {"group_id": self.group_id, **member, "topics": topics}
        try:
            answer = await connection.send(Api.OffsetCommit, 8, body)
        except ConnectionEnded:
            return False
        finally:
            self.under_way -= 1
        name = answer.topics[0].partitions[0].error_code.name
        assert name in {"none", "not_coordinator", "coordinator_load_in_progress", "coordinator_not_available"}, name
        if name == "none":
            self.acknowledged = max(self.acknowledged, offset)
        return bool(name == "none")


@asynccontextmanager
async def committing(brokers: Brokers, *group_ids: str) -> AsyncIterator[list[CommittingClient]]:
    """One running client per group."""
    clients = [CommittingClient(brokers, group_id) for group_id in group_ids]
    try:
        await asyncio.gather(*(client.start() for client in clients))
        yield clients
    finally:
        await asyncio.gather(*(client.stop() for client in clients))
