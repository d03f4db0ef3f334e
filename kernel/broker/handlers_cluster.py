"""DescribeCluster, DescribeTopicPartitions, ElectLeaders: the cluster as admin clients see it.

Source: KafkaApis.handleDescribeCluster and DescribeTopicPartitionsRequestHandler (KIP-966) of Kafka 4.1; elections by
KafkaController.electLeaders of 3.9. Preferred leaders are elected by the controller, which is asked through the node
that Kafka's own tool writes (`/admin/preferred_replica_election`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel.broker.cluster_view import topic_name_problem
from kernel.broker.handlers_metadata import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS, described_partition
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kernel.broker.cluster_view import ClusterSnapshot, ClusterView
    from kernel.broker.handlers import HandlerTable, RequestContext
    from kernel.zookeeper.session import ZooKeeperSession

#: DescribeClusterRequest: who is to be described.
BROKERS, CONTROLLERS = 1, 2
#: max.request.partition.size.limit: what DescribeTopicPartitions answers at once, at most.
PARTITIONS_MAX = 2_000


class ClusterHandlers:
    """Answers from the snapshot; elections wait for it to change."""

    def __init__(self, cluster: ClusterView, session: Callable[[], ZooKeeperSession]) -> None:
        self._cluster = cluster
        self._session = session

    def table(self) -> HandlerTable:
        return {
            Api.DescribeCluster: self.describe_cluster,
            Api.DescribeTopicPartitions: self.describe_partitions,
        }

    def describe_cluster(self, _context: RequestContext, body: Any) -> Mapping[str, Any]:
        endpoints = getattr(body, "endpoint_type", BROKERS)
        if endpoints != BROKERS:
            wrong = ErrorCode.mismatched_endpoint_type
            message = "this is a broker, which does not describe controllers"
            if endpoints != CONTROLLERS:
                wrong, message = ErrorCode.unsupported_endpoint_type, f"there are no endpoints of type {endpoints}"
            return {
                "error_code": wrong,
                "error_message": message,
                "endpoint_type": BROKERS,
                "controller_id": -1,
                "cluster_authorized_operations": NOT_ASKED,
            }
        snapshot = self._cluster.snapshot
        return {
            "error_code": ErrorCode.none,
            "endpoint_type": BROKERS,
            "cluster_id": snapshot.cluster_id,
            "controller_id": snapshot.controller_id,
            "brokers": [
                {"broker_id": broker.node_id, "host": broker.host, "port": broker.port}
                for broker in snapshot.brokers.values()
            ],
            "cluster_authorized_operations": (
                CLUSTER_OPERATIONS if body.include_cluster_authorized_operations else NOT_ASKED
            ),
        }

    # -- DescribeTopicPartitions -------------------------------------------------------------------------------------

    def describe_partitions(self, _context: RequestContext, body: Any) -> Mapping[str, Any]:
        """Topics by name, up to a number of partitions; the cursor says where the next answer is to begin."""
        snapshot = self._cluster.snapshot
        named = {topic.name for topic in body.topics}
        begin = ("", 0) if body.cursor is None else (body.cursor.topic_name, body.cursor.partition_index)
        if begin[1] < 0 or (named and begin[0] and begin[0] not in named):
            refused = {"error_code": ErrorCode.invalid_request, "topic_authorized_operations": NOT_ASKED}
            return {"topics": [{"name": name, **refused} for name in sorted(named)], "next_cursor": None}
        names = [name for name in sorted(named or snapshot.topics) if name >= begin[0]]
        left = max(min(body.response_partition_limit, PARTITIONS_MAX), 1)
        topics: list[dict[str, Any]] = []
        for name in names:
            if left == 0:
                return {"topics": topics, "next_cursor": {"topic_name": name, "partition_index": 0}}
            first = begin[1] if name == begin[0] else 0
            answer = _described(snapshot, name, first, left)
            topics.append(answer)
            left -= len(answer["partitions"])
            following = first + len(answer["partitions"])
            if name in snapshot.topics and following < len(snapshot.topics[name].partitions):
                return {"topics": topics, "next_cursor": {"topic_name": name, "partition_index": following}}
        return {"topics": topics, "next_cursor": None}


def _described(snapshot: ClusterSnapshot, name: str, first: int, number: int) -> dict[str, Any]:
    answer = {"name": name, "topic_authorized_operations": TOPIC_OPERATIONS, "partitions": []}
    topic = snapshot.topics.get(name)
    if topic is None:
        invalid = topic_name_problem(name) is not None
        code = ErrorCode.invalid_topic_exception if invalid else ErrorCode.unknown_topic_or_partition
        return {**answer, "error_code": code}
    return {
        **answer,
        "error_code": ErrorCode.none,
        "topic_id": topic.topic_id,
        "is_internal": topic.internal,
        "partitions": [
            {**described_partition(index, view, snapshot), "eligible_leader_replicas": (), "last_known_elr": ()}
            for index, view in list(enumerate(topic.partitions))[first : first + number]
        ],
    }
