"""`playground`: groups of several designs on a local page, played against by hand, then analysed as any other run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sys
import webbrowser
from typing import TYPE_CHECKING, Any

import click

from comparison.cli.interrupted import after_interrupt
from comparison.cli.options import chosen_links, design_option, link_option, output_option, with_seed
from comparison.exits import Exit
from comparison.interruptible import interrupted_by_signals, run_reacting
from comparison.interrupts import last_words
from comparison.playground.messages import Status
from comparison.playground.play.setting_up import prepared
from comparison.playground.web.server import HOST, serving
from comparison.scenarios.plan.catalogue import designs_named
from comparison.scenarios.plan.parameters import SEED_MAX
from comparison.scenarios.plan.played import PLAYGROUND
from comparison.screen.printable import printable
from comparison.screen.progress import RunProgress
from kernel.errors import EnvironmentFault, Unavailable
from kernel.platform.interpreter import module_command
from kernel.waiting import WaitTimeout, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from comparison.playground.play.setting_up import Prepared

#: How long the page and its report are served after the game.
LINGER_S = 600.0
#: How long pages may take to receive the last messages.
_FAREWELL_S = 2.0
_INTERRUPT_S = 10.0


@click.command(
    epilog="""\b
Examples:
  rebalance-lab playground --open
  rebalance-lab playground --design zookeeper,eager,cooperative --members 4
  rebalance-lab playground --design zookeeper --partitions 4 --port 8080
  rebalance-lab playground --simulated --seed 7 --open
      in virtual time: pause, go slowly, go back, try another design"""
)
@design_option
@click.option(
    "--simulated",
    is_flag=True,
    help="In virtual time, on a modelled network and a modelled ZooKeeper: it can be paused and go back.",
)
@link_option
@click.option("--open", "opens", is_flag=True, help="Open the page in the default browser.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the page.  [default: a free one]")
@click.option("--members", type=int, help=f"Number of members at the start.  [default: {PLAYGROUND.defaults.members}]")
@click.option(
    "--partitions", type=int, help=f"Number of partitions at the start.  [default: {PLAYGROUND.defaults.partitions}]"
)
@click.option(
    "--rate",
    type=int,
    help=f"Records produced per second.  [default: {PLAYGROUND.defaults.rate}; simulated: 2 for each partition]",
)
@click.option("--seed", type=click.IntRange(0, SEED_MAX), help="Seed of all random choices.  [default: random]")
@click.option(
    "--idle",
    "idle_minutes",
    type=click.IntRange(1, 60),
    default=10,
    show_default=True,
    help="Stop after this many minutes with no page open.",
)
@output_option
def playground(designs: tuple[str, ...], simulated: bool, opens: bool, port: int, **options: Any) -> int:
    """Watch groups of consumers on a local page, and play against them.

    Every design gets a ZooKeeper, brokers and members of its own, as in a run. The page can start, stop, freeze, kill,
    cut off and slow down members. Stop the game on the page to have it analysed; Ctrl-C ends it at once.
    """
    root, idle_minutes = options.pop("output"), options.pop("idle_minutes")
    options["links"] = chosen_links(options["links"], simulated=simulated)
    command, options["seed"] = with_seed(["rebalance-lab", *sys.argv[1:]], options["seed"])
    prepare = _simulated() if simulated else prepared
    game = prepare(root, designs_named(designs), options, command=command, idle_s=60.0 * idle_minutes)
    with last_words(lambda: click.echo(after_interrupt(game.bundle), err=True)):
        return run_reacting(_play(game, port, opens=opens))


def _simulated() -> Callable[..., Prepared]:
    """What prepares a simulated game. Imported late, as it is seldom needed."""
    from comparison.playground.simulated.setting_up import prepared as prepared_simulated

    return prepared_simulated


async def _play(prepared: Prepared, port: int, *, opens: bool) -> int:
    game, bundle = prepared.game, prepared.bundle
    async with contextlib.AsyncExitStack() as page:
        interrupted = page.enter_context(interrupted_by_signals(RunProgress(1)))
        try:
            served = await page.enter_async_context(serving(game, port=port))
        except OSError as error:
            raise EnvironmentFault(f"{HOST}:{port} cannot be used: {error.strerror}. Choose another --port") from error
        click.echo(served.address)
        click.echo("open it in a browser on this machine; Ctrl-C ends the game without analysing it", err=True)
        if opens:
            await asyncio.to_thread(webbrowser.open, served.address)
        last = await game.run(prepared.provenance, lambda: _analysed(bundle), interrupted)
        for path, each in zip(last.scenarios, game.scenarios(), strict=False):  # those that could be written
            command = each.command.replace(each.name, printable(shlex.quote(path)), 1)
            click.echo(f"what was played is a scenario, too: {command}", err=True)
        if last.status is Status.ENDED and game.is_abandoned:
            click.echo(last.reason, err=True)
            return Exit.AS_EXPECTED
        if last.status is Status.ENDED:
            click.echo(f"the page stays up for {LINGER_S / 60:g} more minutes; Ctrl-C closes it", err=True)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(interrupted.wait(), LINGER_S)
            return Exit.AS_EXPECTED
        with contextlib.suppress(WaitTimeout):
            await until(lambda: not game.is_watched, _FAREWELL_S, "the pages to receive the end")
    if interrupted.is_set():
        click.echo(after_interrupt(bundle), err=True)
        return Exit.INTERRUPTED
    raise Unavailable(f"the game failed: {last.reason}. Its traces are in {bundle}")


async def _analysed(bundle: Path) -> Path:
    """Analyse a folder in a process of its own, since Spark blocks; the path of the report. Raises `Unavailable`."""
    from comparison.cli.report_file import REPORT  # it loads what draws reports

    command = module_command("comparison.cli.attached", str(os.getpid()), "analyze", str(bundle))
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL, start_new_session=True)
    try:
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
            try:
                await asyncio.wait_for(process.wait(), _INTERRUPT_S)
            except TimeoutError:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
    report = bundle / REPORT
    if not report.exists():  # one that lacks a group has another exit code
        raise Unavailable(f"`rebalance-lab analyze {bundle}` ended with exit code {code}")
    return report
