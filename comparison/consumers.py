"""How each design's consumer is built, and the settings that it takes: the only module that imports both backends.

`kernel.designs` says what the designs are.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.member_settings import MEMBER_SETTINGS
from coordinator.client.calls import GroupCalls
from coordinator.client.classic.consumer import CoordinatorConsumer
from coordinator.client.consumer.calls import Kip848Calls
from coordinator.client.consumer.consumer import Kip848Consumer
from coordinator.client.consumer.setting_table import KNOWN_ELSEWHERE as KNOWN_BEYOND_KIP848
from coordinator.client.consumer.settings import Kip848ConsumerConfig, refuse
from coordinator.client.server.calls import ServerCalls
from coordinator.client.server.consumer import ServerConsumer
from coordinator.client.server.setting_table import KNOWN_ELSEWHERE
from coordinator.client.server.settings import ServerConsumerConfig
from coordinator.client.setting_table import KAFKA_CONSUMER_SETTINGS
from coordinator.client.settings import CoordinatorConsumerConfig
from kernel.designs import CLASSIC, CONSUMER, DESIGNS, SERVER, ZOOKEEPER
from kernel.errors import ConfigurationError
from kernel.runtime import REAL, Runtime
from zkconsumer.consumer import ZooKeeperConsumer
from zkconsumer.kafka_settings import KAFKA_OLD_CONSUMER_SETTINGS
from zkconsumer.settings import ZkConsumerConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from coordinator.client.calls import CommitCalls
    from kernel.consumer import GroupConsumer, RebalanceListener
    from kernel.designs import Design
    from kernel.settings import Setting
    from kernel.trace.writer import Tracer
    from kernel.zookeeper.stepping import StepGate
    from zkconsumer.znodes.filters import TopicFilter


log = logging.getLogger(__name__)

STRATEGY = "partition.assignment.strategy"
_REQUEST_MS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRequest:
    """A consumer of `group` to build. `settings` have the design's own names."""

    process: str
    group: str
    client_id: str
    zookeeper: str = ""
    bootstrap: str = ""  #: host:port,...
    instance: str = ""  #: its group.instance.id, in designs with static membership
    settings: Mapping[str, str] = field(default_factory=dict)
    gate: StepGate | None = None  #: in front of the ZooKeeper operations of a zookeeper consumer
    runtime: Runtime = REAL


