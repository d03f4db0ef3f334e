"""DescribeCluster, DescribeTopicPartitions and ElectLeaders.

Source: KafkaApis.handleDescribeCluster and DescribeTopicPartitionsRequestHandler (KIP-966) of Kafka 4.1; elections by
KafkaController.electLeaders of 3.9. The controller elects preferred leaders on request, through the node that Kafka's
own tool writes (`/admin/preferred_replica_election`).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from kernel.broker.apis.metadata import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS, described_partition
from kernel.broker.cluster.znodes import preferred_election_node
from kernel.topic_names import topic_name_problem
from kernel.values import TopicPartition
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NodeExists, ZooKeeperError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kernel.broker.cluster.cluster_view import ClusterSnapshot
    from kernel.broker.cluster.leadership import Cluster
    from kernel.broker.server.handlers import HandlerTable, RequestContext
    from kernel.zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)

#: DescribeClusterRequest: the kind of endpoints.
BROKERS, CONTROLLERS = 1, 2
#: ElectLeadersRequest: the type of election.
PREFERRED, UNCLEAN = 0, 1
Refusal = tuple[ErrorCode, str | None]
NOT_REFUSED: Refusal = (ErrorCode.none, None)
#: max.request.partition.size.limit: the most partitions in one DescribeTopicPartitions response.
PARTITIONS_MAX = 2_000


class ClusterHandlers:
    """Answers from the snapshot; elections wait for it to change."""

    def __init__(self, cluster: Cluster, session: Callable[[], ZooKeeperSession]) -> None:
        self._cluster = cluster
        self._session = session

    def table(self) -> HandlerTable:
        return {
            Api.DescribeCluster: self.describe_cluster,
            Api.DescribeTopicPartitions: self.describe_partitions,
            Api.ElectLeaders: self.elect,
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
        """Topics by name, up to a number of partitions; the cursor says where the next response begins."""
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

    # -- ElectLeaders ------------------------------------------------------------------------------------------------

    async def elect(self, _context: RequestContext, body: Any) -> Mapping[str, Any]:
        """Elect the first replicas as leaders, and wait up to the request's timeout (KIP-183)."""
        kind = getattr(body, "election_type", PREFERRED)
        snapshot = self._cluster.snapshot
        if body.topic_partitions is None:
            wanted = [TopicPartition(name, n) for name, t in snapshot.topics.items() for n in range(len(t.partitions))]
        else:
            wanted = [TopicPartition(one.topic, number) for one in body.topic_partitions for number in one.partitions]
        refused = {tp: refusal for tp in wanted if (refusal := _not_elected(snapshot, tp, kind)) is not None}
        left = [tp for tp in dict.fromkeys(wanted) if tp not in refused]
        if left:
            refused |= await self._elected(left, body.timeout.total_seconds())
        if body.topic_partitions is None:  # a request for all partitions names only those that needed an election
            wanted = [tp for tp in wanted if refused.get(tp, NOT_REFUSED)[0] is not ErrorCode.election_not_needed]
        topics: dict[str, list[dict[str, Any]]] = {}
        for tp in dict.fromkeys(wanted):
            code, message = refused.get(tp, NOT_REFUSED)
            row = {"partition_id": tp.partition, "error_code": code, "error_message": message}
            topics.setdefault(tp.topic, []).append(row)
        return {
            "error_code": ErrorCode.none if kind in (PREFERRED, UNCLEAN) else ErrorCode.invalid_request,
            "replica_election_results": [{"topic": name, "partition_result": rows} for name, rows in topics.items()],
        }

    async def _elected(self, wanted: Sequence[TopicPartition], timeout_s: float) -> dict[TopicPartition, Refusal]:
        """The partitions whose first replica does not lead within the timeout."""

        def led(snapshot: ClusterSnapshot, tp: TopicPartition) -> bool:
            partition = snapshot.partition(tp)
            return partition is None or partition.leader == partition.replicas[0]

        try:
            async with asyncio.timeout(max(timeout_s, 0)):
                await self._ask_controller(wanted)
                await self._cluster.until(
                    lambda snapshot: all(led(snapshot, tp) for tp in wanted), round(timeout_s * 1000)
                )
        except TimeoutError:
            log.info("elections did not finish within %g s", timeout_s)
        except ZooKeeperError as error:
            log.warning("cannot request elections: %s", error)
        late = ErrorCode.request_timed_out, "the election did not finish in time"
        return {tp: late for tp in wanted if not led(self._cluster.snapshot, tp)}

    async def _ask_controller(self, wanted: Sequence[TopicPartition]) -> None:
        """Write the request, after any earlier one is done: the controller takes one at a time."""
        node = preferred_election_node(wanted)
        while True:
            try:
                await self._session().create(paths.PREFERRED_ELECTION, node, makepath=True, step="elections")
            except NodeExists:
                await self._until_request_is_done()
            else:
                return

    async def _until_request_is_done(self) -> None:
        gone = asyncio.Event()
        if await self._session().exists(paths.PREFERRED_ELECTION, watch=lambda _: gone.set()) is not None:
            await gone.wait()


def _not_elected(snapshot: ClusterSnapshot, tp: TopicPartition, kind: int) -> Refusal | None:
    """Why no election is needed or possible; None if there will be one."""
    partition = snapshot.partition(tp)
    if kind not in (PREFERRED, UNCLEAN):
        return ErrorCode.invalid_request, f"there is no election of type {kind}"
    if partition is None:
        return ErrorCode.unknown_topic_or_partition, f"there is no partition {tp}"
    if kind == UNCLEAN:
        if partition.leader in snapshot.brokers:
            return ErrorCode.election_not_needed, f"{tp} has a leader"
        return ErrorCode.eligible_leaders_not_available, f"no replica of {tp} is running"
    first = partition.replicas[0]
    if partition.leader == first:
        return ErrorCode.election_not_needed, f"{tp} is led by its first replica, broker {first}"
    if first not in snapshot.brokers:
        return ErrorCode.preferred_leader_not_available, f"broker {first}, the first replica of {tp}, is not running"
    return None


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
