"""Which groups this broker answers for: the partitions of `__consumer_offsets` that it leads, and the gate before them.

Every request of the group protocol passes the same gate, in this order: a bad group id (24), the broker stopping
(15), the group's partition loading (14; Heartbeat is told NONE and SyncGroup REBALANCE_IN_PROGRESS then, because
old clients do not know 14 there), the partition led elsewhere (16).
"""

from __future__ import annotations

import asyncio
import functools
import os
from typing import TYPE_CHECKING

from coordinator.groups.errors import Error
from coordinator.groups.machine import Machine
from coordinator.groups.outcome import Limits
from coordinator.groups.placement import partition_of
from coordinator.groups.server.strategies import rules_of
from coordinator.service.decisions import Decisions
from coordinator.service.led_partition import LedPartition
from coordinator.service.loading import Loading
from coordinator.service.peers import Peers
from coordinator.service.record_codec import MalformedRecord
from coordinator.service.transaction_markers import Deliveries
from coordinator.service.watched_groups import Eyes
from kernel.broker.cluster.cluster_view import GROUP_METADATA_TOPIC
from kernel.broker.storage.errors import Fenced, StorageFailed
from kernel.trace.writer import SilentTracer
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coordinator.groups.requests import OffsetToCommit
    from kernel.broker.cluster.cluster_view import Leadership
    from kernel.broker.services import BrokerServices
    from kernel.broker.settings.configuration import BrokerConfig


#: What members may bring however small message.max.bytes is, if no setting says otherwise.
METADATA_BYTES_LEAST = 65_536

#: What makes 128 random bits a UUID of version 4 (RFC 9562).
_FIXED_BITS = 4 << 76 | 0b10 << 62
_RANDOM_BITS = ~(0xF << 76 | 0b11 << 62)


def limits_of(config: BrokerConfig, *, traced: bool) -> Limits:
    return Limits(
        initial_rebalance_delay_ms=config.number("group.initial.rebalance.delay.ms"),
        session_timeout_ms_min=config.number("group.min.session.timeout.ms"),
        session_timeout_ms_max=config.number("group.max.session.timeout.ms"),
        members_max=config.number("group.max.size"),
        member_bytes_max=config.number("group.member.metadata.max.bytes") or _part_of_a_record(config, 1 / 2),
        group_bytes_max=config.number("group.metadata.max.bytes") or _part_of_a_record(config, 3 / 4),
        offset_metadata_bytes_max=config.number("offset.metadata.max.bytes"),
        retention_ms=config.number("offsets.retention.minutes") * 60_000,
        retention_check_ms=config.number("offsets.retention.check.interval.ms"),
        transaction_timeout_ms_max=config.number("transaction.max.timeout.ms"),
        traced=traced,
    )


def _part_of_a_record(config: BrokerConfig, part: float) -> int:
    """A group is one record when it is stored: what its members bring leaves room for what they are assigned."""
    return max(int(config.number("message.max.bytes") * part), METADATA_BYTES_LEAST)


