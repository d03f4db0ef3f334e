"""`rebalance-lab consume` and `rebalance-lab produce`: members and load by hand, in several terminals."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
import msgspec

from comparison.cli.by_hand import bootstrap_of, report_silence, started_zookeeper, state_option, zookeeper_at
from comparison.cli.state import states
from comparison.printable import printable
from comparison.scenarios.plan.configuration import for_part
from comparison.scenarios.plan.consumers import CONSUMERS, ConsumerRequest, subscribe_by_pattern
from comparison.scenarios.testbed.cluster_access import ClusterAccess
from kernel.designs import DESIGN_NAMES, DESIGNS, ZOOKEEPER
from kernel.errors import ConfigurationError, RebalanceFailed, UserError
from kernel.java_regex import compiled
from kernel.serials import numbered_value, serial_of
from kernel.settings import split_pairs
from kernel.trace.writer import SilentTracer
from zkconsumer.znodes.filters import TopicFilter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from kernel.consumer import GroupConsumer, RebalanceListener
    from kernel.values import Batch, Record, TopicPartition

POLL_MS, POLL_RECORDS = 200, 500
_LINE_MAX = 1 << 20
#: Streams of one `consume`. Each has its own queues, and in the coordinator designs a member and a connection.
STREAMS_MAX = 1_000


def zookeeper_of(design: str, given: str | None, bootstrap: str | None) -> str:
    """--zookeeper, or where the started brokers are registered; '' for designs without ZooKeeper sessions.

    The coordinator of the server design sees only members in the ZooKeeper and chroot of its brokers. Raises
    `ConfigurationError` when the started brokers are registered in several places.
    """
    if not DESIGNS[design].zookeeper_sessions:
        return ""
    if given:
        return zookeeper_at(given)
    brokers = [state for state in states("broker-") if state.running]
    registered = {state.details["zookeeper"] for state in brokers if "zookeeper" in state.details}
    if not registered or bootstrap or not DESIGNS[design].coordinator:
        return started_zookeeper()
    if len(registered) > 1:
        raise ConfigurationError(
            f"the started brokers are registered in {' and '.join(sorted(registered))}: "
            "choose with --zookeeper and --bootstrap-server"
        )
    return registered.pop()


def topics_of(texts: Sequence[str]) -> dict[str, int]:
    """`T` or `T:streams` as {topic: streams}. Raises `ConfigurationError`."""
    topics: dict[str, int] = {}
    for text in texts:
        topic, colon, streams = text.partition(":")
        number = _number(streams) if colon else 1
        if not topic or not 1 <= number <= STREAMS_MAX:
            raise ConfigurationError(
                f"--topic {text!r}: write TOPIC or TOPIC:STREAMS, with 1 to {STREAMS_MAX:,} streams"
            )
        topics[topic] = number
    return topics


def _number(text: str) -> int:
    """The number; 0 for anything else, and for more digits than the maximum has."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(STREAMS_MAX)) else 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """A subscription: topics with their numbers of streams, or a pattern."""

    topics: Mapping[str, int]
    pattern: str = ""
    excluded: TopicFilter | None = None  #: a blacklist; only the zookeeper design has them
    streams: int = 1  #: of the pattern or the blacklist

    @classmethod
    def of(
        cls, design: str, topics: Sequence[str], white: str | None, black: str | None, streams: int | None
    ) -> Wanted:
        """A subscription in exactly one of the three ways. Raises `UserError` otherwise, and for an invalid pattern."""
        if bool(topics) + (white is not None) + (black is not None) != 1:
            raise ConfigurationError(
                "choose topics in one way: --topic (may be repeated), one --whitelist, or one --blacklist"
            )
        if white is not None:
            if design == ZOOKEEPER:
                TopicFilter.white(white)
            else:
                compiled(white)
            return cls({}, white, streams=streams or 1)
        if black is not None:
            if design != ZOOKEEPER:
                raise ConfigurationError(
                    "only the zookeeper design has --blacklist: use --whitelist '(?!(?:PATTERN)$).*'"
                )
            return cls({}, excluded=TopicFilter.black(black), streams=streams or 1)
        if streams is not None:
            raise ConfigurationError(f"--streams is for patterns: use --topic {topics[0].split(':')[0]}:{streams}")
        return cls(topics_of(topics))

    async def subscribe(self, consumer: GroupConsumer, listener: RebalanceListener) -> None:
        if self.excluded is not None:
            await subscribe_by_pattern(consumer, self.excluded, self.streams, listener)
        elif self.topics:
            await consumer.subscribe(self.topics, listener)
        else:
            await consumer.subscribe_pattern(self.pattern, self.streams, listener)


class Printer:
    """Prints events as text or as JSON lines; also the consumer's listener."""

    def __init__(self, form: str) -> None:
        self._json = form == "json"
        self.records = 0
        #: The current assignment of each stream, kept partitions included.
        self.assignment: Callable[[], Mapping[int, frozenset[TopicPartition]]] = dict

    def say(self, event: str, text: str, **fields: object) -> None:
        if self._json:
            line = msgspec.json.encode({"event": event, "time_ms": time.time_ns() // 1_000_000, **fields}).decode()
        else:
            line = f"{event}: {printable(text)}" if text else event
        click.echo(line)
        sys.stdout.flush()

    def partitions(self, event: str, stream: int, partitions: Iterable[TopicPartition], kept: str = "") -> None:
        listed = sorted(partitions)
        text = f"{', '.join(map(str, listed)) or 'nothing'} (stream {stream}){kept}"
        self.say(event, text, stream=stream, partitions=[{"topic": t, "partition": p} for t, p in listed])

    async def on_assigned(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        kept = sorted(self.assignment().get(stream, frozenset()) - partitions)
        self.partitions("assigned", stream, partitions, f", keeps {', '.join(map(str, kept))}" if kept else "")

    async def on_revoked(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        self.partitions("revoked", stream, partitions)

    async def on_lost(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        self.partitions("lost", stream, partitions)

    def batch(self, batch: Batch) -> None:
        for record in batch.records:
            self.records += 1
            self._record(batch.stream, record)

    def _record(self, stream: int, record: Record) -> None:
        key = None if record.key is None else record.key.decode("utf-8", "replace")
        value = None if record.value is None else record.value.decode("utf-8", "replace")
        text = f"{record.topic}-{record.partition} @{record.offset} {'' if key is None else key + '='}{value}"
        self.say(
            "record",
            text,
            stream=stream,
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            timestamp_ms=record.timestamp_ms,
            serial=serial_of(record.value),
            key=key,
            value=value,
        )


@click.command(
    epilog="""\b
Examples:
  rebalance-lab consume --design zookeeper --group g --topic orders
  rebalance-lab consume --design zookeeper --group g --whitelist 'orders|invoices.*' --streams 2
  rebalance-lab consume --design zookeeper --group g --topic orders --set fix.claim.before.offsets=true
  rebalance-lab consume --design server --group g --topic orders --set zookeeper.session.timeout.ms=3000
  rebalance-lab consume --design eager --group g --topic orders:2 --topic invoices
  rebalance-lab consume --design cooperative --group g --whitelist 'orders-.*'
  rebalance-lab consume --design static --group g --topic orders --set group.instance.id=first
  rebalance-lab consume --design eager --group g --topic orders --set session.timeout.ms=6000 --format json

\b
The default servers are those started by `zookeeper start` and `broker`. Ctrl-C leaves the group."""
)
@click.option("--design", type=click.Choice(DESIGN_NAMES), required=True, help="How the group assigns partitions.")
@click.option("--group", required=True, help="The group to join.")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC[:STREAMS]", help="A topic. May be repeated.")
@click.option(
    "--whitelist", "white", metavar="PATTERN", help="Topics that match this Java regular expression, now or later."
)
@click.option("--blacklist", "black", metavar="PATTERN", help="Topics that do not match it (zookeeper only).")
@click.option("--streams", type=click.IntRange(1, STREAMS_MAX), help="Number of streams of a pattern.  [default: 1]")
@click.option("--zookeeper", "connect", help="HOST:PORT[,HOST:PORT...][/chroot] (zookeeper and server).")
@click.option("--bootstrap-server", "bootstrap", help="HOST:PORT[,HOST:PORT...] (all designs but zookeeper).")
@click.option(
    "--set",
    "-c",
    "--config",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="A Kafka consumer setting. May be repeated.",
)
@click.option("--max-records", type=click.IntRange(1), help="Leave the group after this many records.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output."
)
@state_option
def consume(  # noqa: PLR0913  # click hands each option over by its name
    design: str,
    group: str,
    topics: tuple[str, ...],
    white: str | None,
    black: str | None,
    streams: int | None,
    connect: str | None,
    bootstrap: str | None,
    pairs: tuple[str, ...],
    max_records: int | None,
    form: str,
) -> None:
    """Join a consumer group; print assignments, revocations and records."""
    wanted = Wanted.of(design, topics, white, black, streams)
    settings, warnings = for_part(CONSUMERS[design].settings, split_pairs(pairs))
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    request = ConsumerRequest(
        process="consume",
        group=group,
        client_id="consume",
        zookeeper=zookeeper_of(design, connect, bootstrap),
        bootstrap=bootstrap_of(bootstrap) if DESIGNS[design].coordinator else "",
        settings=settings,
    )
    if request.zookeeper:
        report_silence(request.zookeeper)
    consumer = CONSUMERS[design].consumer
    asyncio.run(_consume(design, lambda: consumer(request, SilentTracer()), wanted, Printer(form), max_records))


async def _consume(
    design: str, make: Callable[[], GroupConsumer], wanted: Wanted, printer: Printer, most: int | None
) -> None:
    consumer = make()
    printer.assignment = consumer.assignment
    stopping = _stop_on_signal()
    polling = asyncio.create_task(_poll(design, consumer, wanted, printer, most))
    waiting = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait([polling, waiting], return_when=asyncio.FIRST_COMPLETED)
        if polling.done():
            polling.result()
    finally:
        for task in (polling, waiting):
            task.cancel()
        await asyncio.gather(polling, waiting, return_exceptions=True)
        await consumer.close()
    printer.say("left", f"after {printer.records} records", records=printer.records)


async def _poll(design: str, consumer: GroupConsumer, wanted: Wanted, printer: Printer, most: int | None) -> None:
    await consumer.start()
    printer.say("started", "")
    try:
        await wanted.subscribe(consumer, printer)
    except RebalanceFailed as error:
        # As the original: it stays registered and idle until the next change of the group.
        printer.say("failed", str(error), error=str(error))
    else:
        # The zookeeper design does not call listeners after a rebalance that assigns nothing.
        if design == ZOOKEEPER and not any(consumer.assignment().values()):
            printer.partitions("assigned", 0, ())
    while most is None or printer.records < most:
        # Exactly as many as asked for: what is taken and not printed would count as consumed.
        wanted_now = POLL_RECORDS if most is None else min(POLL_RECORDS, most - printer.records)
        for batch in await consumer.getmany(timeout_ms=POLL_MS, max_records=wanted_now):
            printer.batch(batch)


@click.command(
    epilog="""\b
Examples:
  rebalance-lab produce --topic orders                    five numbered records per second, until Ctrl-C
  rebalance-lab produce --topic orders --count 100 --rate 50
  printf 'a\\nb\\n' | rebalance-lab produce --topic orders --stdin"""
)
@click.option("--topic", required=True, help="Topic to produce to. It is created if it does not exist.")
@click.option(
    "--bootstrap-server", "bootstrap", help="HOST:PORT[,HOST:PORT...].  [default: the brokers started by `broker`]"
)
@click.option(
    "--rate",
    type=click.FloatRange(0, 100_000, min_open=True),
    default=5.0,
    show_default=True,
    help="Records per second.",
)
@click.option("--count", type=click.IntRange(1), help="Stop after this many records.")
@click.option(
    "--stdin", "from_stdin", is_flag=True, help="Send the lines of standard input instead of numbered records."
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output."
)
@state_option
def produce(topic: str, bootstrap: str | None, rate: float, count: int | None, from_stdin: bool, form: str) -> None:
    """Produce records round-robin to all partitions; print where each is stored."""
    asyncio.run(_produce(bootstrap_of(bootstrap), topic, rate, count, Printer(form), from_stdin=from_stdin))


async def _produce(
    bootstrap: str, topic: str, rate: float, count: int | None, printer: Printer, *, from_stdin: bool
) -> None:
    stopping = _stop_on_signal()
    access = await ClusterAccess.open(bootstrap)
    try:
        partitions = await access.partitions_of(topic, create=True)
        readline = await _lines_of_stdin() if from_stdin else None
        number = 0
        while not stopping.is_set() and (count is None or number < count):
            line = await _line_unless(stopping, readline) if readline is not None else b""
            if readline is not None and not line:
                break
            tp = partitions[number % len(partitions)]
            value = (
                line.rstrip(b"\n") if readline is not None else numbered_value(number // len(partitions), b"by hand")
            )
            offset = await access.send(tp, value)
            printer.say("stored", f"{tp} @{offset}", topic=tp.topic, partition=tp.partition, offset=offset)
            number += 1
            if readline is None and (count is None or number < count):
                await _pause(stopping, 1 / rate)
    finally:
        await access.close()


async def _lines_of_stdin() -> Callable[[], Awaitable[bytes]]:
    """A function that reads one line of standard input.

    A pipe or terminal is read on the event loop, since a thread that waits for a line could not be stopped. A file
    never blocks, and the event loop cannot watch one.
    """
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or sys.stdin.isatty()):
        return lambda: asyncio.to_thread(sys.stdin.buffer.readline, _LINE_MAX)
    lines = asyncio.StreamReader(limit=_LINE_MAX)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin.buffer)
    return lines.readline


async def _line_unless(stopping: asyncio.Event, readline: Callable[[], Awaitable[bytes]]) -> bytes:
    """The next line; b'' at the end of the input or after a signal. Raises `UserError` for a line that is too long."""
    reading, waiting = asyncio.ensure_future(readline()), asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait([reading, waiting], return_when=asyncio.FIRST_COMPLETED)
        return reading.result() if reading.done() else b""
    except ValueError as error:
        raise UserError(f"a line of standard input is longer than {_LINE_MAX} bytes: send shorter lines") from error
    finally:
        for task in (reading, waiting):
            task.cancel()
        await asyncio.gather(reading, waiting, return_exceptions=True)


async def _pause(stopping: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        return


def _stop_on_signal() -> asyncio.Event:
    """Set by SIGINT or SIGTERM."""
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping
