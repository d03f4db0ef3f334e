"""The bytes of the brokers' znodes, as Kafka 3.9 writes them in ZooKeeper mode. Pure.

Fields are in the order in which a 3.9.1 broker writes them (the tests compare recorded bytes), and the JSON has no
blanks. Reading is lenient: any order, unknown fields, versions from 0.8 on. Any program may write to ZooKeeper, so
every value is checked here, once, to fit into Kafka's protocol. All failures raise `MalformedNode`; callers treat such
a node as absent and log it.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard
from urllib.parse import urlsplit
from uuid import UUID

from kernel.errors import RebalanceLabError
from kernel.values import BrokerAddress, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: Producer ids are handed out to brokers in blocks of this size (ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE).
PRODUCER_ID_BLOCK_SIZE = 1000
_INT32_MAX, _INT64_MAX = 2**31 - 1, 2**63 - 1
#: Partitions of one topic. Its znode lists them all, and each costs two znodes, and a watch by every broker.
PARTITIONS_MAX = 10_000
_REPLICAS_MAX = 1_000
#: ZooKeeper disconnects on a larger request (jute.maxbuffer, 1 MB less one byte); this leaves room for the rest.
NODE_BYTES_MAX = 1_000_000
#: The longest DNS name has 253 characters.
_HOST = re.compile(r"[0-9A-Za-z_.:%\-]{1,255}")
_ID = re.compile(r"[0-9A-Za-z_\-]{22}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")


class MalformedNode(RebalanceLabError):
    """A znode's content is not what Kafka writes."""


@dataclass(frozen=True, slots=True)
class TopicNode:
    """`/brokers/topics/T`: replicas by partition number, 0..n-1 without gaps; no id when written by Kafka < 2.8."""

    replicas: tuple[tuple[int, ...], ...]
    topic_id: UUID | None