class Coordinator:
    """The partitions that this broker leads or is loading, and the gate before them."""

    def __init__(self, services: BrokerServices) -> None:
        self.services = services
        self._limits = limits_of(services.config, traced=not isinstance(services.tracer, SilentTracer))
        self._rules = rules_of(services.config)
        self._eyes = Eyes(services, self.every_led)
        self._decisions = Decisions(self._rules)
        self._led: dict[int, LedPartition] = {}
        self._led_at: dict[int, Leadership] = {}  #: of the same partitions
        self._loading: set[int] = set()
        self._loads = Loading()
        self._stopping = False
        self._count, self._counted_in = 0, object()  #: partitions of `__consumer_offsets`, and the snapshot's
        self.peers = Peers()
        self._deliveries = Deliveries(self)

    # -- leadership ------------------------------------------------------------------------------------------------

    async def on_lead(self, leadership: Leadership) -> None:
        """Load the partition's groups. Requests are answered 14 meanwhile; the storage fences our predecessor first.

        Whatever goes wrong, nothing of what was led before is left to answer from (KAFKA-4362, KAFKA-5600); only an
        epoch below the one that is led changes nothing (KAFKA-10614). Raises Fenced, StorageFailed, LogStopped.
        """
        number = leadership.topic_partition.partition
        self._refuse_older(leadership)
        await self._give_up(number)
        self._loading.add(number)
        try:
            services = self.services
            pairs = await services.storage.take_over_pairs(
                leadership.topic_partition, leadership.topic_id, leadership.leader_epoch
            )
            partition = LedPartition(
                Machine(self._limits, self._rules, self._size_of),
                pairs,
                services,
                deliver=functools.partial(self._deliveries.deliver, epoch=leadership.leader_epoch),
                look=self._eyes.look,
                decide=self._decisions.decide,
            )
            try:
                await partition.load(self._loads)
                if not self._stopping:
                    self._led[number], self._led_at[number] = partition, leadership
            except MalformedRecord as error:
                raise StorageFailed(f"{leadership.topic_partition} cannot be loaded: {error}") from error
            finally:
                if self._led.get(number) is not partition:  # timers of a part of it may be set
                    await partition.close()
        finally:
            self._loading.discard(number)

    async def on_resign(self, topic_partition: TopicPartition) -> None:
        """Whoever waits is told NOT_COORDINATOR and looks for the new one."""
        try:
            await self._give_up(topic_partition.partition)
        finally:
            self.services.storage.resign(topic_partition)

    def _refuse_older(self, leadership: Leadership) -> None:
        known = self._led_at.get(leadership.topic_partition.partition)
        if known is None or known.topic_id != leadership.topic_id:  # a topic that was made again counts from 0
            return
        if leadership.leader_epoch < known.leader_epoch:
            raise Fenced(
                f"{leadership.topic_partition} is led at epoch {known.leader_epoch}: "
                f"leading it at epoch {leadership.leader_epoch} comes late and is ignored"
            )

    async def _give_up(self, number: int) -> None:
        self._led_at.pop(number, None)
        partition = self._led.pop(number, None)
        if partition is not None:
            await partition.close()
            self._loads.given_up()

    async def stop(self) -> None:
        """The broker stops: refuse what comes, answer what waits, see writes out."""
        self._stopping = True
        led, self._led = list(self._led.values()), {}
        for partition in led:
            partition.unload()  # now: nobody is to be answered from it while the others are seen out
        await asyncio.gather(*(partition.close() for partition in led))
        self._loads.given_up()
        await self._decisions.stop()
        await self._eyes.stop()
        await self.peers.close()

    # -- the gate --------------------------------------------------------------------------------------------------

    def at(self, group_id: str) -> LedPartition | Error:
        """The partition that is responsible for the group, or why it cannot be asked here and now."""
        return self.at_number(self.number_of(group_id))

    def at_number(self, number: int) -> LedPartition | Error:
        """As `at`, by the number of the partition."""
        if self._stopping:
            return Error.COORDINATOR_NOT_AVAILABLE
        if number in self._loading:
            return Error.COORDINATOR_LOAD_IN_PROGRESS
        partition = self._led.get(number)
        if partition is None or partition.closed:
            return Error.NOT_COORDINATOR
        return partition

    def led(self) -> list[LedPartition] | Error:
        """All partitions led here, for ListGroups."""
        if self._stopping:
            return Error.COORDINATOR_NOT_AVAILABLE
        if self._loading:
            return Error.COORDINATOR_LOAD_IN_PROGRESS
        return [self._led[number] for number in sorted(self._led) if not self._led[number].closed]

    def every_led(self) -> list[LedPartition]:
        """As `led`, whatever is being loaded: for news that concern all groups."""
        return list(self._led.values())

    def number_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` for a group, or for a transactional id."""
        snapshot = self.services.cluster.snapshot
        if snapshot is not self._counted_in:
            topic = snapshot.topics.get(GROUP_METADATA_TOPIC)
            count = len(topic.partitions) if topic is not None else 0
            self._count = count or self.services.config.number("offsets.topic.num.partitions")
            self._counted_in = snapshot
        return partition_of(group_id, self._count)

    def has_partition(self, topic: str, partition: int) -> bool:
        """Whether offsets may be committed for it: a topic that is not there is refused partition by partition."""
        return self.services.cluster.snapshot.partition(TopicPartition(topic, partition)) is not None

    def unknown_among(self, offsets: Iterable[OffsetToCommit]) -> set[tuple[str, int]]:
        """Those for which `has_partition` is false."""
        topics = self.services.cluster.snapshot.topics
        unknown: set[tuple[str, int]] = set()
        topic, size = "", 0  # of the last one: they come topic by topic
        for o in offsets:
            if o.topic != topic:
                topic = o.topic
                view = topics.get(topic)
                size = 0 if view is None else len(view.partitions)
            if not 0 <= o.partition < size:
                unknown.add((topic, o.partition))
        return unknown

    def has_topic(self, topic: str) -> bool:
        return topic in self.services.cluster.snapshot.topics

    def _size_of(self, topic: str) -> int:
        view = self.services.cluster.snapshot.topics.get(topic)
        return 0 if view is None else len(view.partitions)

    @staticmethod
    def fresh_id() -> str:
        """The random part of a member id: a UUID of version 4, for less than Python's module takes."""
        digits = f"{int.from_bytes(os.urandom(16)) & _RANDOM_BITS | _FIXED_BITS:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
