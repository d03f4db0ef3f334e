"""FindCoordinator: which broker is responsible for a group or a transactional id. Any broker answers it.

The first request creates `__consumer_offsets`. Until the group's partition has a live leader the answer is
COORDINATOR_NOT_AVAILABLE, and clients retry.

Transactional ids (key type 1) use the same topic and the same hash as groups.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from coordinator.groups.errors import Error
from coordinator.groups.placement import partition_of
from kernel.broker.server.handlers import in_rows
from kernel.errors import RebalanceLabError
from kernel.topic_names import OFFSETS_TOPIC
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping

    from kernel.broker.server.handlers import RequestContext, Response, Rows
    from kernel.broker.services import BrokerServices

log = logging.getLogger(__name__)

Plain = dict[str, Any]

GROUP_KEY_TYPE, TRANSACTION_KEY_TYPE = 0, 1
#: From this version on a request names several keys.
BATCHED = 4


class Lookup:
    """Answers FindCoordinator."""

    def __init__(self, services: BrokerServices) -> None:
        self._services = services
        self._logged = ""

    def find(self, context: RequestContext, body: Any) -> Response | Awaitable[Response]:
        """At once if the topic exists, otherwise after creating it."""
        key_type = getattr(body, "key_type", GROUP_KEY_TYPE)
        keys = body.coordinator_keys if context.version >= BATCHED else (body.key,)
        if key_type not in (GROUP_KEY_TYPE, TRANSACTION_KEY_TYPE):
            why = f"key type {key_type} has no coordinator here"
            return _answer(context.version, (_nowhere(key, Error.INVALID_REQUEST, why) for key in keys))
        if OFFSETS_TOPIC in self._services.cluster.snapshot.topics:
            return _answer(context.version, (self._locate(key) for key in keys))
        return self._find_after_creating(context.version, keys)

    async def _find_after_creating(self, version: int, keys: tuple[str, ...]) -> Response:
        absent = f"{OFFSETS_TOPIC} is not there yet"
        try:
            await self._services.create_internal_topic(OFFSETS_TOPIC)
        except RebalanceLabError as error:
            absent = f"{OFFSETS_TOPIC} could not be created: {error}"
            # For example too few brokers for its replication factor. As in Kafka, the client retries, many times a
            # second, so the same reason is logged once.
            if absent != self._logged:
                log.warning("%s", absent)
                self._logged = absent
        return _answer(version, (self._locate(key, absent) for key in keys))

    def _locate(self, key: str, absent: str = "") -> Plain:
        """Where the group of this key is coordinated; `absent` says why its topic does not exist."""
        snapshot = self._services.cluster.snapshot
        topic = snapshot.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return _nowhere(key, Error.COORDINATOR_NOT_AVAILABLE, absent)
        number = partition_of(key, len(topic.partitions))
        leader = snapshot.leader_of(TopicPartition(OFFSETS_TOPIC, number))
        if leader is None:
            return _nowhere(key, Error.COORDINATOR_NOT_AVAILABLE, f"{OFFSETS_TOPIC}-{number} has no leader")
        return {
            "key": key,
            "node_id": leader.node_id,
            "host": leader.host,
            "port": leader.port,
            "error_code": int(Error.NONE),
            "error_message": None,
        }


def _nowhere(key: str, error: Error, message: str) -> Plain:
    return {"key": key, "node_id": -1, "host": "", "port": -1, "error_code": int(error), "error_message": message}


def _answer(version: int, found: Iterable[Plain]) -> Mapping[str, Any] | Rows:
    if version >= BATCHED:
        return in_rows({}, "coordinators", found)
    (only,) = found
    return {name: value for name, value in only.items() if name != "key"}
