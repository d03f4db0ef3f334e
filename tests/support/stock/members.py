"""Stock consumers as group members for tests, in child processes because they leave threads and sockets behind.

    async with stock_member("confluent", bootstrap, "g", "t", strategy="roundrobin") as member:
        member.owned, member.read, member.failure

The clients have this in common: one strategy, heartbeats of 200 ms, no auto-commit, and a commit of the records read
after each poll. A child is run as `python -m tests.support.stock.members KIND BOOTSTRAP GROUP TOPIC STRATEGY INSTANCE
SESSION_MS PAUSES`; if PAUSES is not empty, it pauses what it is first assigned. It writes a JSON line
{"owned": [partition...], "read": [[partition, offset]...]} on every change, and leaves the group when its standard
input ends, unless it is static (INSTANCE is not empty).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel.values import TopicPartition
from tests.support.java import member as java_member

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

CLIENTS = ("kafka-python", "aiokafka", "confluent")
#: The strategies of Kafka's four that each client has.
STRATEGIES = {
    "kafka-python": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "aiokafka": ("range", "roundrobin", "sticky"),
    "confluent": ("range", "roundrobin", "cooperative-sticky"),
}

#: Kafka's own consumer (`tests.support.java.member`), for the tests of the originals.
JAVA = "java"

#: Instead of a strategy: the coordinator assigns (KIP-848). confluent and Kafka's own consumer have it.
BROKERS = "the broker's"

#: A static member must return within its session, though its process may start slowly on a busy machine.
SESSION_MS, HEARTBEAT_MS = 60_000, 200
#: Messages that confluent's member commits together.
BATCH = 100


class StockMember:
    """The parent's side of a child."""

    def __init__(self, kind: str, bootstrap: str, group: str, topic: str, *options: str) -> None:
        self.kind = kind
        self.topic = topic
        self.owned: frozenset[TopicPartition] = frozenset()
        self.owned_before: list[frozenset[TopicPartition]] = []  #: all sets of partitions that it reported, in order
        self.read: list[tuple[int, int]] = []  #: (partition, offset)
        self._stopping = False
        arguments = (kind, bootstrap, group, topic, *options)
        self._child = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.support.stock.members", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(java_member.environment() if kind == JAVA else {})},
        )
        self._reader = threading.Thread(target=self._listen, name=kind)
        self._reader.start()

    @property
    def failure(self) -> BaseException | None:
        code = self._child.poll()
        return None if code is None or self._stopping else AssertionError(f"{self.kind} ended by itself with {code}")

    def pause(self) -> None:
        """Freeze its process, as a long garbage collection would, until `resume`."""
        self._child.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._child.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Leave the group. Idempotent; fails if the client failed."""
        self._stopping = True
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        try:
            code = self._child.wait(60)
        except subprocess.TimeoutExpired:
            self._child.kill()
            code = self._child.wait()
        self._reader.join()
        self._child.stdout.close()
        self.owned = frozenset()
        assert code == 0, f"{self.kind} ended with {code}"

    def _listen(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            said = json.loads(line)
            owned = frozenset(TopicPartition(self.topic, n) for n in said["owned"])
            if owned != self.owned:
                self.owned_before.append(owned)
            self.owned = owned
            self.read += [(partition, offset) for partition, offset in said["read"]]


@asynccontextmanager
async def stock_member(
    kind: str,
    bootstrap: str,
    group: str,
    topic: str,
    *,
    strategy: str = "range",
    instance: str = "",
    session_ms: int = SESSION_MS,
    pauses: bool = False,
) -> AsyncIterator[StockMember]:
    """A member that polls until the end of the `with` or until it is stopped; static with an `instance`.

    With `pauses`, which confluent's and Kafka's own can, it pauses what it is first assigned.

    The event loop continues while it stops: the group may wait for members that run there.
    """
    member = StockMember(kind, bootstrap, group, topic, strategy, instance, str(session_ms), "pauses" if pauses else "")
    try:
        yield member
    finally:
        await asyncio.to_thread(member.stop)


# -- the child ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Given:
    """The configuration of a child."""

    bootstrap: str
    group: str
    topic: str
    strategy: str
    instance: str
    session_ms: str
    pauses: str


class ChangeReporter:
    """Reports changes to the parent, and notices when the parent ends the conversation."""

    def __init__(self) -> None:
        self._owned: list[int] = []
        self._ended = threading.Event()
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        sys.stdin.read()
        self._ended.set()

    @property
    def going_on(self) -> bool:
        return not self._ended.is_set()

    def report(self, records: list[tuple[int, int]], assignment: Iterable[Any]) -> None:
        owned = sorted(tp.partition for tp in assignment)
        if records or owned != self._owned:
            self._owned = owned
            sys.stdout.write(json.dumps({"owned": owned, "read": records}) + "\n")
            sys.stdout.flush()


def run_kafka_python(reporter: ChangeReporter, given: Given) -> None:
    """kafka-python 3.0.12 forgets its rejoin for new metadata if a poll's timeout ends during it, and then neither
    reads nor sends heartbeats. So polls are long until partitions are assigned, which a listener reports.
    """
    import kafka
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.errors import CommitFailedError

    assignors = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }

    class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]  # it is untyped
        def on_partitions_revoked(self, revoked: Any) -> None:
            reporter.report([], set(consumer.assignment()).difference(revoked))

        def on_partitions_assigned(self, assigned: Any) -> None:
            reporter.report([], set(consumer.assignment()).union(assigned))

    consumer = kafka.KafkaConsumer(
        bootstrap_servers=given.bootstrap,
        group_id=given.group,
        group_instance_id=given.instance or None,
        session_timeout_ms=int(given.session_ms),
        heartbeat_interval_ms=HEARTBEAT_MS,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        partition_assignment_strategy=[assignors[given.strategy]],
    )
    consumer.subscribe([given.topic], listener=Listener())
    while reporter.going_on:
        polled = consumer.poll(timeout_ms=100 if consumer.assignment() else 5000)
        records = [(r.partition, r.offset) for found in polled.values() for r in found]
        if records:
            with contextlib.suppress(CommitFailedError):  # the group has moved on: the next owner reads them again
                consumer.commit()
        reporter.report(records, consumer.assignment())
    consumer.close()


def run_confluent(reporter: ChangeReporter, given: Given) -> None:
    import confluent_kafka

    settings = {
        "bootstrap.servers": given.bootstrap,
        "group.id": given.group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    if given.strategy == BROKERS:
        settings |= {"group.protocol": "consumer"}
    else:
        settings |= {
            "session.timeout.ms": given.session_ms,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "partition.assignment.strategy": given.strategy,
        }
    consumer = confluent_kafka.Consumer(settings | ({"group.instance.id": given.instance} if given.instance else {}))

    def commit(*_: Any) -> None:
        with contextlib.suppress(confluent_kafka.KafkaException):  # nothing new, or the group has moved on
            consumer.commit(asynchronous=False)

    # Without a callback librdkafka gives partitions up in the background, also between a poll and the commit after it.
    # `consume` would call it amid a batch, whose offsets cannot be committed yet; `poll` calls it between messages.
    consumer.subscribe([given.topic], on_revoke=commit)
    left_to_pause = bool(given.pauses)
    while reporter.going_on:
        messages = []
        while len(messages) < BATCH and (message := consumer.poll(0 if messages else 0.1)) is not None:
            if message.error() is None:
                messages.append(message)
        if messages:
            commit()
        if left_to_pause and consumer.assignment():
            consumer.pause(consumer.assignment())
            left_to_pause = False
        reporter.report([(message.partition(), message.offset()) for message in messages], consumer.assignment())
    consumer.close()


def run_aiokafka(reporter: ChangeReporter, given: Given) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from aiokafka.errors import CommitFailedError

    assignors = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
    }

    async def run() -> None:
        consumer = AIOKafkaConsumer(
            given.topic,
            bootstrap_servers=given.bootstrap,
            group_id=given.group,
            group_instance_id=given.instance or None,
            session_timeout_ms=int(given.session_ms),
            heartbeat_interval_ms=HEARTBEAT_MS,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            partition_assignment_strategy=[assignors[given.strategy]],
        )
        await consumer.start()
        while reporter.going_on:
            polled = await consumer.getmany(timeout_ms=100)
            records = [(r.partition, r.offset) for found in polled.values() for r in found]
            if records:
                with contextlib.suppress(CommitFailedError):
                    await consumer.commit()
            reporter.report(records, consumer.assignment())
        # aiokafka passes on the cancellation of a fetch from a stopped broker; it has left the group by then.
        with contextlib.suppress(asyncio.CancelledError):
            await consumer.stop()

    asyncio.run(run())


RUNS = {"kafka-python": run_kafka_python, "aiokafka": run_aiokafka, "confluent": run_confluent, JAVA: java_member.run}

if __name__ == "__main__":
    RUNS[sys.argv[1]](ChangeReporter(), Given(*sys.argv[2:]))