def commits_of(group: str) -> GroupCalls:
    """Requests about the offsets of a group."""
    return GroupCalls(group, session_timeout_ms=0, rebalance_timeout_ms=0, request_timeout_ms=_REQUEST_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerFactory:
    """Builds a design's consumers."""

    consumer: Callable[[ConsumerRequest, Tracer], GroupConsumer]
    #: Its configuration, with warnings of settings that are allowed but probably not meant.
    config: Callable[[ConsumerRequest], tuple[object, list[str]]]
    settings: Mapping[str, Setting]
    known_elsewhere: frozenset[str]  #: Kafka's settings that it accepts and ignores, with a warning
    #: Raises `ConfigurationError` for settings of other designs that Kafka's consumer of this one refuses.
    refuse: Callable[[Mapping[str, str]], None] = lambda _: None
    #: The requests of a group's members, for commits only; they are refused where offsets are in ZooKeeper.
    commits: Callable[[str], CommitCalls] = commits_of
    #: Settings that make the design what it is: `-c` does not change them.
    made_by: frozenset[str] = frozenset()
    #: The settings, of its members or of the brokers, for how long a silent member stays in the group, and how often
    #: members heartbeat.
    session_setting: str = "session.timeout.ms"
    heartbeat_setting: str = "heartbeat.interval.ms"


def _warn(request: ConsumerRequest, warnings: Iterable[str]) -> None:
    for warning in warnings:
        log.warning("%s: %s", request.process, warning)


def _zookeeper_config(request: ConsumerRequest) -> tuple[ZkConsumerConfig, list[str]]:
    return ZkConsumerConfig.from_settings(
        {**request.settings, "zookeeper.connect": request.zookeeper, "group.id": request.group}
    )


def _zookeeper(request: ConsumerRequest, tracer: Tracer) -> GroupConsumer:
    config, warnings = _zookeeper_config(request)
    _warn(request, warnings)
    return ZooKeeperConsumer(config, tracer=tracer, process=request.process, gate=request.gate, runtime=request.runtime)


async def subscribe_by_pattern(
    consumer: GroupConsumer, topic_filter: TopicFilter, streams: int, listener: RebalanceListener
) -> None:
    """Subscribe to topics by a pattern; only consumers of the zookeeper design can."""
    assert isinstance(consumer, ZooKeeperConsumer)
    await consumer.subscribe_pattern(topic_filter, streams, listener)


def _server_config(request: ConsumerRequest) -> tuple[ServerConsumerConfig, list[str]]:
    given = {
        "client.id": request.client_id,
        **request.settings,
        "zookeeper.connect": request.zookeeper,
        "bootstrap.servers": request.bootstrap,
        "group.id": request.group,
    }
    return ServerConsumerConfig.from_settings(given)


def _server(request: ConsumerRequest, tracer: Tracer) -> GroupConsumer:
    config, warnings = _server_config(request)
    _warn(request, warnings)
    return ServerConsumer(config, tracer=tracer, process=request.process, runtime=request.runtime)


def _of_coordinators(request: ConsumerRequest) -> dict[str, str]:
    return {
        "client.id": request.client_id,
        **request.settings,
        "bootstrap.servers": request.bootstrap,
        "group.id": request.group,
    }


def _classic_config(request: ConsumerRequest) -> tuple[CoordinatorConsumerConfig, list[str]]:
    return CoordinatorConsumerConfig.from_settings(_of_coordinators(request))


def _classic_factory(design: Design) -> ConsumerFactory:
    """Members of the classic protocol; their settings make the design."""

    def consumer(request: ConsumerRequest, tracer: Tracer) -> GroupConsumer:
        given = {STRATEGY: design.strategy} if design.strategy else {}
        if design.static_membership and request.instance:
            given["group.instance.id"] = request.instance
        settings = {**given, **request.settings}
        if design.static_membership and "group.instance.id" not in settings:
            raise ConfigurationError("a static member needs a name of its own. Set group.instance.id=...")
        made = replace(request, settings=settings)
        config, warnings = _classic_config(made)
        _warn(made, warnings)
        return CoordinatorConsumer(config, tracer=tracer, process=made.process, runtime=made.runtime)

    return ConsumerFactory(
        consumer=consumer,
        config=_classic_config,
        settings=MEMBER_SETTINGS[design.name],
        known_elsewhere=KAFKA_CONSUMER_SETTINGS,
        made_by=_STRATEGY if design.strategy else frozenset(),
    )


def _kip848_config(request: ConsumerRequest) -> tuple[Kip848ConsumerConfig, list[str]]:
    return Kip848ConsumerConfig.from_settings(_of_coordinators(request))


def _kip848(request: ConsumerRequest, tracer: Tracer) -> GroupConsumer:
    config, warnings = _kip848_config(request)
    _warn(request, warnings)
    return Kip848Consumer(config, tracer=tracer, process=request.process, runtime=request.runtime)


_STRATEGY = frozenset({STRATEGY})

CONSUMERS: Mapping[str, ConsumerFactory] = MappingProxyType(
    {
        ZOOKEEPER: ConsumerFactory(
            consumer=_zookeeper,
            config=_zookeeper_config,
            settings=MEMBER_SETTINGS[ZOOKEEPER],
            known_elsewhere=KAFKA_OLD_CONSUMER_SETTINGS,
            session_setting="zookeeper.session.timeout.ms",
        ),
        SERVER: ConsumerFactory(
            consumer=_server,
            config=_server_config,
            settings=MEMBER_SETTINGS[SERVER],
            known_elsewhere=KNOWN_ELSEWHERE,
            commits=lambda group: ServerCalls(
                group=group, strategy="", wait_ms=0, patience_ms=0, request_timeout_ms=_REQUEST_MS
            ),
            made_by=_STRATEGY,
            session_setting="zookeeper.session.timeout.ms",
        ),
        **{name: _classic_factory(DESIGNS[name]) for name in CLASSIC},
        CONSUMER: ConsumerFactory(
            consumer=_kip848,
            config=_kip848_config,
            settings=MEMBER_SETTINGS[CONSUMER],
            known_elsewhere=KNOWN_BEYOND_KIP848,
            refuse=refuse,
            commits=lambda group: Kip848Calls(group=group, request_timeout_ms=_REQUEST_MS),
            session_setting="group.consumer.session.timeout.ms",
            heartbeat_setting="group.consumer.heartbeat.interval.ms",
        ),
    }
)
