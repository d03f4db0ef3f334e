"""`rebalance-lab consume`: members by hand, in several terminals."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from comparison.cli.by_hand import bootstrap_of, report_silence, started_zookeeper, state_option, zookeeper_at
from comparison.cli.complaints import OneOf
from comparison.cli.hand_run import trace_in
from comparison.cli.idle import IdleConsumer
from comparison.cli.options import form_option, settings_option
from comparison.cli.printing import COUNTS, NOTHING, RECORDS, Printer
from comparison.cli.rebalances import Rebalances, SeenTracer
from comparison.cli.state import states
from comparison.consumers import CONSUMERS, ConsumerRequest, subscribe_by_pattern, subscribe_by_regex
from comparison.group_readers.columns import PatternKind, Subscribed
from comparison.interruptible import run
from comparison.interrupts import last_words
from comparison.scenarios.plan.applicability import require_effect
from comparison.scenarios.plan.configuration import for_part
from coordinator.membership.subscription import by_regex
from kernel.decimals import decimal
from kernel.designs import DESIGN_NAMES, DESIGNS, SERVER, ZOOKEEPER
from kernel.errors import ConfigurationError, RebalanceFailed, UserError
from kernel.java_regex import compiled
from kernel.settings import split_pairs
from kernel.tasks import cancel_and_wait
from kernel.trace.events import Role
from kernel.trace.writer import SilentTracer
from zkconsumer.znodes.filters import TopicFilter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kernel.consumer import GroupConsumer, RebalanceListener
    from kernel.trace.writer import Tracer

POLL_MS, POLL_RECORDS = 200, 500
REGEX, WHITELIST, BLACKLIST = "--regex", "--whitelist", "--blacklist"
#: Streams of one `consume`. Each has its own queues, and in the coordinator designs a member and a connection.
STREAMS_MAX = 1_000


def require_servers_of(design: str, connect: str | None, bootstrap: str | None) -> None:
    """Raises `ConfigurationError` for the address of a server that the design's members do not speak to."""
    if connect is not None and not DESIGNS[design].zookeeper_sessions:
        raise ConfigurationError(f"members of {design} do not speak to ZooKeeper. Leave out --zookeeper")
    if bootstrap is not None and not DESIGNS[design].coordinator:
        raise ConfigurationError(f"members of {design} find the brokers in ZooKeeper. Leave out --bootstrap-server")


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
            f"the started brokers are registered in {' and '.join(sorted(registered))}. "
            "Choose with --zookeeper and --bootstrap-server"
        )
    return registered.pop()


def topics_of(texts: Sequence[str]) -> dict[str, int]:
    """`T` or `T:streams` as {topic: streams}. Raises `ConfigurationError`."""
    topics: dict[str, int] = {}
    for text in texts:
        topic, colon, streams = text.partition(":")
        number = decimal(streams) if colon else 1
        if not topic or number is None or not 1 <= number <= STREAMS_MAX:
            raise ConfigurationError(
                f"--topic {text!r} cannot be read. Write TOPIC or TOPIC:STREAMS, with 1 to {STREAMS_MAX:,} streams"
            )
        topics[topic] = number
    return topics


@contextlib.contextmanager
def _remedied(kind: PatternKind) -> Iterator[None]:
    """Say what to write instead of a pattern that is refused."""
    try:
        yield
    except UserError as error:
        syntax = "an RE2" if kind is PatternKind.RE2 else "a Java"
        raise ConfigurationError(f"{error}. Write {syntax} regular expression") from error


