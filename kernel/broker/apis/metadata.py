"""Metadata: brokers, topics and leaders; and automatic creation of topics.

Source: KafkaApis.handleTopicMetadataRequest and AutoTopicCreationManager of Kafka 4.1. The request does
not wait for a topic created on demand: the first response is UNKNOWN_TOPIC_OR_PARTITION, and clients retry. (Version 0
gets LEADER_NOT_AVAILABLE, as from brokers before 4.0.)

Version 0, which the original consumers of 0.8 to 1.1 send, names only brokers in the response's list: those clients
look up every replica there and treat the whole response as broken when one is missing
(MetadataCache.getPartitionMetadata, errorUnavailableEndpoints).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from kernel.broker.cluster.cluster_view import NO_LEADER, InvalidReplicationFactor, TopicExists, TopicView
from kernel.broker.server.handlers import Encoded, Rows, in_rows
from kernel.topic_names import topic_name_problem
from kernel.wire.codec import encode_response
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from kernel.zookeeper.errors import ZooKeeperError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kernel.broker.cluster.cluster_view import ClusterSnapshot, PartitionView
    from kernel.broker.cluster.leadership import Cluster
    from kernel.broker.cluster.topic_creation import DefaultTopics
    from kernel.broker.server.handlers import HandlerTable, RequestContext

log = logging.getLogger(__name__)

#: Metadata's response: immediate, or topic by topic if there are many.
Described = Mapping[str, Any] | Rows

#: Responses that are kept.
_ENCODED_MAX = 16

#: The operations allowed without an authorizer, as bits of AclOperation: on a topic, on the cluster.
TOPIC_OPERATIONS, CLUSTER_OPERATIONS, NOT_ASKED = 3576, 8096, -(2**31)


class MetadataHandlers:
    """Responds from the snapshot; waits only to create a topic."""

    def __init__(self, cluster: Cluster, topics: DefaultTopics, *, auto_create: bool) -> None:
        self._cluster = cluster
        self._topics = topics
        self._auto_create = auto_create
        #: By version and request, of one snapshot.
        self._encoded: dict[tuple[int, Any], Encoded] = {}
        self._encoded_of: ClusterSnapshot | None = None

    def table(self) -> HandlerTable:
        return {Api.Metadata: self.metadata}

    def metadata(self, context: RequestContext, body: Any) -> Any:
        """Clients that ask for the same get the same bytes until the snapshot changes."""
        snapshot, asked = self._cluster.snapshot, (context.version, body)
        if self._encoded_of is not snapshot:
            self._encoded_of, self._encoded = snapshot, {}
        known = self._encoded.get(asked)
        if known is not None:
            return known
        answer = self._metadata(context, body)
        if isinstance(answer, Awaitable):
            return answer if context.version > 0 else _of_live_brokers_later(answer)
        if context.version == 0:
            answer = _of_live_brokers(answer)
        if isinstance(answer, Rows) or len(self._encoded) >= _ENCODED_MAX:
            return answer
        encoded = self._encoded[asked] = Encoded(encode_response(Api.Metadata, context.version, 0, answer)[8:])
        return encoded

    def _metadata(self, context: RequestContext, body: Any) -> Described | Awaitable[Described]:
        wanted = body.topics
        if wanted is None or (context.version == 0 and not wanted):
            snapshot = self._cluster.snapshot
            return self._answer(body, snapshot, (_described(topic, snapshot) for topic in snapshot.topics.values()))
        if any(_asks_for_nothing(topic, context.version) for topic in wanted):
            return _refused(wanted)
        known = self._cluster.snapshot.topics
        may_create = self._auto_create and getattr(body, "allow_auto_topic_creation", True)
        absent = [
            topic.name
            for topic in wanted
            if _id_of(topic) is None and topic.name not in known and topic_name_problem(topic.name) is None
        ]
        if absent and may_create:
            return self._create_and_answer(context, list(dict.fromkeys(absent)), body)
        return self._answer_wanted(body, {})

    async def _create_and_answer(self, context: RequestContext, names: list[str], body: Any) -> Described:
        failures: dict[str, ErrorCode] = {}
        for name in names:
            try:
                await self._topics.begin(name)
            except TopicExists:
                continue
            except InvalidReplicationFactor:
                failures[name] = ErrorCode.invalid_replication_factor
            except ZooKeeperError:
                log.warning("cannot create topic %s: ZooKeeper does not answer", name)
        coming = ErrorCode.unknown_topic_or_partition if context.version > 0 else ErrorCode.leader_not_available
        return self._answer_wanted(body, {**dict.fromkeys(names, coming), **failures})

    def _answer_wanted(self, body: Any, absent: Mapping[str, ErrorCode]) -> Described:
        """Each topic once, however often it is named; a new one may not be visible yet."""
        snapshot = self._cluster.snapshot
        asked = {(topic.name if _id_of(topic) is None else None, _id_of(topic)): topic for topic in body.topics}
        return self._answer(body, snapshot, (_wanted(topic, snapshot, absent) for topic in asked.values()))

    def _answer(self, body: Any, snapshot: ClusterSnapshot, topics: Iterable[dict[str, Any]]) -> Described:
        if getattr(body, "include_topic_authorized_operations", False):
            topics = ({**topic, "topic_authorized_operations": TOPIC_OPERATIONS} for topic in topics)
        of_cluster = getattr(body, "include_cluster_authorized_operations", False)
        head = {
            "cluster_authorized_operations": CLUSTER_OPERATIONS if of_cluster else NOT_ASKED,
            "brokers": [
                {"node_id": broker.node_id, "host": broker.host, "port": broker.port}
                for broker in snapshot.brokers.values()
            ],
            "cluster_id": snapshot.cluster_id or None,
            "controller_id": snapshot.controller_id,
        }
        return in_rows(head, "topics", topics)


async def _of_live_brokers_later(answer: Awaitable[Described]) -> Described:
    return _of_live_brokers(await answer)


def _of_live_brokers(answer: Described) -> Described:
    """Version 0: live replicas only, and REPLICA_NOT_AVAILABLE if some are missing."""
    alive = {broker["node_id"] for broker in (answer.head if isinstance(answer, Rows) else answer)["brokers"]}

    def partition(given: Mapping[str, Any]) -> Mapping[str, Any]:
        named = {key: [node for node in given[key] if node in alive] for key in ("replica_nodes", "isr_nodes")}
        missing = any(len(named[key]) < len(given[key]) for key in named)
        if missing and given["error_code"] is ErrorCode.none:
            return {**given, **named, "error_code": ErrorCode.replica_not_available}
        return {**given, **named}

    def topic(given: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**given, "partitions": [partition(one) for one in given.get("partitions", ())]}

    if isinstance(answer, Rows):
        return answer._replace(rows=(topic(row) for row in answer.rows if row is not None))
    return {**answer, "topics": [topic(given) for given in answer["topics"]]}


def _id_of(topic: Any) -> Any:
    """The id in a request for a topic, which overrides its name; None if it is requested by name."""
    return getattr(topic, "topic_id", None)


def _asks_for_nothing(topic: Any, version: int) -> bool:
    """Whether a topic is requested by id in a version without ids in requests, or by neither (MetadataRequest)."""
    return (version < 12 and _id_of(topic) is not None) or (topic.name is None and _id_of(topic) is None)


def _refused(wanted: Any) -> Mapping[str, Any]:
    """Refuse the whole request (MetadataRequest.getErrorResponse)."""
    topics = [
        {"error_code": ErrorCode.invalid_request, "name": topic.name or "", "topic_id": _id_of(topic)}
        for topic in wanted
    ]
    return {"brokers": (), "controller_id": -1, "topics": topics}


def _wanted(topic: Any, snapshot: ClusterSnapshot, absent: Mapping[str, ErrorCode]) -> dict[str, Any]:
    topic_id = _id_of(topic)
    name = topic.name if topic_id is None else snapshot.topic_names.get(topic_id)
    if name is None:
        return {"error_code": ErrorCode.unknown_topic_id, "name": None, "topic_id": topic_id}
    view = snapshot.topics.get(name)
    if view is not None and name not in absent:
        return _described(view, snapshot)
    if topic_name_problem(name) is not None:
        return {"error_code": ErrorCode.invalid_topic_exception, "name": name}
    return {"error_code": absent.get(name, ErrorCode.unknown_topic_or_partition), "name": name}


def _described(topic: TopicView, snapshot: ClusterSnapshot) -> dict[str, Any]:
    return {
        "error_code": ErrorCode.none,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.internal,
        "partitions": [described_partition(index, view, snapshot) for index, view in enumerate(topic.partitions)],
    }


def described_partition(index: int, view: PartitionView, snapshot: ClusterSnapshot) -> dict[str, Any]:
    """One partition in Metadata and DescribeTopicPartitions responses."""
    # A leader that has left /brokers/ids counts as none until the controller elects another.
    leader = view.leader if view.leader in snapshot.brokers else NO_LEADER
    return {
        "error_code": ErrorCode.none if leader != NO_LEADER else ErrorCode.leader_not_available,
        "partition_index": index,
        "leader_id": leader,
        "leader_epoch": view.leader_epoch,
        "replica_nodes": view.replicas,
        "isr_nodes": view.isr,
        "offline_replicas": [replica for replica in view.replicas if replica not in snapshot.brokers],
    }
