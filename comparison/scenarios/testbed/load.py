"""The load: numbered records for each partition, at a steady rate, with every acknowledgement in the trace.

The rate follows the clock: records that a slow broker delays are sent as soon as possible, so that the number of
records depends only on the length of the run.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Protocol

from comparison.scenarios.plan.parameters import spread
from kernel.clock import NS_PER_S
from kernel.serials import numbered_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel.trace.writer import Tracer
    from kernel.values import TopicPartition

_TURN_S = 0.05
#: First records of new partitions in a turn: a thousand a second.
_FIRST_A_TURN = 50
#: Room for a name and a timestamp, as small events have.
_PADDING = b"x" * 64


class Sender(Protocol):
    """A producer for the load: acknowledged sends, in order within a partition."""

    async def send(self, tp: TopicPartition, value: bytes) -> int: ...


class Load:
    """Produces until it is stopped. `acknowledged` is the next serial of each partition that is not stored yet."""

    def __init__(self, sender: Sender, partitions: Sequence[TopicPartition], rate: int, tracer: Tracer) -> None:
        self.acknowledged: dict[TopicPartition, int] = dict.fromkeys(partitions, 0)
        #: The log end as the producer knows it: one past the last acknowledged record's offset.
        self.ends: dict[TopicPartition, int] = dict.fromkeys(partitions, 0)
        self._sender = sender
        self._partitions = list(partitions)
        self.rate = rate  #: records per second; may be changed while it runs
        self._tracer = tracer
        self._serials: dict[TopicPartition, int] = dict.fromkeys(partitions, 0)
        self._grown: list[TopicPartition] = []  #: that may have no record yet
        self._sending: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()
        self._failed: BaseException | None = None

    async def run(self) -> None:
        """Produce until `stop`. Raises what a send raised."""
        loop = asyncio.get_running_loop()
        before, due, sent = loop.time(), 0.0, 0
        while not self._stopping.is_set() and self._failed is None:
            now = loop.time()
            due += (now - before) * self.rate
            before = now
            self._send_range(sent, int(due))
            sent = int(due)
            self._send_first()
            try:
                async with asyncio.timeout(_TURN_S):
                    await self._stopping.wait()
            except TimeoutError:
                continue
        if self._sending:
            await asyncio.gather(*self._sending)
        if self._failed is not None:
            raise self._failed

    def grow(self, partitions: Sequence[TopicPartition]) -> None:
        """Produce to these partitions as well, and soon a first record to each of them, whatever the rate."""
        for tp in partitions:
            self.ends[tp] = 0
            self.acknowledged[tp] = self._serials.setdefault(tp, 0)  # of a topic that was created again, they go on
        self._partitions.extend(partitions)
        self._grown.extend(partitions)

    async def leave_out(self, topic: str) -> dict[TopicPartition, int]:
        """Write no more to a topic, and wait until what was sent to it is acknowledged; its log ends."""
        self._partitions = [tp for tp in self._partitions if tp.topic != topic]
        self._grown = [tp for tp in self._grown if tp.topic != topic]
        if self._sending:
            await asyncio.wait(self._sending)
        left = {tp: end for tp, end in self.ends.items() if tp.topic == topic}
        self.ends = {tp: end for tp, end in self.ends.items() if tp.topic != topic}
        return left

    def stop(self) -> None:
        """Stop sending. `run` returns once everything sent is acknowledged."""
        self._stopping.set()

    def _send_range(self, first: int, after: int) -> None:
        """What is due while there is no topic is left out."""
        numbered: dict[TopicPartition, list[int]] = defaultdict(list)
        for index in range(first, after) if self._partitions else ():
            tp = spread(self._partitions, index)
            numbered[tp].append(self._serials[tp])
            self._serials[tp] += 1
        for tp, serials in numbered.items():
            self._begin_sending(tp, serials)

    def _send_first(self) -> None:
        """Send a record to some partitions that have none yet: hundreds at once would hold up the brokers."""
        now, self._grown = self._grown[:_FIRST_A_TURN], self._grown[_FIRST_A_TURN:]
        for tp in now:
            if not self._serials[tp]:
                self._serials[tp] = 1
                self._begin_sending(tp, [0])

    def _begin_sending(self, tp: TopicPartition, serials: list[int]) -> None:
        task = asyncio.create_task(self._send(tp, serials))
        self._sending.add(task)
        task.add_done_callback(self._done)

    async def _send(self, tp: TopicPartition, serials: list[int]) -> None:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        offsets = await asyncio.gather(*(self._sender.send(tp, numbered_value(serial, _PADDING)) for serial in serials))
        latency_ns = round((loop.time() - began_s) * NS_PER_S)
        for start, end in _runs(offsets):
            self._tracer.emit(
                "records_acked",
                topic=tp.topic,
                partition=tp.partition,
                first=offsets[start],
                last=offsets[end],
                serial_first=serials[start],
                serial_last=serials[end],
                latency_ns=latency_ns,
            )
        self.acknowledged[tp] = max(self.acknowledged[tp], serials[-1] + 1)
        self.ends[tp] = max(self.ends[tp], offsets[-1] + 1)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failed = self._failed or task.exception()


def _runs(offsets: Sequence[int]) -> list[tuple[int, int]]:
    """Index ranges of consecutive offsets, ends included."""
    runs: list[tuple[int, int]] = []
    start = 0
    for index in range(1, len(offsets) + 1):
        if index == len(offsets) or offsets[index] != offsets[index - 1] + 1:
            runs.append((start, index - 1))
            start = index
    return runs