@dataclass(frozen=True, slots=True)
class Wanted:
    """A subscription: topics with their numbers of streams, or a pattern."""

    topics: Mapping[str, int]
    pattern: str = ""
    kind: PatternKind | None = None  #: of the pattern
    streams: int = 1  #: of the pattern

    @classmethod
    def of(cls, design: str, topics: Sequence[str], patterns: Mapping[str, str | None], streams: int | None) -> Wanted:
        """A subscription in exactly one way; `patterns` are by their options.

        Raises `UserError` for none or several, and for a pattern that is invalid or that the design does not have.
        """
        given = {option: pattern for option, pattern in patterns.items() if pattern is not None}
        if bool(topics) + len(given) != 1:
            raise ConfigurationError(
                "topics are to be chosen in one way. Give --topic (may be repeated), or one --regex, --whitelist or "
                "--blacklist"
            )
        for option, pattern in given.items():
            kind = _kind_of(design, option)
            with _remedied(kind):
                return cls({}, _checked(kind, pattern), kind, streams or 1)
        if streams is not None:
            raise ConfigurationError(f"--streams is for patterns. Use --topic {topics[0].split(':')[0]}:{streams}")
        return cls(topics_of(topics))

    @property
    def as_read(self) -> Subscribed:
        """The subscription as the design's members read it."""
        return Subscribed(topics=tuple(self.topics), pattern=self.pattern, kind=self.kind)

    async def subscribe(self, consumer: GroupConsumer, design: str, listener: RebalanceListener) -> None:
        match self.kind:
            case None:
                await consumer.subscribe(self.topics, listener)
            case PatternKind.BLACK_LIST:
                await subscribe_by_pattern(consumer, TopicFilter.black(self.pattern), self.streams, listener)
            case PatternKind.RE2:
                await subscribe_by_regex(consumer, design, self.pattern, self.streams, listener)
            case _:
                await consumer.subscribe_pattern(self.pattern, self.streams, listener)


def _kind_of(design: str, option: str) -> PatternKind:
    """How a design's members read the pattern of an option. Raises `ConfigurationError` if they do not."""
    if design == SERVER:
        raise ConfigurationError(f"{design} assigns topics by name, so it has no {option}. Use --topic")
    if option == BLACKLIST:
        if design != ZOOKEEPER:
            raise ConfigurationError(f"only the zookeeper design has {BLACKLIST}. Use {WHITELIST} '(?!(?:PATTERN)$).*'")
        return PatternKind.BLACK_LIST
    if design == ZOOKEEPER:
        return PatternKind.WHITE_LIST
    return PatternKind.RE2 if option == REGEX and DESIGNS[design].reconciles else PatternKind.JAVA


def _checked(kind: PatternKind, pattern: str) -> str:
    """The pattern, if members can check it; one of RE2's is for the coordinator. Raises `UserError`."""
    match kind:
        case PatternKind.BLACK_LIST:
            return TopicFilter.black(pattern).pattern
        case PatternKind.WHITE_LIST:
            TopicFilter.white(pattern)
        case PatternKind.JAVA:
            compiled(pattern)
        case PatternKind.RE2:
            by_regex(pattern, streams=1)
    return pattern


