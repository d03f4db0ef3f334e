"""The designs, as a table: what makes a consumer of each. Only here are all backends named side by side."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from coordinator.consumer.consumer import CoordinatorConsumer
from coordinator.consumer.server.consumer import ServerConsumer
from coordinator.consumer.server.settings import KNOWN_ELSEWHERE, SERVER_CONSUMER_SETTINGS, ServerConsumerConfig
from coordinator.consumer.settings import CONSUMER_SETTINGS, KAFKA_CONSUMER_SETTINGS, CoordinatorConsumerConfig
from kernel.errors import ConfigurationError
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
    instance: str = ""  #: a name that it keeps over restarts, for designs that know their members by one
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """One way of sharing out partitions."""

    name: str
    consumer: Callable[[ConsumerRequest, Tracer], GroupConsumer]
    settings: Mapping[str, Setting]
    known_elsewhere: frozenset[str]
    #: A broker coordinates the group and keeps its offsets; otherwise both are in ZooKeeper.
    coordinator: bool = True
    #: Every member has a ZooKeeper session of its own, and is given up when it ends.
    sessions: bool = False
    #: Several streams are threads of one membership; otherwise each is one by itself.
    streams_are_threads: bool = False
    #: Settings that make it what it is: what a run is given for all designs goes to the others.
    made_by: frozenset[str] = frozenset()
    #: Who decides remembers what was lost: when it goes itself, nobody waits for anything to come back.
    remembers_losses: bool = False
    #: A member that leaves in order stays in the group until its session ends: it may come back.
    keeps_places: bool = False
    #: A member may change its subscription while it runs.
    resubscribes: bool = True
    #: What sets how long a silent member is waited for.
    session_setting: str = "session.timeout.ms"


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


def _server(request: ConsumerRequest, tracer: Tracer) -> GroupConsumer:
    given = {
        "client.id": request.client_id,
        **request.settings,
        "zookeeper.connect": request.zookeeper,
        "bootstrap.servers": request.bootstrap,
        "group.id": request.group,
    }
    config, warnings = ServerConsumerConfig.from_settings(given)
    for warning in warnings:
        log.warning("%s: %s", request.process, warning)
    return ServerConsumer(config, tracer=tracer, process=request.process)


def _classic(request: ConsumerRequest, tracer: Tracer) -> GroupConsumer:
    """A member of the classic protocol; what it is beyond that its settings say."""
    given = {
        "client.id": request.client_id,
        **request.settings,
        "bootstrap.servers": request.bootstrap,
        "group.id": request.group,
    }
    config, _ = CoordinatorConsumerConfig.from_settings(given)
    return CoordinatorConsumer(config, tracer=tracer, process=request.process)


def _static(request: ConsumerRequest, tracer: Tracer) -> GroupConsumer:
    """A member that the group knows by a name of its own; what the settings say goes over what the run says."""
    named = {"group.instance.id": request.instance} if request.instance else {}
    settings = {**named, **request.settings}
    if "group.instance.id" not in settings:
        raise ConfigurationError("a static member has a name of its own: set group.instance.id=...")
    return _classic(replace(request, settings=settings), tracer)


def _incremental(strategy: str) -> Callable[[ConsumerRequest, Tracer], GroupConsumer]:
    """A member whose strategy takes away only what moves, unless the settings name another one."""

    def consumer(request: ConsumerRequest, tracer: Tracer) -> GroupConsumer:
        settings = {"partition.assignment.strategy": strategy, **request.settings}
        return _classic(replace(request, settings=settings), tracer)

    return consumer


_STRATEGY = frozenset({"partition.assignment.strategy"})

DESIGNS: Mapping[str, Design] = MappingProxyType(
    {
        design.name: design
        for design in (
            Design(
                name="zookeeper",
                consumer=_zookeeper,
                settings=ZK_CONSUMER_SETTINGS,
                known_elsewhere=KAFKA_OLD_CONSUMER_SETTINGS,
                coordinator=False,
                sessions=True,
                streams_are_threads=True,
                resubscribes=False,
                session_setting="zookeeper.session.timeout.ms",
            ),
            Design(
                name="server",
                consumer=_server,
                settings=SERVER_CONSUMER_SETTINGS,
                known_elsewhere=KNOWN_ELSEWHERE,
                sessions=True,
                made_by=_STRATEGY,
                session_setting="zookeeper.session.timeout.ms",
            ),
            Design(
                name="eager",
                consumer=_classic,
                settings=CONSUMER_SETTINGS,
                known_elsewhere=KAFKA_CONSUMER_SETTINGS,
            ),
            Design(
                name="static",
                consumer=_static,
                settings=CONSUMER_SETTINGS,
                known_elsewhere=KAFKA_CONSUMER_SETTINGS,
                keeps_places=True,
            ),
            Design(
                name="cooperative",
                consumer=_incremental("cooperative-sticky"),
                settings=CONSUMER_SETTINGS,
                known_elsewhere=KAFKA_CONSUMER_SETTINGS,
                made_by=_STRATEGY,
            ),
            Design(
                name="delayed",
                consumer=_incremental("delayed"),
                settings=CONSUMER_SETTINGS,
                known_elsewhere=KAFKA_CONSUMER_SETTINGS,
                remembers_losses=True,
                made_by=_STRATEGY,
            ),
        )
    }
)
