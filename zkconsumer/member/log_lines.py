"""A member's log lines, in the words of ZookeeperConsumerConnector of 0.8.2.2, which printed them. Pure.

Attempts count from 0 there, and from 1 in traces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.zookeeper import paths
from zkconsumer.rebalance.effects import (
    AdoptClaims,
    Ask,
    ClearStreams,
    CommitOffsets,
    Emit,
    Operation,
    Refusal,
    Request,
    Response,
)

if TYPE_CHECKING:
    from zkconsumer.rebalance.effects import Effect

CONNECTING = "%sConnecting to zookeeper instance at %s"
AUTO_COMMITTER = "%sstarting auto committer every %d ms"
REGISTERING = "%sbegin registering consumer %s in ZK"
REGISTERED = "%send registering consumer %s in ZK"
EXECUTOR_STARTED = "%sstarting watcher executor thread for consumer %s"
SHUTTING_DOWN = "%sZKConsumerConnector shutting down"
SHUT_DOWN = "%sZKConsumerConnector shutdown completed in %d ms"


def prefix(consumer: str) -> str:
    """What stands in front of a consumer's lines."""
    return f"[{consumer}], "


def before(effect: Effect, consumer: str) -> list[str]:
    """The lines of an effect of a rebalance that is about to be performed."""
    return [f"{prefix(consumer)}{line}" for line in _of_connector(effect, consumer)] + _of_assignor(effect)


def answered(request: Request, response: Response, consumer: str) -> str | None:
    """The line for the answer to a claim of a partition; None for any other."""
    claimed = paths.parse_owner(request.path)
    if request.operation is not Operation.CREATE or claimed is None:
        return None
    if response.refusal is Refusal.NODE_EXISTS:
        return f"{prefix(consumer)}waiting for the partition ownership to be deleted: {claimed.partition}"
    if response.refusal is not None:
        return None
    thread = request.data.decode("utf-8", "replace")
    return f"{prefix(consumer)}{thread} successfully owned partition {claimed.partition} for topic {claimed.topic}"


def _of_connector(effect: Effect, consumer: str) -> list[str]:
    match effect:
        case Emit(kind="attempt_started"):
            return [f"begin rebalancing consumer {consumer} try #{_number(effect)}"]
        case Emit(kind="attempt_ended"):
            ended = f"end rebalancing consumer {consumer} try #{_number(effect)}"
            return [ended] if effect.fields["outcome"] == "ok" else [ended, _FAILED]
        case Emit(kind="phase_entered") if effect.fields["phase"] == "release":
            return ["Releasing partition ownership"]
        case ClearStreams():
            return [
                "Cleared all relevant queues for this fetcher",
                "Cleared the data chunks in all the consumer message iterators",
            ]
        case CommitOffsets():
            return ["Committing all offsets after clearing the fetcher queues"]
        case AdoptClaims():
            selected = ",".join(
                f"{claim.topic}:{claim.partition}: fetched offset = {claim.offset}: consumed offset = {claim.offset}"
                for claim in effect.claims
            )
            return [f"Consumer {consumer} selected partitions : {selected}"]
    return []


_FAILED = "Rebalancing attempt failed. Clearing the cache before the next rebalancing operation is triggered"


def _of_assignor(effect: Effect) -> list[str]:
    """What the partition assignor says, without a prefix."""
    if not isinstance(effect, Ask):
        return []
    claims = [
        (request.data.decode("utf-8", "replace"), claimed.partition)
        for request in effect.requests
        if request.operation is Operation.CREATE and (claimed := paths.parse_owner(request.path)) is not None
    ]
    return [f"{thread} attempting to claim partition {partition}" for thread, partition in claims]


def _number(effect: Emit) -> int:
    attempt = effect.fields["attempt"]
    assert isinstance(attempt, int)
    return attempt - 1
