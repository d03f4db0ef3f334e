"""`consume` and `produce`: members and load by hand, in as many terminals as one likes."""

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

POLL_MS = 200
_LINE_MAX = 1 << 20
#: Streams of one `consume`; each has queues, and in the coordinator designs a member and a connection, of its own.
STREAMS_MAX = 1_000


def zookeeper_of(design: str, given: str | None, bootstrap: str | None) -> str:
    """--zookeeper, or where what is started from here is registered; '' for designs without a session.

    The coordinator of the server design sees its members only where its brokers are registered, chroot included. Raises
    `ConfigurationError` when brokers started from here are registered in several places.
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
            f"the brokers started from here are registered in {' and '.join(sorted(registered))}: "
            "say where with --zookeeper, and which brokers with --bootstrap-server"
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
                f"--topic {text!r}: write TOPIC or TOPIC:STREAMS, with one stream or more, at most {STREAMS_MAX:,}"
            )
        topics[topic] = number
    return topics


def _number(text: str) -> int:
    """0 for what is no number, or has more digits than any that is allowed."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(STREAMS_MAX)) else 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a consumer asks for: topics by name with their streams, or a pattern."""

    topics: Mapping[str, int]
    pattern: str = ""
    excluded: TopicFilter | None = None  #: a black list, which the zookeeper design alone has
    streams: int = 1  #: of the pattern or the black list

    @classmethod
    def of(
        cls, design: str, topics: Sequence[str], white: str | None, black: str | None, streams: int | None
    ) -> Wanted:
        """Exactly one of the three ways. Raises `UserError` otherwise, and for what is no pattern."""
        if bool(topics) + (white is not None) + (black is not None) != 1:
            raise ConfigurationError(
                "say which topics in one way: --topic (repeatable), one --whitelist, or one --blacklist"
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
                    "only the zookeeper design has black lists: a --whitelist of (?!(?:PATTERN)$).* means the same"
                )
            return cls({}, excluded=TopicFilter.black(black), streams=streams or 1)
        if streams is not None:
            raise ConfigurationError(f"--streams is for a pattern: say --topic {topics[0].split(':')[0]}:{streams}")
        return cls(topics_of(topics))

    async def subscribe(self, consumer: GroupConsumer, listener: RebalanceListener) -> None:
        if self.excluded is not None:
            await subscribe_by_pattern(consumer, self.excluded, self.streams, listener)
        elif self.topics:
            await consumer.subscribe(self.topics, listener)
        else:
            await consumer.subscribe_pattern(self.pattern, self.streams, listener)


class Printer:
    """Says what happens, in words or as JSON lines; also the consumer's listener."""

    def __init__(self, form: str) -> None:
        self._json = form == "json"
        self.records = 0
        #: What each stream owns now, kept partitions included.
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
        self.partitions("assigned", stream, partitions, f", beside {', '.join(map(str, kept))}" if kept else "")

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
Without --zookeeper and --bootstrap-server, the servers started from here are used. Ctrl-C leaves the group."""
)
@click.option("--design", type=click.Choice(DESIGN_NAMES), required=True)
@click.option("--group", required=True)
@click.option("--topic", "topics", multiple=True, metavar="TOPIC[:STREAMS]", help="Repeatable.")
@click.option(
    "--whitelist", "white", metavar="PATTERN", help="All topics that match, now and later: a Java regular expression."
)
@click.option("--blacklist", "black", metavar="PATTERN", help="For design zookeeper: all topics that do not match.")
@click.option("--streams", type=click.IntRange(1, STREAMS_MAX), help="Streams of a pattern.  [default: 1]")
@click.option("--zookeeper", "connect", help="For zookeeper and server: HOST:PORT[,HOST:PORT...][/chroot].")
@click.option("--bootstrap-server", "bootstrap", help="For all designs but zookeeper: HOST:PORT[,HOST:PORT...].")
@click.option(
    "--set", "-c", "--config", "pairs", multiple=True, metavar="KEY=VALUE", help="A setting by its name; repeatable."
)
@click.option("--max-records", type=click.IntRange(1), help="Leave after this many records.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
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
    """Be a member of a group; shows what is assigned, revoked and read."""
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
        # As the original: registered, idle, and cured by the next change of the group.
        printer.say("failed", str(error), error=str(error))
    else:
        # The listeners of the zookeeper design hear nothing of a rebalance that gives them nothing.
        if design == ZOOKEEPER and not any(consumer.assignment().values()):
            printer.partitions("assigned", 0, ())
    while most is None or printer.records < most:
        for batch in await consumer.getmany(timeout_ms=POLL_MS):
            printer.batch(batch)


@click.command(
    epilog="""\b
Examples:
  rebalance-lab produce --topic orders                    numbered records, five a second, until Ctrl-C
  rebalance-lab produce --topic orders --count 100 --rate 50
  printf 'a\\nb\\n' | rebalance-lab produce --topic orders --stdin"""
)
@click.option("--topic", required=True)
@click.option("--bootstrap-server", "bootstrap", help="HOST:PORT[,HOST:PORT...]; default: brokers started from here.")
@click.option("--rate", type=click.FloatRange(0, 100_000, min_open=True), default=5.0, show_default=True)
@click.option("--count", type=click.IntRange(1), help="End after this many records.")
@click.option("--stdin", "from_stdin", is_flag=True, help="Send the lines of standard input instead of numbered ones.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@state_option
def produce(topic: str, bootstrap: str | None, rate: float, count: int | None, from_stdin: bool, form: str) -> None:
    """Produce records, one partition after the other; shows where each is stored."""
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
    """What reads one line of standard input.

    A pipe or terminal is read on the event loop, since a thread that waits for a line could not be told to end; a
    file never keeps anybody waiting, and the event loop cannot watch one.
    """
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or sys.stdin.isatty()):
        return lambda: asyncio.to_thread(sys.stdin.buffer.readline, _LINE_MAX)
    lines = asyncio.StreamReader(limit=_LINE_MAX)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin.buffer)
    return lines.readline


async def _line_unless(stopping: asyncio.Event, readline: Callable[[], Awaitable[bytes]]) -> bytes:
    """The next line, or nothing at the end of the input and when told to end. Raises `UserError` for a long one."""
    reading, waiting = asyncio.ensure_future(readline()), asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait([reading, waiting], return_when=asyncio.FIRST_COMPLETED)
        return reading.result() if reading.done() else b""
    except ValueError as error:
        raise UserError(f"a line of standard input is longer than {_LINE_MAX} bytes: send shorter ones") from error
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
