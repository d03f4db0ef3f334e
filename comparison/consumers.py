"""How each design's consumer is built, and the settings that it takes: the only module that imports both backends.

`kernel.designs` says what the designs are. Settings and requests are there at once; a consumer, and with it the
messages that it sends, is imported when the first one is built, or by `load`: most commands build none.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from comparison.member_settings import MEMBER_SETTINGS
from coordinator.client.calls import GroupCalls
from coordinator.client.consumer.calls import Kip848Calls
from coordinator.client.consumer.setting_table import KNOWN_ELSEWHERE as KNOWN_BEYOND_KIP848
from coordinator.client.consumer.settings import Kip848ConsumerConfig, refuse
from coordinator.client.kafka_settings import KAFKA_CONSUMER_SETTINGS
from coordinator.client.server.calls import ServerCalls
from coordinator.client.server.setting_table import KNOWN_ELSEWHERE
from coordinator.client.server.settings import ServerConsumerConfig
from coordinator.client.settings import CoordinatorConsumerConfig
from kernel.designs import CLASSIC, CONSUMER, DESIGNS, SERVER, ZOOKEEPER
from kernel.errors import ConfigurationError
from kernel.runtime import REAL, Runtime
from zkconsumer.kafka_settings import KAFKA_OLD_CONSUMER_SETTINGS
from zkconsumer.settings import ZkConsumerConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from coordinator.client.calls import CommitCalls
    from coordinator.client.classic.consumer import CoordinatorConsumer
    from coordinator.client.consumer.consumer import Kip848Consumer
    from coordinator.client.server.consumer import ServerConsumer
    from kernel.consumer import GroupConsumer, RebalanceListener
    from kernel.designs import Design
    from kernel.settings import Setting
    from kernel.trace.writer import Tracer
    from kernel.zookeeper.stepping import StepGate
    from zkconsumer.consumer import ZooKeeperConsumer
    from zkconsumer.znodes.filters import TopicFilter


log = logging.getLogger(__name__)

STRATEGY, INSTANCE = "partition.assignment.strategy", "group.instance.id"
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


def unconnected(settings: Mapping[str, str], *, name: str = "m1", instance: str = "") -> ConsumerRequest:
    """For a consumer that is configured with these settings, and connects to nobody."""
    return ConsumerRequest(
        process=name,
        group=name,
        client_id=name,
        zookeeper="127.0.0.1:2181",
        bootstrap="127.0.0.1:9092",
        instance=instance,
        settings=settings,
    )


def commits_of(group: str) -> GroupCalls:
    """Requests about the offsets of a group."""
    return GroupCalls(group, session_timeout_ms=0, rebalance_timeout_ms=0, request_timeout_ms=_REQUEST_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerFactory:
    """Builds a design's consumers."""

    design: Design
    #: Imports its class, which is called with a configuration, a tracer, the name of the process and a runtime.
    load: Callable[[], Callable[..., GroupConsumer]]
    configured: Callable[[Mapping[str, str]], tuple[Any, list[str]]]
    known_elsewhere: frozenset[str]  #: Kafka's settings that it accepts and ignores, with a warning
    #: Raises `ConfigurationError` for settings of other designs that Kafka's consumer of this one refuses.
    refuse: Callable[[Mapping[str, str]], None] = lambda _: None
    #: What commits in the name of a group's members; refused where offsets are in ZooKeeper.
    commits: Callable[[str], CommitCalls] = commits_of
    #: Settings that make the design what it is: `-c` does not change them.
    made_by: frozenset[str] = frozenset()
    #: The settings, of its members or of the brokers, for how long a silent member stays in the group, and how often
    #: members heartbeat.
    session_setting: str = "session.timeout.ms"
    heartbeat_setting: str = "heartbeat.interval.ms"
    name_setting: str = INSTANCE  #: by which a member has the same name in every process

    @property
    def settings(self) -> Mapping[str, Setting]:
        return MEMBER_SETTINGS[self.design.name]

    def config(self, request: ConsumerRequest) -> tuple[object, list[str]]:
        """The configuration, with warnings of settings that are allowed but probably not meant."""
        return self._config(request, {})

    def consumer(self, request: ConsumerRequest, tracer: Tracer) -> GroupConsumer:
        """Raises `ConfigurationError`, also for a static member without a name."""
        own = {STRATEGY: self.design.strategy} if self.design.strategy else {}
        if self.design.static_membership and request.instance:
            own[INSTANCE] = request.instance
        if self.design.static_membership and INSTANCE not in {**own, **request.settings}:
            raise ConfigurationError(f"a static member needs a name of its own. Set {INSTANCE}=...")
        config, warnings = self._config(request, own)
        for warning in warnings:
            log.warning("%s: %s", request.process, warning)
        gate = {} if self.design.coordinator else {"gate": request.gate}  # only operations of ZooKeeper are held up
        return self.load()(config, tracer=tracer, process=request.process, runtime=request.runtime, **gate)

    def _config(self, request: ConsumerRequest, own: Mapping[str, str]) -> tuple[Any, list[str]]:
        """`own` are settings that make the design, but for those of the request."""
        given = {**own, **request.settings, "group.id": request.group}
        if self.design.coordinator:
            given = {"client.id": request.client_id, **given, "bootstrap.servers": request.bootstrap}
        if self.design.zookeeper_sessions:
            given["zookeeper.connect"] = request.zookeeper
        return self.configured(given)


