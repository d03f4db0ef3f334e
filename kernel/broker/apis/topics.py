"""CreateTopics, CreatePartitions, DeleteTopics.

Source: ZkAdminManager and KafkaApis of Kafka 3.9 (error codes and their order). Any broker accepts these requests,
which Kafka forwards to the controller. As there, the request only writes to ZooKeeper and the controller does the rest;
the response waits for it up to the request's timeout.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from kernel.broker.apis.configs import topic_rows
from kernel.broker.apis.refusals import Refused, code_of
from kernel.broker.cluster.cluster_view import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidTopic,
    TopicExists,
    UnknownTopic,
)
from kernel.broker.cluster.topic_creation import all_led
from kernel.broker.cluster.znodes import MalformedNode
from kernel.broker.settings.topic_configs import problem_of_all
from kernel.topic_names import topic_name_problem
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from kernel.zookeeper.errors import ZooKeeperError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kernel.broker.cluster.cluster_view import TopicView
    from kernel.broker.cluster.config_store import ConfigStore
    from kernel.broker.cluster.leadership import Cluster
    from kernel.broker.server.handlers import HandlerTable, RequestContext
    from kernel.broker.settings.configuration import BrokerConfig
    from kernel.errors import RebalanceLabError

_CODES: dict[type[RebalanceLabError], ErrorCode] = {
    TopicExists: ErrorCode.topic_already_exists,
    UnknownTopic: ErrorCode.unknown_topic_or_partition,
    InvalidTopic: ErrorCode.invalid_topic_exception,
    InvalidPartitions: ErrorCode.invalid_partitions,
    InvalidReplicationFactor: ErrorCode.invalid_replication_factor,
    InvalidReplicaAssignment: ErrorCode.invalid_replica_assignment,
}


#: The fields of a setting in CreateTopics responses (version 5 and later).
_CREATED_ROW = ("name", "value", "read_only", "config_source", "is_sensitive")


#: ReplicationControlManager.MAX_PARTITIONS_PER_BATCH of Kafka 4.1: more are POLICY_VIOLATION for every topic.
PARTITIONS_PER_REQUEST_MAX = 10_000


_REFUSALS: tuple[type[RebalanceLabError], ...] = (Refused, ZooKeeperError, MalformedNode, *_CODES)


class TopicHandlers:
    """A request may name several topics; each gets its own result."""

    def __init__(self, cluster: Cluster, config: BrokerConfig, configs: ConfigStore) -> None:
        self._cluster = cluster
        self._config = config
        self._configs = configs

    def table(self) -> HandlerTable:
        return {
            Api.CreateTopics: self.create_topics,
            Api.CreatePartitions: self.create_partitions,
            Api.DeleteTopics: self.delete_topics,
        }

    # -- CreateTopics ------------------------------------------------------------------------------------------------

    async def create_topics(self, _context: RequestContext, body: Any) -> Mapping[str, Any]:
        twice = _named_twice(topic.name for topic in body.topics)
        timeout_ms = _ms(body.timeout)
        if (wanted := sum(self._partitions_of(topic) for topic in body.topics)) > PARTITIONS_PER_REQUEST_MAX:
            message = f"one request creates {PARTITIONS_PER_REQUEST_MAX} partitions at most, not {wanted}"
            return {"topics": [_not_created(topic.name, ErrorCode.policy_violation, message) for topic in body.topics]}
        answers = {}
        for topic in body.topics:
            if topic.name in twice:
                answers[topic.name] = _not_created(topic.name, ErrorCode.invalid_request, "the request names it twice")
                continue
            try:
                answers[topic.name] = await self._create(topic, timeout_ms, validate_only=body.validate_only)
            except _REFUSALS as error:
                answers[topic.name] = _not_created(topic.name, code_of(error, _CODES), str(error))
        return {"topics": list(answers.values())}

    def _partitions_of(self, topic: Any) -> int:
        number = len(topic.assignments) or self._or_default(topic.num_partitions, "num.partitions")
        return max(number, 1)

    async def _create(self, topic: Any, timeout_ms: int, *, validate_only: bool) -> dict[str, Any]:
        if topic.name in self._cluster.snapshot.topics:
            raise TopicExists(f"topic {topic.name!r} exists")
        if wrong := problem_of_all({setting.name: setting.value for setting in topic.configs}):
            raise Refused(ErrorCode.invalid_config, wrong)
        assignment = None
        if topic.assignments:
            if topic.num_partitions != -1 or topic.replication_factor != -1:
                raise Refused(
                    ErrorCode.invalid_request, "an assignment was given, so both numbers have to be -1, or left out"
                )
            by_index = {a.partition_index: tuple(a.broker_ids) for a in topic.assignments}
            if sorted(by_index) != list(range(len(topic.assignments))):
                raise Refused(
                    ErrorCode.invalid_replica_assignment, "partitions have to be numbered from 0 without gaps"
                )
            assignment = [by_index[index] for index in range(len(by_index))]
        view = await self._cluster.create_topic(
            topic.name,
            partitions=len(assignment) if assignment else self._or_default(topic.num_partitions, "num.partitions"),
            replication_factor=len(assignment[0])
            if assignment
            else self._or_default(topic.replication_factor, "default.replication.factor"),
            config={setting.name: setting.value or "" for setting in topic.configs},
            assignment=assignment,
            validate_only=validate_only,
        )
        if not validate_only and not await self._led(topic.name, len(view.partitions), timeout_ms):
            raise Refused(ErrorCode.request_timed_out, "the topic was created, but its leaders are not known yet")
        return {
            "name": topic.name,
            "topic_id": None if validate_only else view.topic_id,
            "error_code": ErrorCode.none,
            "num_partitions": len(view.partitions),
            "replication_factor": len(view.partitions[0].replicas),
            "configs": [
                {name: row[name] for name in _CREATED_ROW}
                for row in topic_rows({one.name: one.value for one in topic.configs}, self._configs.layers)
            ],
        }

    def _or_default(self, given: int, setting: str) -> int:
        return self._config.number(setting) if given == -1 else given

    async def _led(self, name: str, partitions: int, timeout_ms: int) -> bool:
        """Whether every partition got a leader in time; with a timeout of 0, no, as in Kafka (REQUEST_TIMED_OUT)."""
        if timeout_ms <= 0:
            return False
        return await self._cluster.until(lambda snapshot: all_led(snapshot, name, partitions=partitions), timeout_ms)

    # -- CreatePartitions --------------------------------------------------------------------------------------------

    async def create_partitions(self, _context: RequestContext, body: Any) -> Mapping[str, Any]:
        twice = _named_twice(topic.name for topic in body.topics)
        answers = {}
        for topic in body.topics:
            if topic.name in twice:
                answers[topic.name] = _failure(topic.name, ErrorCode.invalid_request, "the request names it twice")
                continue
            try:
                await self._grow(topic, _ms(body.timeout), validate_only=body.validate_only)
            except _REFUSALS as error:
                answers[topic.name] = _failure(topic.name, code_of(error, _CODES), str(error))
            else:
                answers[topic.name] = {"name": topic.name, "error_code": ErrorCode.none}
        return {"results": list(answers.values())}

    async def _grow(self, topic: Any, timeout_ms: int, *, validate_only: bool) -> None:
        _refuse_foreign_path(topic.name)
        known = self._cluster.snapshot.topics.get(topic.name)
        if known is not None and topic.count <= len(known.partitions):
            raise InvalidPartitions(f"{topic.name} has {len(known.partitions)} partitions, {topic.count} are not more")
        assignment = None
        if topic.assignments is not None:
            assignment = [tuple(a.broker_ids) for a in topic.assignments]
            if known is not None and len(assignment) != topic.count - len(known.partitions):
                raise InvalidReplicaAssignment(
                    f"{len(assignment)} assignments do not fit {topic.count} partitions in all"
                )
        await self._cluster.grow_topic(
            topic.name, partitions=topic.count, assignment=assignment, validate_only=validate_only
        )
        if not validate_only and not await self._led(topic.name, topic.count, timeout_ms):
            raise Refused(
                ErrorCode.request_timed_out, "the partitions were created, but their leaders are not known yet"
            )

    # -- DeleteTopics ------------------------------------------------------------------------------------------------

    async def delete_topics(self, context: RequestContext, body: Any) -> Mapping[str, Any]:
        wanted = (
            [(t.name, t.topic_id) for t in body.topics]
            if context.version >= 6
            else [(n, None) for n in body.topic_names]
        )
        refused, left = _refused_deletions(wanted, self._cluster.snapshot.topic_names)
        done = [await self._delete(context, *one, timeout_ms=_ms(body.timeout)) for one in left]
        return {"responses": [*refused, *done]}

    async def _delete(
        self, context: RequestContext, name: str | None, topic_id: Any, *, timeout_ms: int
    ) -> dict[str, Any]:
        snapshot = self._cluster.snapshot
        if not self._config.flag("delete.topic.enable"):
            code = ErrorCode.topic_deletion_disabled if context.version >= 3 else ErrorCode.invalid_request
            return _failure(name, code, "delete.topic.enable is false", topic_id=topic_id)
        if name is None:
            name = snapshot.topic_names.get(topic_id)
            if name is None:
                return _failure(None, ErrorCode.unknown_topic_id, "no topic has this id", topic_id=topic_id)
        topic: TopicView | None = snapshot.topics.get(name)
        try:
            _refuse_foreign_path(name)
            await self._cluster.delete_topic(name)
        except _REFUSALS as error:
            return _failure(name, code_of(error, _CODES), str(error), topic_id=topic_id)
        gone = await self._cluster.until(
            lambda now: now.topics.get(name) is not topic and name not in now.topics, timeout_ms
        )
        if not gone:
            return _failure(name, ErrorCode.request_timed_out, "it is marked for deletion, but still there")
        return {"name": name, "topic_id": None if topic is None else topic.topic_id, "error_code": ErrorCode.none}


def _refused_deletions(
    wanted: Sequence[tuple[str | None, Any]], names: Mapping[Any, str]
) -> tuple[list[dict[str, Any]], list[tuple[str | None, Any]]]:
    """(refusals, the rest): a topic named twice is not deleted.

    Source: ControllerApis.deleteTopics of Kafka 4.1.1; a name and an id of the same topic name it twice.
    """
    answers, left = [], []
    meanings: dict[Any, list[tuple[str | None, Any]]] = {}
    for name, topic_id in wanted:
        if (name is None) == (topic_id is None):
            has = "neither a name nor an id" if name is None else "both a name and an id"
            answers.append(_failure(name, ErrorCode.invalid_request, f"the topic has {has}", topic_id=topic_id))
        else:
            meanings.setdefault(names.get(topic_id, topic_id) if name is None else name, []).append((name, topic_id))
    for several in meanings.values():
        if len(several) == 1:
            left += several
            continue
        name = next((name for name, _ in several if name is not None), None)
        topic_id = next((topic_id for _, topic_id in several if topic_id is not None), None)
        message = "the request names the topic more than once"
        answers.append(_failure(name, ErrorCode.invalid_request, message, topic_id=topic_id))
    return answers, left


def _refuse_foreign_path(name: str) -> None:
    """Refuse a name with a slash, which would be another znode; no topic has such a name."""
    if topic_name_problem(name) is not None:
        raise UnknownTopic(f"there is no topic {name!r}")


def _not_created(name: str, code: ErrorCode, message: str) -> dict[str, Any]:
    return {**_failure(name, code, message), "configs": ()}


def _failure(name: str | None, code: ErrorCode, message: str, *, topic_id: Any = None) -> dict[str, Any]:
    answer: dict[str, Any] = {"name": name, "error_code": code, "error_message": message}
    if topic_id is not None:
        answer["topic_id"] = topic_id
    return answer


def _named_twice(names: Any) -> set[str]:
    return {name for name, times in Counter(names).items() if times > 1}


def _ms(duration: Any) -> int:
    milliseconds: int = round(duration.total_seconds() * 1000)
    return milliseconds