@dataclass(frozen=True, slots=True)
class PartitionState:
    """`/brokers/topics/T/partitions/P/state`."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """`/latest_producer_id_block`: the newest block, `last` included, and the broker that took it."""

    broker: int
    first: int
    last: int


def id_text(identifier: UUID) -> str:
    """URL-safe base64 without padding: 22 characters (Kafka's Uuid.toString)."""
    return base64.urlsafe_b64encode(identifier.bytes).rstrip(b"=").decode()


def id_from_text(text: str) -> UUID:
    """Parse an id. Refuses the id 0, which stands for none (Uuid.ZERO_UUID)."""
    if _ID.fullmatch(text) and (identifier := UUID(bytes=base64.urlsafe_b64decode(f"{text}=="))).int:
        return identifier
    raise MalformedNode(f"{text[:200]!r} is not an id")


def parse_broker_id(name: str) -> int:
    """The name of a znode under /brokers/ids."""
    if _NUMBER.fullmatch(name) and int(name) <= _INT32_MAX:
        return int(name)
    raise MalformedNode(f"{name[:200]!r} is not a broker id")


def broker_node(address: BrokerAddress, timestamp_ms: int) -> bytes:
    """Version 5, one PLAINTEXT listener."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return _dumps(
        {
            "features": {},
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
            "endpoints": [f"PLAINTEXT://{host}:{address.port}"],
            "jmx_port": -1,
            "port": address.port,
            "host": address.host,
            "version": 5,
            "timestamp": str(timestamp_ms),
        }
    )


def parse_broker(node_id: int, data: bytes) -> BrokerAddress:
    """Versions 1 to 5: host and port, or the first PLAINTEXT endpoint where they are null."""
    fields = _loads(data)
    host, port = fields.get("host"), fields.get("port")
    if isinstance(host, str) and _HOST.fullmatch(host) and _is_port(port):
        return BrokerAddress(node_id, host, port)
    protocols = fields.get("listener_security_protocol_map")
    if not isinstance(protocols, dict):
        protocols = {}
    endpoints = fields.get("endpoints")
    for endpoint in endpoints if isinstance(endpoints, list) else []:
        found = _plaintext(endpoint, protocols)
        if found is not None:
            return BrokerAddress(node_id, *found)
    raise MalformedNode(f"broker {node_id} names no plaintext listener: {data[:200]!r}")


def topic_node(node: TopicNode) -> bytes:
    assert node.topic_id is not None, "topics are written with their id"
    return _dumps(
        {
            "partitions": {str(number): list(replicas) for number, replicas in enumerate(node.replicas)},
            "topic_id": id_text(node.topic_id),
            "adding_replicas": {},
            "removing_replicas": {},
            "version": 3,
        }
    )


def parse_topic(data: bytes) -> TopicNode:
    fields = _loads(data)
    partitions = fields.get("partitions")
    if not isinstance(partitions, dict):
        raise MalformedNode(f"a topic without partitions: {data[:200]!r}")
    if len(partitions) > PARTITIONS_MAX:
        raise MalformedNode(f"{len(partitions)} partitions; at most {PARTITIONS_MAX} are served")
    replicas: list[tuple[int, ...]] = []
    for number in range(len(partitions)):
        listed = partitions.get(str(number))
        if not _is_list_of_ids(listed) or not 0 < len(listed) <= _REPLICAS_MAX:
            raise MalformedNode(f"partition {number} has no list of replicas: {data[:200]!r}")
        replicas.append(tuple(listed))
    topic_id = fields.get("topic_id")
    if topic_id is not None and not isinstance(topic_id, str):
        raise MalformedNode(f"topic_id is not a text: {data[:200]!r}")
    return TopicNode(tuple(replicas), None if topic_id is None else id_from_text(topic_id))


def state_node(state: PartitionState) -> bytes:
    return _dumps(
        {
            "controller_epoch": state.controller_epoch,
            "leader": state.leader,
            "version": 1,
            "leader_epoch": state.leader_epoch,
            "isr": list(state.isr),
        }
    )


def parse_state(data: bytes) -> PartitionState:
    fields = _loads(data)
    leader, isr = fields.get("leader"), fields.get("isr")
    leader_epoch, controller_epoch = fields.get("leader_epoch"), fields.get("controller_epoch")
    # -2 is LeaderDuringDelete.
    if not (_is_id(leader, low=-2) and _is_id(leader_epoch) and _is_id(controller_epoch) and _is_list_of_ids(isr)):
        raise MalformedNode(f"not a partition's state: {data[:200]!r}")
    return PartitionState(leader, leader_epoch, tuple(isr), controller_epoch)


def controller_node(node_id: int, timestamp_ms: int) -> bytes:
    return _dumps({"version": 2, "brokerid": node_id, "timestamp": str(timestamp_ms), "kraftControllerEpoch": -1})


def parse_controller(data: bytes) -> int:
    node_id = _loads(data).get("brokerid")
    if not _is_id(node_id):
        raise MalformedNode(f"no controller's broker id: {data[:200]!r}")
    return node_id


def controller_epoch_node(epoch: int) -> bytes:
    return str(epoch).encode()


def parse_controller_epoch(data: bytes) -> int:
    text = data[:20].decode("latin-1")
    if _NUMBER.fullmatch(text) and int(text) < _INT32_MAX:
        return int(text)
    raise MalformedNode(f"not a controller epoch: {data[:200]!r}")


def cluster_id_node(cluster_id: str) -> bytes:
    return _dumps({"version": "1", "id": cluster_id})


def parse_cluster_id(data: bytes) -> str:
    cluster_id = _loads(data).get("id")
    if not isinstance(cluster_id, str) or not re.fullmatch(r"[!-~]{1,249}", cluster_id):
        raise MalformedNode(f"no cluster id: {data[:200]!r}")
    return cluster_id


def topic_config_node(config: Mapping[str, str]) -> bytes:
    """`/config/topics/T`, and `/config/brokers/N` alike."""
    return _dumps({"version": 1, "config": dict(sorted(config.items()))})


def parse_config(data: bytes) -> dict[str, str]:
    config = _loads(data).get("config")
    if not isinstance(config, dict) or not all(isinstance(value, str) for value in config.values()):
        raise MalformedNode(f"no settings: {data[:200]!r}")
    return config


def config_change_node(entity_path: str) -> bytes:
    """`/config/changes/config_change_N`: whose settings have changed, `topics/T` or `brokers/N`."""
    return _dumps({"version": 2, "entity_path": entity_path})


def parse_config_change(data: bytes) -> str:
    """The entity path. Version 1 has type and name; 0.8 wrote only a topic's name in quotes."""
    try:
        topic = json.loads(data)
    except (ValueError, RecursionError):
        topic = None
    if isinstance(topic, str):
        return f"topics/{topic}"
    fields = _loads(data)
    if fields.get("version") == 1:
        return f"{fields.get('entity_type')}/{fields.get('entity_name')}"
    entity_path = fields.get("entity_path")
    if not isinstance(entity_path, str):
        raise MalformedNode(f"does not name a topic or broker: {data[:200]!r}")
    return entity_path


def feature_node() -> bytes:
    """`/feature`, made by the first controller: no features, enabled."""
    return _dumps({"features": {}, "version": 2, "status": 1})


def parse_partitions(data: bytes) -> tuple[TopicPartition, ...]:
    """`/admin/preferred_replica_election`: the partitions that their first replica is to lead."""
    return tuple(_named_partition(item, data) for item in _items(data))


def preferred_election_node(partitions: Iterable[TopicPartition]) -> bytes:
    return _dumps({"version": 1, "partitions": [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]})


def parse_reassignment(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """`/admin/reassign_partitions`: the new replicas of each partition."""
    wanted = {}
    for item in _items(data):
        replicas = item.get("replicas")
        if not _is_list_of_ids(replicas) or not 0 < len(replicas) == len(set(replicas)) <= _REPLICAS_MAX:
            raise MalformedNode(f"a partition without a list of different replicas: {data[:200]!r}")
        wanted[_named_partition(item, data)] = tuple(replicas)
    return wanted


def reassignment_node(wanted: Mapping[TopicPartition, Sequence[int]]) -> bytes:
    items = [{"topic": tp.topic, "partition": tp.partition, "replicas": list(r)} for tp, r in wanted.items()]
    return _dumps({"version": 1, "partitions": items})


def producer_id_block_node(block: ProducerIdBlock) -> bytes:
    return _dumps({"version": 1, "broker": block.broker, "block_start": str(block.first), "block_end": str(block.last)})


def next_producer_id_block(data: bytes, node_id: int) -> ProducerIdBlock:
    """The block after the one in `data`, for broker `node_id`; the first one if `data` is empty."""
    first = 0
    if data:
        last = _loads(data).get("block_end")
        if not isinstance(last, str) or not _NUMBER.fullmatch(last):
            raise MalformedNode(f"not a block of producer ids: {data[:200]!r}")
        first = int(last) + 1
    if first > _INT64_MAX - PRODUCER_ID_BLOCK_SIZE:
        raise MalformedNode(f"no producer ids are left after {data[:200]!r}")
    return ProducerIdBlock(node_id, first, first + PRODUCER_ID_BLOCK_SIZE - 1)


def _items(data: bytes) -> list[dict[str, Any]]:
    items = _loads(data).get("partitions")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise MalformedNode(f"no list of partitions: {data[:200]!r}")
    return items


def _named_partition(item: Mapping[str, Any], data: bytes) -> TopicPartition:
    topic, partition = item.get("topic"), item.get("partition")
    if not isinstance(topic, str) or not _is_id(partition):
        raise MalformedNode(f"a partition without topic and number: {data[:200]!r}")
    return TopicPartition(topic, partition)


def _plaintext(endpoint: object, protocols: Mapping[str, object]) -> tuple[str, int] | None:
    try:
        parts = urlsplit(str(endpoint).lower())
        port = parts.port
    except ValueError:
        return None
    listener = str(endpoint).partition("://")[0]
    if not port or not _HOST.fullmatch(parts.hostname or "") or protocols.get(listener, listener) != "PLAINTEXT":
        return None
    return str(parts.hostname), port


def _is_id(value: object, *, low: int = 0) -> TypeGuard[int]:
    """Whether it is an int32 of at least `low`."""
    return type(value) is int and low <= value <= _INT32_MAX


def _is_list_of_ids(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(_is_id(item) for item in value)


def _is_port(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 < value <= 65535


def _dumps(fields: Mapping[str, Any] | Sequence[Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def _loads(data: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedNode(f"not JSON: {data[:200]!r}: {error}") from error
    if not isinstance(fields, dict):
        raise MalformedNode(f"not a JSON object: {data[:200]!r}")
    return fields
