"""The requests of a `server` member as typed calls. Each raises what `BrokerConnection.call` raises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.protocol.server.commands import AwaitCommand, CommitOwned, OwnedOffset
from coordinator.protocol.server.errors import ServerError
from coordinator.protocol.server.messages import await_body, commit_body, read_command_answer, read_commit_answer
from kernel.values import TopicPartition
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.membership.effects import Identity
    from coordinator.membership.server import effects
    from coordinator.protocol.server.commands import CommandAnswer
    from kernel.client.connection import BrokerConnection


def error_name(error: ServerError) -> str:
    """Return the name that the state machine and the trace use; '' for success."""
    return "" if error is ServerError.NONE else error.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCalls:
    """One group's requests; each takes the connection, since the coordinator can move.

    `patience_ms` is how long a response may take beyond `wait_ms`.
    """

    group: str
    strategy: str
    wait_ms: int
    patience_ms: int
    request_timeout_ms: int

    async def await_command(
        self, connection: BrokerConnection, effect: effects.SendAwaitCommand, topics: tuple[str, ...]
    ) -> CommandAnswer:
        """Ask for a command. Also raises `ProtocolError` for a malformed response."""
        body = await_body(
            AwaitCommand(
                group_id=self.group,
                member_id=effect.member_id,
                generation=effect.generation,
                stopped=effect.stopped,
                strategy=self.strategy,
                topics=topics,
                wait_ms=self.wait_ms,
            )
        )
        timeout_ms = self.wait_ms + self.patience_ms
        return read_command_answer(
            await connection.call(Api.AwaitCommand, body, timeout_ms=timeout_ms, group=self.group)
        )

    async def commit(
        self,
        connection: BrokerConnection,
        identity: Identity,
        offsets: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, str]:
        """Commit; returns {partition: error}."""
        body = commit_body(
            CommitOwned(
                group_id=self.group,
                member_id=identity.member_id,
                generation=identity.generation,
                offsets=tuple(OwnedOffset(tp.topic, tp.partition, offset) for tp, offset in sorted(offsets.items())),
            )
        )
        answer = read_commit_answer(
            await connection.call(Api.CommitOwned, body, timeout_ms=self.request_timeout_ms, group=self.group)
        )
        errors = {TopicPartition(part.topic, part.partition): error_name(part.error) for part in answer.partitions}
        return {tp: errors.get(tp, ServerError.UNKNOWN_SERVER_ERROR.name) for tp in offsets}
