"""Reading one stream, record by record, as applications of 0.8 did: `async for record in iterator`.

Source: ConsumerIterator and IteratorTemplate, Kafka 0.8.2. `ZooKeeperConsumer.streams()` returns these, and from then
on `getmany` raises, since a record that an iterator has looked ahead at is no longer in the stream.

- The position advances when a record is handed out (`anext`), not when it is found: `has_next` looks ahead.
- A record that was looked ahead at survives a rebalance, which clears queue and current chunk. It is handed out
  afterwards, and again by the new owner of its partition, which may be this very stream: one possible duplicate.
- Without a chunk for `consumer.timeout.ms`, `ConsumerTimeout` is raised; the iterator can be used again.
- At a record above fetch.message.max.bytes, or at a corrupt batch, this call and every later one raise
  `MessageSizeTooLarge` or `CorruptRecords`: the iterator is of no further use, and its queue is never emptied.
- Closing the consumer ends the iterator.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from kernel.errors import ConsumerTimeout
from kernel.values import Batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.values import Record
    from zkconsumer.records.streams import Found, Stream


class StreamIterator:
    """One stream's records, for one task at a time, as a KafkaStream was for one thread."""

    def __init__(
        self,
        stream: Stream,
        *,
        timeout_ms: int | None,
        handed_out: Callable[[Batch], None],
        check: Callable[[], None],
    ) -> None:
        """`handed_out` is called with every record; `check` raises if the consumer as a whole has failed."""
        self._stream = stream
        self._timeout_ms = timeout_ms
        self._handed_out = handed_out
        self._check = check
        self._ahead: Found | None = None

    @property
    def number(self) -> int:
        """The stream's number, as listeners and traces name it."""
        return self._stream.number

    @property
    def thread(self) -> str:
        """The thread id that owner nodes name."""
        return self._stream.thread

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        if not await self.has_next():
            raise StopAsyncIteration
        found, self._ahead = self._ahead, None
        assert found is not None
        found.info.consumed = found.record.offset + 1
        self._handed_out(Batch(self._stream.number, found.info.topic_partition, (found.record,)))
        return found.record

    async def has_next(self) -> bool:
        """Wait for a record, which `anext` then hands out; False if the consumer was closed.

        Raises `ConsumerTimeout`, or the stream's failure.
        """
        loop = asyncio.get_running_loop()
        deadline = None if self._timeout_ms is None else loop.time() + self._timeout_ms / 1000
        filled = self._stream.filled
        while self._ahead is None:
            self._check()
            # All streams of a consumer share the event: a chunk that is queued after this wakes all waiters.
            filled.clear()
            self._ahead = self._stream.find()
            if self._ahead is not None:
                break
            if self._stream.failure is not None:
                raise self._stream.failure
            if self._stream.ended:
                return False
            if deadline is not None and loop.time() >= deadline:
                raise ConsumerTimeout(f"{self.thread}: no record within consumer.timeout.ms={self._timeout_ms}")
            try:
                async with asyncio.timeout_at(deadline):
                    await filled.wait()
            except TimeoutError:
                continue  # check once more; then the deadline has passed
        return True
