"""What a fault can be injected into, and how a step names it."""

from __future__ import annotations

import re
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.errors import ConfigurationError
from kernel.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping


class TargetKind(Enum):
    """What a fault can be injected into, and how such a target is written."""

    MEMBER = "a member: owner (one that owns partitions), or its place, such as m1"
    MEMBERS = "all members: members"
    GROUP = "the group: group"
    BROKER = "a broker: coordinator, or broker-1"
    SERVER = "a ZooKeeper server: leader, follower, or zookeeper-1"
    ENSEMBLE = "the ZooKeeper ensemble: ensemble"
    PARTITION = "a partition of the first topic: partition-0"
    MEMBER_AUTHORITY = "a member's link to the authority: owner->authority, m1->authority"
    MEMBER_DATA = "a member's link to the broker that it reads from: owner->data, m1->data"
    BROKER_ZOOKEEPER = "a broker's link to ZooKeeper: coordinator->zookeeper, broker-1->zookeeper"
    SERVERS = "a ZooKeeper server's links to the others: follower->ensemble, leader->ensemble, zookeeper-1->ensemble"
    NETWORK = "all links of a ZooKeeper server: leader->network, zookeeper-1->network"


K = TargetKind
PROCESSES = (K.MEMBER, K.BROKER, K.SERVER)
LINKS = (K.MEMBER_AUTHORITY, K.MEMBER_DATA, K.BROKER_ZOOKEEPER, K.SERVERS)

#: The broker that coordinates the group, as a target names it.
COORDINATOR = "coordinator"
_MEMBER, _BROKER, _SERVER = (
    "(owner|m[1-9][0-9]{0,8})",
    f"({COORDINATOR}|broker-[1-9][0-9]{{0,8}})",
    "(leader|follower|zookeeper-[123])",
)
_WRITTEN: Mapping[TargetKind, re.Pattern[str]] = MappingProxyType(
    {
        K.MEMBER: re.compile(_MEMBER),
        K.MEMBERS: re.compile("members"),
        K.GROUP: re.compile("group"),
        K.BROKER: re.compile(_BROKER),
        K.SERVER: re.compile(_SERVER),
        K.ENSEMBLE: re.compile("ensemble"),
        K.PARTITION: re.compile("partition-[0-9]{1,9}"),
        K.MEMBER_AUTHORITY: re.compile(f"{_MEMBER}->authority"),
        K.MEMBER_DATA: re.compile(f"{_MEMBER}->data"),
        K.BROKER_ZOOKEEPER: re.compile(f"{_BROKER}->zookeeper"),
        K.SERVERS: re.compile(f"{_SERVER}->ensemble"),
        K.NETWORK: re.compile(f"{_SERVER}->network"),
    }
)


def kind_of(target: str) -> TargetKind:
    """Raises `ConfigurationError` for a text that names no target."""
    for kind, written in _WRITTEN.items():
        if written.fullmatch(target):
            return kind
    known = [kind.value for kind in TargetKind]
    raise ConfigurationError(
        f"{target!r} is not a fault target{did_you_mean(target, known) or '.'} Use {'; '.join(known)}"
    )
