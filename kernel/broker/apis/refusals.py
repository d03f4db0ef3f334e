"""Refusals that several handlers share: of one resource of a request, and of a partition that is not led here."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kernel.broker.cluster.cluster_view import NO_LEADER
from kernel.errors import RebalanceLabError, Retriable
from kernel.wire.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kernel.broker.cluster.cluster_view import ClusterSnapshot
    from kernel.broker.cluster.leadership import Cluster
    from kernel.broker.storage.logs import ReadableLog
    from kernel.values import TopicPartition


class Refused(RebalanceLabError):
    """One resource of a request is refused with `code`."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def code_of(
    error: RebalanceLabError, others: Mapping[type[RebalanceLabError], ErrorCode] = MappingProxyType({})
) -> ErrorCode:
    """The code for a refusal, for an error of ZooKeeper, or for one of `others`."""
    if isinstance(error, Refused):
        return error.code
    if isinstance(error, Retriable):  # ZooKeeper does not answer right now
        return ErrorCode.request_timed_out
    return others.get(type(error), ErrorCode.unknown_server_error)


def not_led(snapshot: ClusterSnapshot, tp: TopicPartition) -> ErrorCode:
    """The code for a partition that this broker has no log of."""
    unknown = snapshot.partition(tp) is None
    return ErrorCode.unknown_topic_or_partition if unknown else ErrorCode.not_leader_or_follower


def wrong_epoch(led: ReadableLog, epoch: int) -> ErrorCode | None:
    """The error for a client's leader epoch; an epoch below 0 is not checked."""
    if epoch < 0 or epoch == led.leader_epoch:
        return None
    return ErrorCode.fenced_leader_epoch if epoch < led.leader_epoch else ErrorCode.unknown_leader_epoch


def current_leader(cluster: Cluster, tp: TopicPartition) -> dict[str, Any]:
    """The field of a refusal that names the broker that leads instead (KIP-951); empty if there is none."""
    partition = cluster.snapshot.partition(tp)
    if partition is None or partition.leader in (NO_LEADER, cluster.node_id):
        return {}
    return {"current_leader": {"leader_id": partition.leader, "leader_epoch": partition.leader_epoch}}


def endpoints(snapshot: ClusterSnapshot, answers: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The addresses of the leaders that these answers name."""
    leaders = {answer["current_leader"]["leader_id"] for answer in answers if "current_leader" in answer}
    brokers = snapshot.brokers
    return [
        {"node_id": node_id, "host": brokers[node_id].host, "port": brokers[node_id].port}
        for node_id in sorted(leaders)
        if node_id in brokers
    ]
