"""Kafka's paths in ZooKeeper, as constants and functions.

Names and layout are those of Kafka 0.8.2 (consumers) and 3.9 in ZooKeeper mode (everything else, `ZkData.scala`).
All paths are relative to the chroot of the connect string.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote

from kernel.decimals import decimal

BROKER_IDS = "/brokers/ids"
BROKER_TOPICS = "/brokers/topics"
BROKER_SEQUENCE = "/brokers/seqid"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CLUSTER_ID = "/cluster/id"
CONSUMERS = "/consumers"
CONFIG_TOPICS = "/config/topics"
CONFIG_BROKERS = "/config/brokers"
#: Not in Kafka, which has settings of groups only without ZooKeeper.
CONFIG_GROUPS = "/config/groups"
CONFIG_CHANGES = "/config/changes"
#: Sequential: one for each change of settings, deleted after a quarter of an hour.
CONFIG_CHANGE = f"{CONFIG_CHANGES}/config_change_"
DELETE_TOPICS = "/admin/delete_topics"
PREFERRED_ELECTION = "/admin/preferred_replica_election"
REASSIGNMENT = "/admin/reassign_partitions"
ISR_CHANGES = "/isr_change_notification"
LOG_DIR_EVENTS = "/log_dir_event_notification"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
#: Not in Kafka: which data folder the brokers of the cluster share.
DATA_FOLDER = "/rebalance_lab/data_folder"

#: The znodes that a 3.9 broker creates first, in its order; all persistent, without data.
BROKER_ROOTS = (
    CONSUMERS,
    BROKER_IDS,
    BROKER_TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    BROKER_SEQUENCE,
    ISR_CHANGES,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENTS,
    CONFIG_TOPICS,
    "/config/clients",
    "/config/users",
    CONFIG_BROKERS,
    "/config/ips",
)

#: Characters that ZooKeeper allows in no path; surrogates stand for everything from U+10000 on.
_UNNAMEABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]")


def broker(node_id: int) -> str:
    """Ephemeral: the registration of one broker."""
    return f"{BROKER_IDS}/{node_id}"


def topic(name: str) -> str:
    """Persistent: the topic's partitions with their replicas, and its id."""
    return f"{BROKER_TOPICS}/{name}"


def partitions(name: str) -> str:
    return f"{BROKER_TOPICS}/{name}/partitions"


def partition(name: str, number: int) -> str:
    return f"{partitions(name)}/{number}"


def partition_state(name: str, number: int) -> str:
    """Persistent: leader, leader epoch, in-sync replicas and controller epoch of one partition."""
    return f"{partition(name, number)}/state"


def topic_configuration(name: str) -> str:
    return f"{CONFIG_TOPICS}/{name}"


def broker_configuration(name: str) -> str:
    """Dynamic settings of a broker, or of all brokers (`<default>`)."""
    return f"{CONFIG_BROKERS}/{name}"


def group_configuration(group_id: str) -> str:
    return f"{CONFIG_GROUPS}/{encoded(group_id)}"


def encoded(name: str) -> str:
    """Any text as one part of a path, percent-encoded: not empty, `.` or `..`, and without a slash."""
    quoted = quote(name, safe="")
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")


def topic_deletion(name: str) -> str:
    return f"{DELETE_TOPICS}/{name}"


def group(group_id: str) -> str:
    return f"{CONSUMERS}/{group_id}"


def member_ids(group_id: str) -> str:
    """The parent of the members' ids, whose children every member watches."""
    return f"{CONSUMERS}/{group_id}/ids"


def member_id(group_id: str, consumer_id: str) -> str:
    """Ephemeral: one member's subscription."""
    return f"{member_ids(group_id)}/{consumer_id}"


def owners(group_id: str) -> str:
    return f"{CONSUMERS}/{group_id}/owners"


def topic_owners(group_id: str, topic_name: str) -> str:
    return f"{owners(group_id)}/{topic_name}"


def owner(group_id: str, topic_name: str, number: int) -> str:
    """Ephemeral: the thread id that owns a partition."""
    return f"{topic_owners(group_id, topic_name)}/{number}"


def offsets(group_id: str) -> str:
    return f"{CONSUMERS}/{group_id}/offsets"


def topic_offsets(group_id: str, topic_name: str) -> str:
    return f"{offsets(group_id)}/{topic_name}"


def offset(group_id: str, topic_name: str, number: int) -> str:
    """Persistent: the next offset to consume, as decimal text."""
    return f"{topic_offsets(group_id, topic_name)}/{number}"


def epoch(group_id: str, topic_name: str, number: int) -> str:
    """Persistent, not in Kafka: its version counts the owners of the partition (fix.commit.fence=epoch)."""
    return f"{CONSUMERS}/{group_id}/epochs/{topic_name}/{number}"


def is_valid(path: str) -> bool:
    """Whether ZooKeeper can have such a path (PathUtils.validatePath): it may be made of a name that a client chose."""
    return _UNNAMEABLE.search(path) is None and not {"", ".", ".."} & set(path.split("/")[1:])


def parent(path: str) -> str:
    """The path one level up; "/" is its own parent."""
    return path.rsplit("/", 1)[0] or "/"


def name(path: str) -> str:
    """The last component of a path."""
    return path.rsplit("/", 1)[1]


class GroupPartition(NamedTuple):
    """The parts of an owner or offset path."""

    group: str
    topic: str
    partition: int


def parse_owner(path: str) -> GroupPartition | None:
    """The inverse of `owner`; None for any other path. Strip a chroot first."""
    return _group_partition(path, "owners")


def parse_offset(path: str) -> GroupPartition | None:
    """The inverse of `offset`; None for any other path."""
    return _group_partition(path, "offsets")


def parse_member_id(path: str) -> tuple[str, str] | None:
    """The inverse of `member_id`: (group, consumer id); None for any other path."""
    match path.split("/"):
        case ["", "consumers", group_id, "ids", consumer_id]:
            return group_id, consumer_id
    return None


def _group_partition(path: str, folder: str) -> GroupPartition | None:
    match path.split("/"):
        case ["", "consumers", group_id, found, topic_name, name] if found == folder:
            number = decimal(name)
            return None if number is None else GroupPartition(group_id, topic_name, number)
    return None
