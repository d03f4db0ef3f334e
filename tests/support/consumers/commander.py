"""A scripted coordinator of the server design, mounted on a real broker, and consumers for it.

commander = Commander()
async with running_broker(chroot, tmp_path, mount=(commander.mount,)) as broker:
    commander.says(Command.START, 5, {TopicPartition("t", 0): 3})   # the answer to the next AwaitCommand
    await commander.asked(lambda question: question.generation == 5)
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from coordinator.client.server.consumer import ServerConsumer
from coordinator.client.server.settings import ServerConsumerConfig
from coordinator.protocol.server.commands import (
    AwaitCommand,
    Command,
    CommandAnswer,
    CommitOwned,
    CommittedPartition,
    OwnedCommitAnswer,
    StartedPartition,
)
from coordinator.protocol.server.errors import ServerError
from coordinator.protocol.server.messages import command_answer_body, commit_answer_body, read_await, read_commit
from kernel.broker.server.handlers import HandlerTable, RequestContext
from kernel.broker.services import BrokerServices
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.versions import Api
from tests.support.consumers.consuming import Running, running

Answer = dict[str, Any]


class Commander:
    """`questions` and `commits` are the received requests, in order."""

    def __init__(self) -> None:
        self.questions: list[AwaitCommand] = []
        self.commits: list[CommitOwned] = []
        self.refuses: ServerError = ServerError.NONE  #: every commit
        self._commands: deque[CommandAnswer] = deque()
        self._waiting: list[asyncio.Future[Answer]] = []
        self._services: BrokerServices | None = None

    def mount(self, services: BrokerServices) -> HandlerTable:
        self._services = services
        services.on_stop(self._stop)
        return {Api.FindCoordinator: self._find, Api.AwaitCommand: self._await, Api.CommitOwned: self._commit}

    async def _stop(self) -> None:
        for waiting in self._waiting:
            waiting.cancel()

    def says(self, command: Command, generation: int = -1, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Answer the waiting AwaitCommand, or the next one."""
        partitions = tuple(StartedPartition(*tp, offset) for tp, offset in (offsets or {}).items())
        self._say(CommandAnswer(command=command, generation=generation, partitions=partitions))

    def refuses_with(self, error: ServerError) -> None:
        """Refuse the waiting AwaitCommand, or the next one."""
        self._say(CommandAnswer(error=error))

    def _say(self, commanded: CommandAnswer) -> None:
        """The last AwaitCommand is the one that waits: earlier ones were cancelled."""
        if self._waiting and not self._waiting[-1].done():
            self._waiting[-1].set_result(command_answer_body(commanded))
        else:
            self._commands.append(commanded)

    async def asked(self, wanted: Callable[[AwaitCommand], bool]) -> AwaitCommand:
        """Wait until the latest AwaitCommand is `wanted`."""

        def latest() -> bool:
            return bool(self.questions) and wanted(self.questions[-1])

        await until(latest, 60, lambda: f"another request than {self.questions[-1:]}")
        return self.questions[-1]

    def _find(self, _: RequestContext, body: Any) -> Answer:
        assert self._services is not None
        here = self._services.cluster.snapshot.brokers[self._services.node_id]
        return {"error_code": 0, "node_id": here.node_id, "host": here.host, "port": here.port}

    def _await(self, _: RequestContext, body: Any) -> Answer | asyncio.Future[Answer]:
        self.questions.append(read_await(body))
        if self._commands:
            return command_answer_body(self._commands.popleft())
        waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting = [*(other for other in self._waiting if not other.done()), waiting]
        return waiting

    def _commit(self, _: RequestContext, body: Any) -> Answer:
        commit = read_commit(body)
        self.commits.append(commit)
        partitions = tuple(CommittedPartition(o.topic, o.partition, self.refuses) for o in commit.offsets)
        return commit_answer_body(OwnedCommitAnswer(partitions=partitions))


QUICK = {
    "zookeeper.session.timeout.ms": "15000",  # outlives a busy machine's pauses
    "auto.offset.reset": "earliest",
    "fetch.max.wait.ms": "100",
    "retry.backoff.ms": "20",
}


def commanded(bootstrap: str, zookeeper: str, group: str = "g", settings: Mapping[str, str] | None = None) -> Running:
    """A consumer of the server design, not started."""
    place = {"bootstrap.servers": bootstrap, "zookeeper.connect": zookeeper, "group.id": group}
    return running(ServerConsumer, ServerConsumerConfig, {**QUICK, **place, **(settings or {})})
