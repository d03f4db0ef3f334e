"""A model member's commits: what `zkconsumer.offsets.commits` and `commit_fences` do, as a program."""

from __future__ import annotations

from collections.abc import Generator, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel.errors import RebalanceLabError
from kernel.zookeeper import paths
from tests.support.model_zookeeper import Call, Reply
from zkconsumer.znodes.payloads import offset_payload

if TYPE_CHECKING:
    from kernel.values import TopicPartition

#: Kafka's own store of offsets, where a group keeps them there.
Stored = MutableMapping["TopicPartition", int]
Commit = Generator[Call, Reply, Any]

#: What a fence refuses with.
REFUSALS = ("SessionExpired", "BadVersion")


class CommitFailed(RebalanceLabError):
    """A commit was answered with an error that is no fence's."""


@dataclass(eq=False, slots=True)
class Position:
    """A partition of the registry: what the next commit writes, and what the last one wrote."""

    partition: TopicPartition
    thread: str
    consumed: int
    checkpointed: int
    adopted_in: int  #: the session that stood when the registry got it
    session: int  #: the one in which it was claimed, where the claim says so
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Commits:
    """Where one member's commits go, and what they must pass."""

    group: str
    stores: frozenset[str]
    fence: str
    stored: Stored

    def commit(self, position: Position) -> Generator[Call, Reply, str]:
        """Write one position if it has changed; what a fence refused it with, or ''. Raises `CommitFailed`."""
        offset = position.consumed
        if "kafka" in self.stores and offset >= 0:
            self.stored[position.partition] = offset
        if "zookeeper" not in self.stores or offset == position.checkpointed:
            return ""
        path = paths.offset(self.group, position.partition.topic, position.partition.partition)
        write = self._in_epoch if self.fence == "epoch" else self._update
        reply = yield from write(position, path, offset_payload(offset))
        if not reply.error:
            position.checkpointed = offset
        elif reply.error not in REFUSALS or self.fence == "none":
            raise CommitFailed(f"{path}: {reply.error}")
        return reply.error

    def _update(self, position: Position, path: str, data: bytes) -> Commit:
        only_in = position.session if self.fence == "session" else 0
        reply = yield Call("setData", path, data, only_in=only_in)
        if reply.error == "NoNode":
            yield from ensure_path(paths.parent(path))
            reply = yield Call("create", path, data, only_in=only_in)
            if reply.error == "NodeExists":
                reply = yield Call("setData", path, data, only_in=only_in)
        return reply

    def _in_epoch(self, position: Position, path: str, data: bytes) -> Commit:
        named = position.partition
        epoch = paths.epoch(self.group, named.topic, named.partition)
        assert position.epoch is not None
        check = Call("check", epoch, version=position.epoch)

        def write(op: str) -> Commit:
            reply = yield Call("multi", epoch, parts=(check, Call(op, path, data)))
            return Reply(error="BadVersion") if (reply.error, reply.part) == ("NoNode", 0) else reply

        reply = yield from write("setData")
        if reply.error == "NoNode":
            yield from ensure_path(paths.parent(path))
            reply = yield from write("create")
            if reply.error == "NodeExists":
                reply = yield from write("setData")
        return reply


def ensure_path(path: str) -> Commit:
    """A persistent node and its parents, where they miss."""
    reply = yield Call("create", path)
    if reply.error == "NoNode":
        yield from ensure_path(paths.parent(path))
        yield Call("create", path)
