"""Offsets sent within transactions: pending until a marker says how the transaction ended.

Until then they are invisible, except that a fetch of stable offsets gets UNSTABLE_OFFSET_COMMIT (KIP-447). Of a plain
commit and a transactional one, the later in the log wins, whichever takes effect first (KAFKA-5247). After a reload
they are ordered by commit time; on equal times the pending one wins.

The partition also keeps each producer's epoch and that of the coordinator that last ended its transaction, and refuses
requests and markers with lower epochs.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, cast

from coordinator.groups.errors import Error
from coordinator.groups.records import OffsetKey, OffsetRecord, PendingKey, ProducerKey, ProducerRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from coordinator.groups.records import Change, StoredChange
    from coordinator.groups.requests import Mark, Producer

OffsetChange = tuple[OffsetKey, OffsetRecord | None] | tuple[PendingKey, OffsetRecord | None]

_UNSEEN = ProducerRecord(-1, -1)


class PendingOffsets:
    """Of one partition. Changes only when records are applied, like all stored state."""

    def __init__(self) -> None:
        self.producers: dict[int, ProducerRecord] = {}
        self._offsets: dict[int, dict[PendingKey, tuple[int, OffsetRecord]]] = {}  # by producer, with log position
        self._counts: Counter[OffsetKey] = Counter()  # producers with a pending offset for the key
        #: The log position of an offset's last commit, while offsets are pending.
        self._positions: dict[OffsetKey, int] = {}
        self._end = 0

    # -- hard state -------------------------------------------------------------------------------------------

    def add(self, key: PendingKey, record: OffsetRecord) -> None:
        self._end += 1
        of_producer = self._offsets.setdefault(key.producer_id, {})
        if key not in of_producer:
            self._counts[_plain(key)] += 1
        of_producer[key] = (self._end, record)

    def remove(self, key: PendingKey, *, committed: bool = False) -> None:
        of_producer = self._offsets.get(key.producer_id, {})
        position, _ = of_producer.pop(key, (0, None))
        if not position:
            return
        plain = _plain(key)
        self._counts[plain] -= 1
        if not of_producer:
            del self._offsets[key.producer_id]
        if committed:
            self._positions[plain] = max(position, self._positions.get(plain, 0))
        if not self._offsets:
            self._counts.clear()
            self._positions.clear()

    def know(self, key: ProducerKey, record: ProducerRecord | None) -> None:
        if record is None:
            self.producers.pop(key.producer_id, None)
        else:
            self.producers[key.producer_id] = record

    def learn_fences(self, changes: Iterable[StoredChange]) -> None:
        """Take the producers' epochs from stored records."""
        for key, fence in changes:
            if isinstance(key, ProducerKey):
                self.know(key, cast("ProducerRecord", fence))

    def overtaken(self, commit: Iterable[OffsetChange]) -> None:
        """A plain commit was stored."""
        if not self._offsets:
            return
        for key, _ in commit:
            if isinstance(key, OffsetKey):
                self._end += 1
                self._positions[key] = self._end

    def settle(self, offsets: Mapping[str, Mapping[tuple[str, int], OffsetRecord]]) -> None:
        """After loading, which loses log positions: order by commit time."""
        for of_producer in self._offsets.values():
            for key, (_, record) in of_producer.items():
                of_producer[key] = (max(record.committed_wall_ms, 1), record)
                self._end = max(self._end, record.committed_wall_ms)
                plain = offsets.get(key.group_id, {}).get((key.topic, key.partition))
                if plain is not None:
                    self._positions[_plain(key)] = plain.committed_wall_ms
                    self._end = max(self._end, plain.committed_wall_ms)

    # -- lookups -----------------------------------------------------------------------------------------------

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        return bool(self._counts) and self._counts[OffsetKey(group_id, topic, partition)] > 0

    def every(self) -> Iterator[PendingKey]:
        return (key for of_producer in self._offsets.values() for key in of_producer)

    def of_group(self, group_id: str) -> list[PendingKey]:
        return [key for key in self.every() if key.group_id == group_id]

    def is_open(self, producer: Producer) -> bool:
        """Whether this incarnation of the producer has pending offsets here."""
        known = self.producers.get(producer.id, _UNSEEN)
        return producer.epoch == known.producer_epoch and producer.id in self._offsets

    def fences(self, producer: Producer) -> bool:
        """Whether a later incarnation of this producer was seen."""
        return producer.epoch < self.producers.get(producer.id, _UNSEEN).producer_epoch

    def seen(self, producer: Producer) -> tuple[Change, ...]:
        """The fence to be stored with the first offset of this incarnation."""
        known = self.producers.get(producer.id, _UNSEEN)
        if producer.epoch <= known.producer_epoch:
            return ()
        return ((ProducerKey(producer.id), known._replace(producer_epoch=producer.epoch)),)

    def mark_refusal(self, mark: Mark) -> Error | None:
        """The error for an outdated marker: a later coordinator or producer has ended the transaction."""
        known = self.producers.get(mark.producer.id, _UNSEEN)
        if mark.coordinator_epoch < known.coordinator_epoch:
            return Error.TRANSACTION_COORDINATOR_FENCED
        return Error.INVALID_PRODUCER_EPOCH if mark.producer.epoch < known.producer_epoch else None

    def marked(self, mark: Mark) -> tuple[Change, ...]:
        """The records that end the producer's transaction."""
        fence = ProducerRecord(mark.producer.epoch, mark.coordinator_epoch)
        changes: list[Change] = []
        if self.producers.get(mark.producer.id) != fence:
            changes.append((ProducerKey(mark.producer.id), fence))
        for key, (position, record) in self._offsets.get(mark.producer.id, {}).items():
            if mark.commits and position >= self._positions.get(_plain(key), 0):
                changes.append((_plain(key), record))
            changes.append((key, None))
        return tuple(changes)


def _plain(key: PendingKey) -> OffsetKey:
    return OffsetKey(key.group_id, key.topic, key.partition)
