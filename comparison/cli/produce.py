"""`rebalance-lab produce`: load by hand."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from comparison.cli.by_hand import bootstrap_of, state_option
from comparison.cli.idle import explained, unsent_reasons
from comparison.cli.options import bootstrap_option, form_option, refuse_beside
from comparison.cli.printing import Printer
from comparison.cli.quantities import Number
from comparison.interruptible import run, stopped_by_signals
from comparison.scenarios.testbed.cluster_access import ClusterAccess
from kernel.errors import UserError
from kernel.serials import numbered_value
from kernel.tasks import cancel_and_wait

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_LINE_MAX = 1 << 20


@click.command(
    epilog="""\b
Examples:
  rebalance-lab produce --topic orders
      five numbered records per second, until Ctrl-C
  rebalance-lab produce --topic orders --count 100 --rate 50
  printf 'a\\nb\\n' | rebalance-lab produce --topic orders --stdin"""
)
@click.option("--topic", required=True, help="Topic to produce to. It is created if it does not exist.")
@bootstrap_option
@click.option(
    "--rate",
    type=Number(0, 100_000, min_open=True),
    default=5.0,
    show_default=True,
    help="Records per second.",
)
@click.option("--count", type=click.IntRange(1), help="Stop after this many records.")
@click.option(
    "--stdin", "from_stdin", is_flag=True, help="Send the lines of standard input instead of numbered records."
)
@form_option
@state_option
def produce(topic: str, bootstrap: str | None, rate: float, count: int | None, from_stdin: bool, form: str) -> None:
    """Produce records round-robin to all partitions; print where each is stored."""
    if from_stdin:
        refuse_beside("--stdin", "rate")
    run(_produce(bootstrap_of(bootstrap), topic, rate, count, Printer(form), from_stdin=from_stdin))


async def _produce(
    bootstrap: str, topic: str, rate: float, count: int | None, printer: Printer, *, from_stdin: bool
) -> None:
    access = await ClusterAccess.open(bootstrap)
    try:
        why = partial(unsent_reasons, access.client, topic)
        partitions = await explained(access.partitions_of(topic, create=True), why, f"topic {topic!r} has leaders")
        readline = await _lines_of_stdin() if from_stdin else None
        number = 0
        # What is on its way is stored and shown first.
        with stopped_by_signals() as stopping:
            while not stopping.is_set() and (count is None or number < count):
                line = await _line_unless(stopping, readline) if readline is not None else b""
                if readline is not None and not line:
                    break
                tp = partitions[number % len(partitions)]
                value = (
                    line.rstrip(b"\n")
                    if readline is not None
                    else numbered_value(number // len(partitions), b"by hand")
                )
                offset = await explained(access.send(tp, value), why, "records are stored")
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
        raise UserError(f"a line of standard input is longer than {_LINE_MAX} bytes. Send shorter lines") from error
    finally:
        await cancel_and_wait(reading, waiting)


async def _pause(stopping: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        return