@click.command(
    epilog="""\b
Examples:
  rebalance-lab consume --design zookeeper --group g --topic orders
  rebalance-lab consume --design zookeeper --group g \\
      --whitelist 'orders|invoices.*' --streams 2
  rebalance-lab consume --design zookeeper --group g --topic orders \\
      --set fix.claim.before.offsets=true
  rebalance-lab consume --design server --group g --topic orders \\
      --set zookeeper.session.timeout.ms=3000
  rebalance-lab consume --design eager --group g --topic orders:2 \\
      --topic invoices
  rebalance-lab consume --design cooperative --group g --regex 'orders-.*'
  rebalance-lab consume --design static --group g --topic orders \\
      --set group.instance.id=first
  rebalance-lab consume --design eager --group g --topic orders \\
      --set session.timeout.ms=6000 --format json
  rebalance-lab consume --design eager --group g --topic orders \\
      --print records
  rebalance-lab consume --design eager --group g --topic orders \\
      --trace runs/mine

\b
After each rebalance a line says how long it took and its phases, in seconds,
with the member's id and, in designs that have them, the generation, the
leader and the coordinator.
Several consumers, `broker --trace` and (for zookeeper) `watch --trace` may
trace into the same folder, which is then a run like any other:
  rebalance-lab analyze runs/mine; rebalance-lab report runs/mine; \\
      rebalance-lab diagram runs/mine
\b
The default servers are those started by `zookeeper start` and `broker`.
Ctrl-C leaves the group."""
)
@click.option("--design", type=OneOf(DESIGN_NAMES), required=True, help="How the group assigns partitions.")
@click.option("--group", required=True, help="The group to join.")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC[:STREAMS]", help="A topic. May be repeated.")
@click.option(
    REGEX,
    metavar="PATTERN",
    help="Topics that match now or later, by the rule of the design's time: zookeeper as --whitelist, consumer at the "
    "coordinator (RE2), the classic designs in each member (Java).",
)
@click.option(
    WHITELIST,
    "white",
    metavar="PATTERN",
    help="The same, always in each member (zookeeper: commas mean `|`).",
)
@click.option(BLACKLIST, "black", metavar="PATTERN", help="Topics that do not match it (zookeeper only).")
@click.option("--streams", type=click.IntRange(1, STREAMS_MAX), help="Number of streams of a pattern.  [default: 1]")
@click.option("--zookeeper", "connect", help="HOST:PORT[,HOST:PORT...][/chroot] (zookeeper and server).")
@click.option("--bootstrap-server", "bootstrap", help="HOST:PORT[,HOST:PORT...] (all designs but zookeeper).")
@settings_option("Kafka consumer")
@click.option("--max-records", type=click.IntRange(1), help="Leave the group after this many records.")
@click.option(
    "--print",
    "shown",
    type=OneOf([COUNTS, RECORDS, NOTHING]),
    default=COUNTS,
    show_default=True,
    help="What to print of records: a count for each partition once a second, each record, or nothing.",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Trace into this run folder, which is created if it does not exist; others may trace into it too.",
)
@form_option
@state_option
def consume(  # noqa: PLR0913  # click hands each option over by its name
    design: str,
    group: str,
    topics: tuple[str, ...],
    regex: str | None,
    white: str | None,
    black: str | None,
    streams: int | None,
    connect: str | None,
    bootstrap: str | None,
    pairs: tuple[str, ...],
    max_records: int | None,
    shown: str,
    trace: Path | None,
    form: str,
) -> None:
    """Join a consumer group; print its rebalances, assignments and records."""
    require_servers_of(design, connect, bootstrap)
    wanted = Wanted.of(design, topics, {REGEX: regex, WHITELIST: white, BLACKLIST: black}, streams)
    given = split_pairs(pairs)
    CONSUMERS[design].refuse(given)
    settings, warnings = for_part(CONSUMERS[design].settings, given)
    require_effect(design, settings)
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
    printer = Printer(form, shown)
    with contextlib.ExitStack() as stack:
        tracer: Tracer = SilentTracer()
        if trace is not None:
            tracer = stack.enter_context(contextlib.closing(trace_in(trace, Role.MEMBER, design=design)))
        seen = SeenTracer(tracer, Rebalances(printer.rebalanced), printer.reset)
        with last_words(lambda: click.echo(_unanswered(printer), err=True)):
            run(_consume(design, request, seen, wanted, printer, max_records))


def _unanswered(printer: Printer) -> str:
    """What is said when it could not end in time: no server answers, or a rebalance of 0.8 waits for its backoff."""
    what_follows = " before it could leave; the group notices when its session ends" if printer.has_joined else ""
    return f"rebalance-lab: interrupted{what_follows}"


async def _consume(
    design: str, request: ConsumerRequest, tracer: Tracer, wanted: Wanted, printer: Printer, most: int | None
) -> None:
    consumer = CONSUMERS[design].consumer(request, tracer)
    printer.assignment, printer.places = consumer.assignment, consumer.places
    polling = asyncio.create_task(_poll(design, consumer, wanted, printer, most))
    explaining = asyncio.create_task(IdleConsumer(consumer, design, request, wanted.as_read).explain())
    try:
        ended, _ = await asyncio.wait([polling, explaining], return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    except asyncio.CancelledError:
        if not printer.has_joined:
            raise
    finally:
        await cancel_and_wait(polling, explaining)
        await consumer.close()
    printer.say("left", f"after {printer.records} records", records=printer.records)


async def _poll(design: str, consumer: GroupConsumer, wanted: Wanted, printer: Printer, most: int | None) -> None:
    await consumer.start()
    printer.say("started", f"pid {os.getpid()}", pid=os.getpid())  # for `kill`
    try:
        await wanted.subscribe(consumer, design, printer)
    except RebalanceFailed as error:
        # As the original: it stays registered and idle until the next change of the group.
        printer.say("failed", str(error), error=str(error))
    else:
        # The zookeeper design does not call listeners after a rebalance that assigns nothing.
        if design == ZOOKEEPER and not any(consumer.assignment().values()):
            printer.partitions("assigned", 0, ())
    printer.has_joined = printer.has_joined or design == ZOOKEEPER  # it rebalances as it subscribes
    while most is None or printer.records < most:
        # Exactly as many as asked for: what is taken and not printed would count as consumed.
        wanted_now = POLL_RECORDS if most is None else min(POLL_RECORDS, most - printer.records)
        for batch in await consumer.getmany(timeout_ms=POLL_MS, max_records=wanted_now):
            printer.batch(batch)
        printer.polled()
