"""A broker that serves only a group's offsets, by a script: for answers that a real broker gives rarely.

async with scripted(chroot) as coordinator:                 # registered in ZooKeeper as broker 0
    coordinator.says(Api.OffsetFetch, "COORDINATOR_LOAD_IN_PROGRESS", SILENT)   # then the normal answers
    coordinator.seen                                        # [(Api.FindCoordinator, 0), ...]
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kernel.broker.cluster.znodes import broker_node
from kernel.broker.server.handlers import RequestContext, Response
from kernel.broker.server.server import BrokerServer
from kernel.values import NO_OFFSET, BrokerAddress, TopicPartition
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from kernel.zookeeper import paths
from tests.support.zookeeper.sessions import opened

SILENT = "SILENT"  #: never answered


class ScriptedCoordinator:
    """`offsets` are the stored ones; `coordinator` is the broker that it names, by default itself."""

    def __init__(self, node_id: int) -> None:
        self.server = BrokerServer(
            {Api.FindCoordinator: self._find, Api.OffsetFetch: self._fetch, Api.OffsetCommit: self._commit}
        )
        self.node_id = node_id
        self.offsets: dict[TopicPartition, int] = {}
        self.seen: list[tuple[Api, int]] = []
        self.commits: list[Any] = []  #: bodies of OffsetCommit
        self.coordinator = self
        self._script: defaultdict[Api, deque[str]] = defaultdict(deque)

    @property
    def address(self) -> BrokerAddress:
        return BrokerAddress(self.node_id, self.server.host, self.server.port)

    def says(self, api: Api, *errors: str) -> None:
        """Script the next answers: an error's name, '' or SILENT each; afterwards ''."""
        self._script[api].extend(errors)

    def count(self, api: Api) -> int:
        return sum(seen is api for seen, _ in self.seen)

    def _next(self, context: RequestContext) -> int | None:
        self.seen.append((context.api, context.version))
        script = self._script[context.api]
        error = script.popleft() if script else ""
        return None if error is SILENT else int(ErrorCode[error.lower()] if error else ErrorCode.none)

    def _find(self, context: RequestContext, _: Any) -> Response | asyncio.Future[Response]:
        error = self._next(context)
        if error is None:
            return asyncio.get_running_loop().create_future()
        named = self.coordinator.address
        return {"error_code": error, "node_id": named.node_id, "host": named.host, "port": named.port}

    def _fetch(self, context: RequestContext, body: Any) -> Response | asyncio.Future[Response]:
        error = self._next(context)
        if error is None:
            return asyncio.get_running_loop().create_future()

        def answered(tp: TopicPartition) -> dict[str, Any]:
            offset = NO_OFFSET if error else self.offsets.get(tp, NO_OFFSET)
            return {"partition_index": tp.partition, "committed_offset": offset, "metadata": "", "error_code": error}

        topics = [
            {
                "name": topic.name,
                "partitions": [answered(TopicPartition(topic.name, n)) for n in topic.partition_indexes],
            }
            for topic in body.topics
        ]
        return {"topics": topics, "error_code": error}

    def _commit(self, context: RequestContext, body: Any) -> Response | asyncio.Future[Response]:
        error = self._next(context)
        self.commits.append(body)
        if error is None:
            return asyncio.get_running_loop().create_future()
        topics = []
        for topic in body.topics:
            for part in topic.partitions:
                if not error:
                    self.offsets[TopicPartition(topic.name, part.partition_index)] = part.committed_offset
            parts = [{"partition_index": part.partition_index, "error_code": error} for part in topic.partitions]
            topics.append({"name": topic.name, "partitions": parts})
        return {"topics": topics}


@asynccontextmanager
async def scripted(zookeeper: str, *, node_id: int = 0, registered: bool = True) -> AsyncIterator[ScriptedCoordinator]:
    """A listening broker, registered in ZooKeeper if `registered`."""
    coordinator = ScriptedCoordinator(node_id)
    await coordinator.server.start()
    try:
        async with opened(zookeeper) as session:
            if registered:
                await session.create(paths.broker(node_id), broker_node(coordinator.address, 0), makepath=True)
            yield coordinator
    finally:
        await coordinator.server.stop()
