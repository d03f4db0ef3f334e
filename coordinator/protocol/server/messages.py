"""Convert AwaitCommand and CommitOwned between values and `kernel.wire` bodies; docs/server-protocol.md has the bytes.

Each side builds the bodies that it sends (`*_body`) and reads those that it receives (`read_*`). Reading checks all
limits: `MalformedFrame` closes the sender's connection, as for any malformed frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator.protocol.server.commands import (
    NO_GENERATION,
    AwaitCommand,
    Command,
    CommandAnswer,
    CommitOwned,
    CommittedPartition,
    OwnedCommitAnswer,
    OwnedOffset,
    StartedPartition,
)
from coordinator.protocol.server.errors import ServerError
from coordinator.protocol.server.member_znode import TOPICS_MAX
from kernel.errors import MalformedFrame
from kernel.topic_names import LENGTH_MAX
from kernel.values import NO_OFFSET

if TYPE_CHECKING:
    from collections.abc import Sequence

Body = dict[str, Any]

#: Length of a group id, a member id or a strategy's name, in bytes.
ID_BYTES_MAX = 1_024
#: Partitions in one command or commit.
PARTITIONS_MAX = 200_000
#: How long a member may let an AwaitCommand wait.
WAIT_MS_MAX = 300_000


def await_body(asked: AwaitCommand) -> Body:
    return {
        "group_id": asked.group_id,
        "member_id": asked.member_id,
        "generation": asked.generation,
        "stopped": asked.stopped,
        "strategy": asked.strategy,
        "topics": asked.topics,
        "wait_ms": asked.wait_ms,
    }


def read_await(body: Any) -> AwaitCommand:
    """Raises `MalformedFrame`."""
    _check_number("wait_ms", body.wait_ms, 0, WAIT_MS_MAX)
    _check_number("generation", body.generation, NO_GENERATION)
    _check_number("stopped", body.stopped, NO_GENERATION)
    _check_length("topics", body.topics, TOPICS_MAX)
    if len(body.strategy.encode()) > ID_BYTES_MAX:
        raise MalformedFrame(f"a strategy's name of more than {ID_BYTES_MAX} bytes")
    return AwaitCommand(
        group_id=_checked_id("group", body.group_id),
        member_id=_checked_id("member", body.member_id),
        generation=body.generation,
        stopped=body.stopped,
        strategy=body.strategy,
        topics=tuple(_checked_topic(topic) for topic in body.topics),
        wait_ms=body.wait_ms,
    )


def command_answer_body(answer: CommandAnswer) -> Body:
    return {
        "error_code": int(answer.error),
        "command": int(answer.command),
        "generation": answer.generation,
        "partitions": [part._asdict() for part in answer.partitions],
    }


def read_command_answer(body: Any) -> CommandAnswer:
    """Raises `MalformedFrame`, also for a command or an error that is not in the protocol."""
    _check_length("partitions", body.partitions, PARTITIONS_MAX)
    try:
        command = Command(body.command)
    except ValueError:
        raise MalformedFrame(f"unknown command {body.command}: expected 0 (nothing), 1 (stop) or 2 (start)") from None
    if command is not Command.NOTHING:
        _check_number("generation of a command", body.generation, 0)
    return CommandAnswer(
        error=_error(body.error_code),
        command=command,
        generation=body.generation,
        partitions=tuple(
            StartedPartition(*_checked_partition(part), _check_number("offset", part.offset, NO_OFFSET))
            for part in body.partitions
        ),
    )


def commit_body(commit: CommitOwned) -> Body:
    return {
        "group_id": commit.group_id,
        "member_id": commit.member_id,
        "generation": commit.generation,
        "offsets": [owned._asdict() for owned in commit.offsets],
    }


def read_commit(body: Any) -> CommitOwned:
    """Raises `MalformedFrame`. Null metadata counts as empty, as in OffsetCommit."""
    _check_number("generation", body.generation, NO_GENERATION)
    _check_length("offsets", body.offsets, PARTITIONS_MAX)
    offsets = tuple(
        OwnedOffset(*_checked_partition(owned), _check_number("offset", owned.offset, 0), owned.metadata or "")
        for owned in body.offsets
    )
    if len({(owned.topic, owned.partition) for owned in offsets}) < len(offsets):
        raise MalformedFrame("one commit names a partition twice")
    return CommitOwned(
        group_id=_checked_id("group", body.group_id),
        member_id=_checked_id("member", body.member_id),
        generation=body.generation,
        offsets=offsets,
    )


def commit_answer_body(answer: OwnedCommitAnswer) -> Body:
    return {
        "partitions": [
            {"topic": part.topic, "partition": part.partition, "error_code": int(part.error)}
            for part in answer.partitions
        ]
    }


def read_commit_answer(body: Any) -> OwnedCommitAnswer:
    """Raises `MalformedFrame`."""
    _check_length("partitions", body.partitions, PARTITIONS_MAX)
    return OwnedCommitAnswer(
        partitions=tuple(
            CommittedPartition(*_checked_partition(part), _error(part.error_code)) for part in body.partitions
        )
    )


# -- bounds -------------------------------------------------------------------------------------------------------


def _error(code: int) -> ServerError:
    try:
        return ServerError(code)
    except ValueError:
        raise MalformedFrame(f"unknown error code {code} in the server design's protocol") from None


def id_problem(text: str) -> str | None:
    """Return why an id cannot name a znode (by the rules of DataTree and PathUtils), or None."""
    for char in text:
        if char == "/" or not _may_be_in_a_path(char):
            return f"has {char!r}, which is not allowed in a znode name"
    if not text or text in {".", ".."} or len(text.encode()) > ID_BYTES_MAX:
        return f"must have 1 to {ID_BYTES_MAX} bytes and be neither '.' nor '..'"
    return None


def _checked_id(whose: str, text: str) -> str:
    if problem := id_problem(text):
        raise MalformedFrame(f"a {whose} id {problem}")
    return text


def _may_be_in_a_path(char: str) -> bool:
    return " " <= char < "\x7f" or "\x9f" < char < "\ud800" or "\uf8ff" < char < "\ufff0"


def _checked_topic(topic: str) -> str:
    if not 0 < len(topic) <= LENGTH_MAX:
        raise MalformedFrame(f"a topic name must have 1 to {LENGTH_MAX} characters")
    return topic


def _checked_partition(part: Any) -> tuple[str, int]:
    return _checked_topic(part.topic), _check_number("partition", part.partition, 0)


def _check_number(what: str, number: int, lowest: int, highest: int | None = None) -> int:
    if number < lowest or (highest is not None and number > highest):
        limit = "more" if highest is None else highest
        raise MalformedFrame(f"{what} is {number}; {lowest} to {limit} are allowed")
    return number


def _check_length(what: str, elements: Sequence[object], longest: int) -> None:
    if len(elements) > longest:
        raise MalformedFrame(f"{len(elements)} {what} in one message; at most {longest} are allowed")
