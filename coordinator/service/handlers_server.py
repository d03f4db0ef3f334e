"""The handlers of the server design's two APIs: read, find the partition, ask its machine, write the answer."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from coordinator.groups.answers import CommitAnswer
from coordinator.groups.errors import Error
from coordinator.groups.server.requests import Await, OwnedCommit
from coordinator.protocol.server.commands import CommandAnswer, CommittedPartition, OwnedCommitAnswer
from coordinator.protocol.server.errors import ServerError
from coordinator.protocol.server.messages import command_answer_body, commit_answer_body, read_await, read_commit

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from coordinator.service.coordinator import Coordinator
    from kernel.broker.server.handlers import RequestContext

Plain = dict[str, Any]


class ServerHandlers:
    """Raise `MalformedFrame` for values out of bounds, which closes the connection."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._partitions = coordinator.partitions
        self._topics = coordinator.topics

    def await_command(self, context: RequestContext, body: Any) -> Plain | Awaitable[Plain]:
        asked = read_await(body)
        at = self._partitions.at(asked.group_id)
        if isinstance(at, Error):
            return command_answer_body(CommandAnswer(error=ServerError(at)))
        return at.ask(
            lambda token: Await(token=token, asked=asked, client_id=context.client_id, client_host=context.host),
            command_answer_body,
        )

    def commit_owned(self, context: RequestContext, body: Any) -> Plain | Awaitable[Plain]:
        commit = read_commit(body)
        known = tuple(o for o in commit.offsets if self._topics.has_partition(o.topic, o.partition))
        at = self._partitions.at(commit.group_id)
        otherwise = ServerError(at) if isinstance(at, Error) else ServerError.UNKNOWN_TOPIC_OR_PARTITION

        def answer(given: CommitAnswer) -> Plain:
            errors = {(p.topic, p.partition): ServerError(p.error) for p in given.partitions}
            rows = ((o.topic, o.partition) for o in commit.offsets)
            return commit_answer_body(
                OwnedCommitAnswer(
                    partitions=tuple(CommittedPartition(*row, errors.get(row, otherwise)) for row in rows)
                )
            )

        if isinstance(at, Error) or not known:
            return answer(CommitAnswer(()))
        return at.ask(lambda token: OwnedCommit(token=token, commit=dataclasses.replace(commit, offsets=known)), answer)
