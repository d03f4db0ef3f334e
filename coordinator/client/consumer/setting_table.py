"""The settings of a KIP-848 member: those it shares with classic members, and its own.

The session timeout and the interval of heartbeats are the group's, so they are settings of the broker, and the broker
assigns: Kafka's consumer refuses the settings of the classic protocol (`REFUSED`), and so does this one.

Source: ConsumerConfig.java of kafka-clients 4.1.1 (CLASSIC_PROTOCOL_UNSUPPORTED_CONFIGS and
CONSUMER_PROTOCOL_UNSUPPORTED_CONFIGS).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from coordinator.client.configuration import SubscribingConfig, names_of
from coordinator.client.kafka_settings import KAFKA_CONSUMER_SETTINGS
from coordinator.client.setting_table import CONSUMER_SETTINGS
from kernel.settings import Setting, number, one_of, text

if TYPE_CHECKING:
    from collections.abc import Mapping

_RUN = "run join --design consumer"

PROTOCOL = "group.protocol"

_OWN = (
    Setting(
        name=PROTOCOL,
        parse=lambda text: text.strip().lower(),
        default="consumer",
        doc="the protocol of the group; this design is that of KIP-848",
        valid=one_of("consumer", "classic"),
        kafka={"3.7": "classic"},
        differs="the design chooses the protocol",
        advice="No reason to change it: classic is what the other designs are for, and is refused here.",
        source="KIP-848",
        shown_by=f"{_RUN} --set group.protocol=consumer",
    ),
    text(
        "group.remote.assignor",
        None,
        "which of the broker's assignors to use: uniform or range; unset: the broker's first",
        form="a name in the broker's group.consumer.assignors",
        kafka={"3.7": None},
        advice="The group uses the one that most members name. Leave it unset, unless partitions with the same number "
        "must go to the same member: then range.",
        see=("group.consumer.assignors",),
        source="KIP-848",
        shown_by=f"{_RUN} --set group.remote.assignor=range",
    ),
    number(
        "retry.backoff.max.ms",
        1_000,
        "the longest wait before a failed heartbeat is repeated; the wait doubles from retry.backoff.ms on",
        kafka={"3.7": 1_000},
        advice="Keep it far below the session timeout: heartbeats that come too late cost the member its place.",
        see=("retry.backoff.ms",),
        source="KIP-580",
        shown_by="run coordinator-failover --design consumer --set retry.backoff.max.ms=500",
    ),
)

KIP848_CONSUMER_SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {setting.name: setting for setting in (*(CONSUMER_SETTINGS[name] for name in names_of(SubscribingConfig)), *_OWN)}
)

#: Settings that Kafka's consumer refuses with group.protocol=consumer, and what to do instead.
REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "session.timeout.ms": "Set the group's consumer.session.timeout.ms, or the brokers' "
        "group.consumer.session.timeout.ms",
        "heartbeat.interval.ms": "Set the group's consumer.heartbeat.interval.ms, or the brokers' "
        "group.consumer.heartbeat.interval.ms",
        "partition.assignment.strategy": "The broker assigns. Set group.remote.assignor",
        "share.acknowledgement.mode": "It belongs to share groups",
    }
)

#: Settings of Kafka's consumers, and of the other designs here, that have no effect in this one.
KNOWN_ELSEWHERE = (
    frozenset(KAFKA_CONSUMER_SETTINGS | CONSUMER_SETTINGS.keys()) - KIP848_CONSUMER_SETTINGS.keys() - REFUSED.keys()
)
