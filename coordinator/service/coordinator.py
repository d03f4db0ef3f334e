"""The coordinator on one broker, composed: the partitions it leads, and what works with them."""

from __future__ import annotations

import functools
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from coordinator.groups.consumer import topics as consumer_topics
from coordinator.groups.consumer.groups import ConsumerGroups
from coordinator.groups.machine import Machine
from coordinator.groups.server.strategies import assignment_settings
from coordinator.service.led_partition import GROUP_LOG, LedPartition
from coordinator.service.led_partitions import LedPartitions
from coordinator.service.limits import limits_of
from coordinator.service.peers import Peers
from coordinator.service.strategy_runner import StrategyRunner
from coordinator.service.topic_searcher import TopicSearcher
from coordinator.service.topics import Topics
from coordinator.service.transaction_markers import TransactionMarkers
from coordinator.service.verification import TransactionVerifier
from coordinator.service.watcher import Watcher
from coordinator.service.zookeeper_offsets import ZooKeeperOffsets
from kernel.broker.settings.group_configs import Timeouts, timeouts_of
from kernel.trace.writer import SilentTracer

if TYPE_CHECKING:
    from coordinator.groups.consumer.requests import ConsumerSettings
    from kernel.broker.services import BrokerServices
    from kernel.broker.storage.logs import KeyValueLog


class Coordinator:
    """What handlers use. Each part is one attribute; none of the parts knows the coordinator."""

    def __init__(self, services: BrokerServices, consumer: ConsumerSettings) -> None:
        self.services = services
        self.topics = Topics(services.cluster, services.runtime.clock)
        self._searcher = TopicSearcher(self.topics, services.runtime)
        self.partitions = LedPartitions(services, self._open_partition)
        self._peers = Peers()
        self.markers = TransactionMarkers(services, self.partitions, self._peers)
        self.verifier = TransactionVerifier(services, self.partitions, self._peers)
        # The log lines are made from the events of traces.
        traced = not isinstance(services.tracer, SilentTracer) or logging.getLogger(GROUP_LOG).isEnabledFor(
            logging.INFO
        )
        self._limits = limits_of(services.config, traced=traced)
        self.zookeeper_offsets = ZooKeeperOffsets(
            services.session, metadata_length_max=self._limits.offset_metadata_bytes_max
        )
        self._settings = assignment_settings(services.config)
        self._consumer = consumer
        self._watcher = Watcher(services, self.partitions.every_led)
        self._strategy_runner = StrategyRunner(self._settings, services.runtime.threads)

    def _open_partition(self, log: KeyValueLog, leader_epoch: int) -> LedPartition:
        self._watcher.follow_topics()
        return LedPartition(
            Machine(
                self._limits,
                self._settings,
                self.topics.size_of,
                ConsumerGroups(
                    self._consumer_settings_of,
                    consumer_topics.Topics(
                        self.topics.find, self.topics.name_of, self.topics.view, self.topics.names_version
                    ),
                ),
            ),
            log,
            self.services,
            deliver=functools.partial(self.markers.deliver, epoch=leader_epoch),
            watch=self._watcher.watch,
            decide=self._strategy_runner.decide,
            search=self._searcher.search,
        )

    def _consumer_settings_of(self, group_id: str) -> ConsumerSettings:
        """The broker's, with what the group has of its own; the same object as long as that is the same."""
        own, brokers = self.services.group_configs(group_id), self._consumer
        if not own:
            return brokers
        defaults = Timeouts(brokers.session_timeout_ms, brokers.heartbeat_interval_ms)
        return _with_timeouts(brokers, timeouts_of(own, defaults))

    async def stop(self) -> None:
        """Stop the partitions first, then what works for them."""
        await self.partitions.stop()
        await self._strategy_runner.stop()
        await self._searcher.stop()
        await self._watcher.stop()
        await self._peers.close()


@functools.lru_cache(maxsize=1_000)
def _with_timeouts(settings: ConsumerSettings, timeouts: Timeouts) -> ConsumerSettings:
    return replace(
        settings, session_timeout_ms=timeouts.session_timeout_ms, heartbeat_interval_ms=timeouts.heartbeat_interval_ms
    )