def _zookeeper() -> type[ZooKeeperConsumer]:
    from zkconsumer.consumer import ZooKeeperConsumer

    return ZooKeeperConsumer


def _server() -> type[ServerConsumer]:
    from coordinator.client.server.consumer import ServerConsumer

    return ServerConsumer


def _classic() -> type[CoordinatorConsumer]:
    from coordinator.client.classic.consumer import CoordinatorConsumer

    return CoordinatorConsumer


def _kip848() -> type[Kip848Consumer]:
    from coordinator.client.consumer.consumer import Kip848Consumer

    return Kip848Consumer


async def subscribe_by_pattern(
    consumer: GroupConsumer, topic_filter: TopicFilter, streams: int, listener: RebalanceListener
) -> None:
    """Subscribe to topics by a pattern; only consumers of the zookeeper design can."""
    assert isinstance(consumer, _zookeeper())
    await consumer.subscribe_pattern(topic_filter, streams, listener)


async def subscribe_by_regex(
    consumer: GroupConsumer, design: str, regex: str, streams: int, listener: RebalanceListener
) -> None:
    """Subscribe to topics by a regular expression as the newest consumer of the design does.

    A coordinator of KIP-848 matches it (RE2); in the other designs each member does (Java, and a comma means `|` in
    `zookeeper`). Raises `UserError` in `server`.
    """
    if DESIGNS[design].reconciles:
        assert isinstance(consumer, _kip848())
        await consumer.subscribe_regex(regex, streams, listener)
    else:
        await consumer.subscribe_pattern(regex, streams, listener)


CONSUMERS: Mapping[str, ConsumerFactory] = MappingProxyType(
    {
        ZOOKEEPER: ConsumerFactory(
            design=DESIGNS[ZOOKEEPER],
            load=_zookeeper,
            configured=ZkConsumerConfig.from_settings,
            known_elsewhere=KAFKA_OLD_CONSUMER_SETTINGS,
            session_setting="zookeeper.session.timeout.ms",
            name_setting="consumer.id",
        ),
        SERVER: ConsumerFactory(
            design=DESIGNS[SERVER],
            load=_server,
            configured=ServerConsumerConfig.from_settings,
            known_elsewhere=KNOWN_ELSEWHERE,
            commits=lambda group: ServerCalls(
                group=group, strategy="", wait_ms=0, patience_ms=0, request_timeout_ms=_REQUEST_MS
            ),
            made_by=frozenset({STRATEGY}),
            session_setting="zookeeper.session.timeout.ms",
        ),
        **{
            name: ConsumerFactory(
                design=DESIGNS[name],
                load=_classic,
                configured=CoordinatorConsumerConfig.from_settings,
                known_elsewhere=KAFKA_CONSUMER_SETTINGS,
                made_by=frozenset({STRATEGY} if DESIGNS[name].strategy else ()),
            )
            for name in CLASSIC
        },
        CONSUMER: ConsumerFactory(
            design=DESIGNS[CONSUMER],
            load=_kip848,
            configured=Kip848ConsumerConfig.from_settings,
            known_elsewhere=KNOWN_BEYOND_KIP848,
            refuse=refuse,
            commits=lambda group: Kip848Calls(group=group, request_timeout_ms=_REQUEST_MS),
            session_setting="group.consumer.session.timeout.ms",
            heartbeat_setting="group.consumer.heartbeat.interval.ms",
        ),
    }
)


def load_all() -> None:
    """Import all consumers: for a process that forks members of any design."""
    for factory in CONSUMERS.values():
        factory.load()
