"""A consumer of any design, for programs: `consumer` makes one, `Consumer` is what it gives.

It adds to `kernel.consumer.GroupConsumer`, which all designs implement, what a program expects: one call with the
designs' servers and settings, `async with`, and iteration over records.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Self

from comparison.consumers import CONSUMERS, ConsumerRequest
from kernel.designs import DESIGN_NAMES, DESIGNS
from kernel.errors import ConfigurationError
from kernel.settings import resolve
from kernel.suggestions import did_you_mean, unknown
from kernel.trace.writer import SilentTracer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType

    from kernel.consumer import Capabilities, GroupConsumer, RebalanceListener
    from kernel.values import Batch, CommitOutcome, Record, TopicPartition

    #: One topic, several, or {topic: number of streams}.
    Topics = str | Sequence[str] | Mapping[str, int]

log = logging.getLogger(__name__)

#: Settings that are arguments of `consumer`.
_ARGUMENTS = {"group.id": "group", "bootstrap.servers": "bootstrap", "zookeeper.connect": "zookeeper"}
_POLL_MS = 1000


def consumer(
    *,
    design: str,
    group: str,
    topics: Topics = (),
    bootstrap: str = "",
    zookeeper: str = "",
    settings: Mapping[str, str | float | bool] | None = None,
    listener: RebalanceListener | None = None,
) -> Consumer:
    """A consumer of `group`, not connected yet; use it with `async with`, which connects and subscribes.

    `bootstrap` is HOST:PORT[,HOST:PORT...] of brokers, `zookeeper` is HOST:PORT[,HOST:PORT...][/chroot]. A design that
    does not need one of them ignores it. `settings` have Kafka's names, as the design knows them. Without `topics`,
    call `subscribe` yourself. Raises `ConfigurationError` for an unknown design or setting, a value that a setting
    cannot have, and a server that is missing.
    """
    if design not in DESIGNS:
        raise ConfigurationError(unknown("design", design, DESIGN_NAMES))
    if not group:
        raise ConfigurationError("group is empty. Name the group to join")
    needs = {"bootstrap": DESIGNS[design].coordinator, "zookeeper": DESIGNS[design].zookeeper_sessions}
    given = {"bootstrap": bootstrap, "zookeeper": zookeeper}
    for name, address in given.items():
        if needs[name] and not address:
            raise ConfigurationError(f"{name} is missing. The {design} design needs {name}='HOST:PORT'")
    if listener is not None and not topics:
        raise ConfigurationError("a listener needs a subscription. Give topics too, or give it to subscribe()")
    own = _settings_of(design, {name: _text(value) for name, value in (settings or {}).items()})
    request = ConsumerRequest(
        process=f"the consumer of {group}",
        group=group,
        client_id="rebalance-lab",
        zookeeper=zookeeper if needs["zookeeper"] else "",
        bootstrap=bootstrap if needs["bootstrap"] else "",
        settings=own,
    )
    return Consumer(CONSUMERS[design].consumer(request, SilentTracer()), topics, listener)


class Consumer:
    """A consumer in a group, of any design; one event loop uses it.

    `async with` connects, subscribes to the topics that it was made with, and leaves the group at the end.
    """

    def __init__(self, inner: GroupConsumer, topics: Topics = (), listener: RebalanceListener | None = None) -> None:
        self._inner = inner
        self._topics = topics
        self._listener = listener

    async def __aenter__(self) -> Self:
        try:
            await self._inner.start()
            if self._topics:
                await self.subscribe(self._topics, self._listener)
        except BaseException:
            await self._inner.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self._inner.close()

    @property
    def capabilities(self) -> Capabilities:
        """What this design's consumer can do of what not all can."""
        return self._inner.capabilities

    async def subscribe(self, topics: Topics, listener: RebalanceListener | None = None) -> None:
        """Join the group for one topic, several, or {topic: number of streams}; a list gives each topic one stream.

        `zookeeper` rebalances here, and raises `RebalanceFailed` if every attempt failed; the others join in the first
        `getmany`. Another call replaces topics and listener, in designs that can (`capabilities.resubscribe`).
        """
        await self._inner.subscribe(_streams(topics), listener)

    async def subscribe_pattern(
        self, pattern: str, streams: int = 1, listener: RebalanceListener | None = None
    ) -> None:
        """Join the group for all present and future topics whose name matches a Java regular expression.

        Only in designs with `capabilities.patterns`.
        """
        await self._inner.subscribe_pattern(pattern, streams, listener)

    async def unsubscribe(self) -> None:
        """Give everything up and leave the group, in designs with `capabilities.resubscribe`; it need not commit."""
        await self._inner.unsubscribe()

    async def __aiter__(self) -> AsyncIterator[Record]:
        """Records one by one, without an end.

        Each is a poll of its own, so that a rebalance comes between two records, and a commit has exactly the records
        that were returned. `getmany` is faster.
        """
        while True:
            for batch in await self.getmany(max_records=1):
                for record in batch.records:
                    yield record

    async def getmany(self, *, timeout_ms: int = _POLL_MS, max_records: int = 500) -> Sequence[Batch]:
        """Wait up to `timeout_ms` for records; an empty sequence if there are none.

        Positions are then behind all of them: process them before you commit.
        """
        return await self._inner.getmany(timeout_ms=timeout_ms, max_records=max_records)

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> CommitOutcome:
        """Commit the positions, or these offsets (of the *next* record). `refused` of the outcome says what was not.

        `zookeeper` commits all positions or none (`capabilities.commit_single_partitions`).
        """
        return await self._inner.commit(offsets)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Return records from this offset on; in `on_assigned` it replaces the group's committed offset.

        Only in designs with `capabilities.seek`. Nothing is committed by it.
        """
        self._inner.seek(partition, offset)

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Return nothing from these partitions until `resume`, or until a rebalance takes them from this consumer.

        Only in designs with `capabilities.pause`. Designs that stop everything drop all pauses in every rebalance.
        """
        self._inner.pause(partitions)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Return records of these partitions again, where the pause began."""
        self._inner.resume(partitions)

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused now."""
        return self._inner.paused()

    def position(self, partition: TopicPartition) -> int | None:
        """The next offset to be returned, or None if the partition is not ours or has no position yet."""
        return self._inner.position(partition)

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this consumer believes it owns, in all its streams."""
        return frozenset().union(*self._inner.assignment().values())

    async def close(self) -> None:
        """Leave the group in the design's own order; `async with` does so by itself."""
        await self._inner.close()


def _streams(topics: Topics) -> dict[str, int]:
    if isinstance(topics, str):
        return {topics: 1}
    return dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, 1)


def _text(value: str | float | bool) -> str:
    """A value as Kafka writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _settings_of(design: str, given: Mapping[str, str]) -> dict[str, str]:
    """The settings that the design's consumer has. Raises `ConfigurationError`."""
    table, elsewhere = CONSUMERS[design].settings, CONSUMERS[design].known_elsewhere
    for name in given:
        if name in _ARGUMENTS:
            raise ConfigurationError(f"{name} is not among the settings. Write {_ARGUMENTS[name]}={given[name]!r}")
        others = [other for other, factory in CONSUMERS.items() if name in factory.settings]
        if name not in table and others:
            raise ConfigurationError(
                f"the {design} design has no setting {name!r}, as {', '.join(others)} have{did_you_mean(name, table)}"
            )
    for warning in resolve(table, given, known_elsewhere=elsewhere)[1]:
        log.warning("%s", warning)
    return {name: value for name, value in given.items() if name in table}
