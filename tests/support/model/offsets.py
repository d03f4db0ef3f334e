"""A model member's commits, as by `zkconsumer.offsets.commits` and `fences`, as a program."""

from __future__ import annotations

from collections.abc import Generator, MutableMapping
from dataclasses import dataclass
from typing import Any

from kernel.errors import RebalanceLabError
from kernel.values import TopicPartition
from kernel.zookeeper import paths
from kernel.zookeeper.offset_text import offset_text
from tests.support.model.zookeeper import Call, Reply

#: Offsets kept in Kafka.
Stored = MutableMapping["TopicPartition", int]
Commit = Generator[Call, Reply, Any]

#: The errors of a fence.
REFUSALS = ("SessionExpired", "BadVersion")


class CommitFailed(RebalanceLabError):
    """A commit failed with an error other than a fence's."""


@dataclass(eq=False, slots=True)
class Position:
    """A partition of the registry: the offset that the next commit writes, and the last one written."""

    partition: TopicPartition
    thread: str
    consumed: int
    checkpointed: int
    adopted_in: int  #: the session when the registry adopted it
    session: int  #: the session of the claim, if known
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Commits:
    """Where one member's commits go, and their fence."""

    group: str
    stores: frozenset[str]
    fence: str
    stored: Stored

    def commit(self, position: Position) -> Generator[Call, Reply, str]:
        """Write one position if it has changed. Returns a fence's error, or ''. Raises `CommitFailed`."""
        offset = position.consumed
        if "kafka" in self.stores and offset >= 0:
            self.stored[position.partition] = offset
        if "zookeeper" not in self.stores or offset == position.checkpointed:
            return ""
        path = paths.offset(self.group, position.partition.topic, position.partition.partition)
        write = self._in_epoch if self.fence == "epoch" else self._update
        reply = yield from write(position, path, offset_text(offset))
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
    """Create a persistent node and its parents, if missing."""
    reply = yield Call("create", path)
    if reply.error == "NoNode":
        yield from ensure_path(paths.parent(path))
        yield Call("create", path)
