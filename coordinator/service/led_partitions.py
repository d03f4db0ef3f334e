"""The partitions of `__consumer_offsets` that this broker leads, and so the groups that it answers for.

Every request for a group is checked in this order: an invalid group id (24, checked by the handlers), the broker is
stopping (15), the group's partition is loading (14), the partition is led by another broker (16). While a partition
loads, Heartbeat gets NONE and SyncGroup REBALANCE_IN_PROGRESS instead, because old clients do not handle 14 there.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from coordinator.groups.errors import Error
from coordinator.groups.placement import partition_of
from coordinator.service.loading import Loading
from coordinator.service.record_reader import MalformedRecord
from kernel.broker.storage.errors import Fenced, StorageFailed
from kernel.topic_names import OFFSETS_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.service.led_partition import LedPartition
    from kernel.broker.cluster.cluster_view import Leadership
    from kernel.broker.services import BrokerServices
    from kernel.broker.storage.logs import KeyValueLog
    from kernel.values import TopicPartition

    #: Makes an empty partition over its log; the number is the leader epoch.
    OpenPartition = Callable[[KeyValueLog, int], LedPartition]


class LedPartitions:
    """Those led or loading. A listener of the cluster's leadership (`on_lead`, `on_resign`)."""

    def __init__(self, services: BrokerServices, open_partition: OpenPartition) -> None:
        self._cluster = services.cluster
        self._config = services.config
        self._storage = services.storage
        self._open_partition = open_partition
        self._led: dict[int, LedPartition] = {}
        self._led_at: dict[int, Leadership] = {}  #: of the same partitions
        self._loading: set[int] = set()
        self._loads = Loading(services.runtime.stopwatch)
        self._stopping = False
        self._count, self._counted_in = 0, object()  #: partitions of `__consumer_offsets`, and the snapshot's

    # -- leadership ------------------------------------------------------------------------------------------------

    async def on_lead(self, leadership: Leadership) -> None:
        """Load the partition's groups. The storage fences our predecessor first; requests get 14 meanwhile.

        If loading fails, nothing of an earlier leadership is served (KAFKA-4362, KAFKA-5600), except that a leader
        epoch below the current one changes nothing (KAFKA-10614). Raises Fenced, StorageFailed, LogStopped.
        """
        number = leadership.topic_partition.partition
        self._refuse_older(leadership)
        await self._give_up(number)
        self._loading.add(number)
        try:
            log = await self._storage.take_over_pairs(
                leadership.topic_partition, leadership.topic_id, leadership.leader_epoch
            )
            partition = self._open_partition(log, leadership.leader_epoch)
            try:
                await partition.load(self._loads)
                if not self._stopping:
                    self._led[number], self._led_at[number] = partition, leadership
            except MalformedRecord as error:
                raise StorageFailed(f"{leadership.topic_partition} cannot be loaded: {error}") from error
            finally:
                if self._led.get(number) is not partition:  # a partial load may have set timers
                    await partition.close()
        finally:
            self._loading.discard(number)

    async def on_resign(self, topic_partition: TopicPartition) -> None:
        """Give the partition up. Waiting clients get NOT_COORDINATOR and look for the new coordinator."""
        try:
            await self._give_up(topic_partition.partition)
        finally:
            self._storage.resign(topic_partition)

    def _refuse_older(self, leadership: Leadership) -> None:
        known = self._led_at.get(leadership.topic_partition.partition)
        if known is None or known.topic_id != leadership.topic_id:  # epochs of a recreated topic start at 0
            return
        if leadership.leader_epoch < known.leader_epoch:
            raise Fenced(
                f"{leadership.topic_partition} is led at epoch {known.leader_epoch}; "
                f"ignored the outdated leader epoch {leadership.leader_epoch}"
            )

    async def _give_up(self, number: int) -> None:
        self._led_at.pop(number, None)
        partition = self._led.pop(number, None)
        if partition is not None:
            await partition.close()
            self._loads.given_up()

    async def stop(self) -> None:
        """Refuse new requests, answer waiting ones, finish writes."""
        self._stopping = True
        led, self._led = list(self._led.values()), {}
        for partition in led:
            partition.unload()  # all at once: none may answer while another is closing
        await asyncio.gather(*(partition.close() for partition in led))
        self._loads.given_up()

    # -- lookups ---------------------------------------------------------------------------------------------------

    def at(self, group_id: str) -> LedPartition | Error:
        """The group's partition, or the error that clients get for it."""
        return self.at_number(self.number_of(group_id))

    def at_number(self, number: int) -> LedPartition | Error:
        """As `at`, by partition number."""
        if self._stopping:
            return Error.COORDINATOR_NOT_AVAILABLE
        if number in self._loading:
            return Error.COORDINATOR_LOAD_IN_PROGRESS
        partition = self._led.get(number)
        if partition is None or partition.closed:
            return Error.NOT_COORDINATOR
        return partition

    def led(self) -> list[LedPartition] | Error:
        """All led partitions, for ListGroups."""
        if self._stopping:
            return Error.COORDINATOR_NOT_AVAILABLE
        if self._loading:
            return Error.COORDINATOR_LOAD_IN_PROGRESS
        return [self._led[number] for number in sorted(self._led) if not self._led[number].closed]

    def every_led(self) -> list[LedPartition]:
        """As `led`, also while others load: for notifications that concern all groups."""
        return list(self._led.values())

    def number_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` of a group or a transactional id."""
        snapshot = self._cluster.snapshot
        if snapshot is not self._counted_in:
            topic = snapshot.topics.get(OFFSETS_TOPIC)
            count = len(topic.partitions) if topic is not None else 0
            self._count = count or self._config.number("offsets.topic.num.partitions")
            self._counted_in = snapshot
        return partition_of(group_id, self._count)
