"""The designs, as a table: what makes a consumer of each. Only here are both backends named side by side."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from coordinator.consumer import CoordinatorConsumer
from coordinator.settings import CONSUMER_SETTINGS, KAFKA_CONSUMER_SETTINGS, CoordinatorConsumerConfig
from zkconsumer.consumer import ZooKeeperConsumer
from zkconsumer.settings import KAFKA_OLD_CONSUMER_SETTINGS, ZK_CONSUMER_SETTINGS, ZkConsumerConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kernel.consumer import GroupConsumer, RebalanceListener
    from kernel.settings import Setting
    from kernel.trace.writer import Tracer
    from zkconsumer.filters import TopicFilter


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRequest:
    """What is asked of a design: a consumer of `group`, with settings by the design's own names."""

    process: str
    group: str
    client_id: str
    zookeeper: str = ""
    bootstrap: str = ""  #: host:port,...
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """One way of sharing out partitions."""

    name: str
    consumer: Callable[[ConsumerRequest, Tracer], GroupConsumer]
    settings: Mapping[str, Setting]
    known_elsewhere: frozenset[str]


def _zookeeper(request: ConsumerRequest, tracer: Tracer) -> GroupConsumer:
    given = {**request.settings, "zookeeper.connect": request.zookeeper, "group.id": request.group}
    config, warnings = ZkConsumerConfig.from_settings(given)
    for warning in warnings:
        log.warning("%s: %s", request.process, warning)
    return ZooKeeperConsumer(config, tracer=tracer, process=request.process)


async def subscribe_by_pattern(
    consumer: GroupConsumer, topic_filter: TopicFilter, streams: int, listener: RebalanceListener
) -> None:
    """Only consumers of the zookeeper design can."""
    assert isinstance(consumer, ZooKeeperConsumer)
    await consumer.subscribe_pattern(topic_filter, streams, listener)


def _eager(request: ConsumerRequest, tracer: Tracer) -> GroupConsumer:
    given = {
        "client.id": request.client_id,
        **request.settings,
        "bootstrap.servers": request.bootstrap,
        "group.id": request.group,
    }
    config, _ = CoordinatorConsumerConfig.from_settings(given)
    return CoordinatorConsumer(config, tracer=tracer, process=request.process)


DESIGNS: Mapping[str, Design] = MappingProxyType(
    {
        design.name: design
        for design in (
            Design(
                name="zookeeper",
                consumer=_zookeeper,
                settings=ZK_CONSUMER_SETTINGS,
                known_elsewhere=KAFKA_OLD_CONSUMER_SETTINGS,
            ),
            Design(
                name="eager",
                consumer=_eager,
                settings=CONSUMER_SETTINGS,
                known_elsewhere=KAFKA_CONSUMER_SETTINGS,
            ),
        )
    }
)
