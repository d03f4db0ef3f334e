"""The command line: `rebalance-lab`. Data goes to standard output, progress and messages to standard error.

Every error that we raise on purpose is reported in one line, with an exit code (`comparison.exits`). So is a bug of
ours; the line names a file with the traceback.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from comparison.cli.complaints import error_line, usage_complaint
from comparison.cli.log_options import with_log_options
from comparison.exits import Exit
from comparison.interrupts import raise_interrupts, to_the_end
from comparison.logs import set_inherited_level
from comparison.screen.printable import printable
from kernel.errors import RebalanceLabError, SeveralErrors, UserError
from kernel.platform.lean_imports import import_lean, importing

if TYPE_CHECKING:
    from types import TracebackType


class Command(NamedTuple):
    """A command's module and its line of help. A module is imported only when its command is used."""

    module: str
    does: str


COMMANDS = {
    "compare": Command("comparison.cli.experiments", "Run the scenarios under several designs and compare them."),
    "run": Command("comparison.cli.experiments", "Run scenarios, analyse them and report the verdicts."),
    "playground": Command("comparison.cli.playground", "Watch groups on a local page, and play against them."),
    "sweep": Command("comparison.cli.sweep", "Run every combination of a grid, and fit how figures grow."),
    "choose": Command("comparison.cli.choose", "Show what a week of deploys and crashes costs in each design."),
    "fuzz": Command("comparison.cli.fuzz", "Draw random schedules of faults, run them, and shrink those that fail."),
    "scenarios": Command("comparison.cli.scenarios", "List the scenarios, or describe one."),
    "settings": Command("comparison.cli.settings", "List the settings with their defaults, or describe one."),
    "analyze": Command("comparison.cli.analysis", "Analyse finished runs from their traces."),
    "report": Command("comparison.cli.report", "Write the report of analysed runs as one page."),
    "diff": Command("comparison.cli.diff", "Compare two results of the same scenarios and designs."),
    "diagram": Command("comparison.cli.diagram", "Draw rebalances from a run's traces."),
    "trace": Command("comparison.cli.trace", "Write a run's events for Perfetto, or as JSON lines or Parquet."),
    "describe": Command("comparison.cli.describe", "Show the groups of a finished run at a moment."),
    "zookeeper": Command("comparison.cli.zookeeper", "Start, check and stop a ZooKeeper server."),
    "broker": Command("comparison.cli.broker", "Run a broker with the group coordinator."),
    "topic": Command("comparison.cli.topic", "Create, list, describe and delete topics."),
    "consume": Command("comparison.cli.clients", "Join a consumer group; show its rebalances."),
    "produce": Command("comparison.cli.produce", "Produce records to a topic."),
    "watch": Command("comparison.cli.watch", "Show a group's members, owners, offsets and state, live."),
    "assign": Command("comparison.cli.assign", "Show what assignment strategies give a group, and what they move."),
    "doctor": Command("comparison.cli.doctor", "Check prerequisites and suggest fixes."),
    "completion": Command("comparison.cli.completion", "Print the script that completes commands in a shell."),
}


class Commands(click.Group):
    """The table above as a group."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        with importing():
            command = getattr(importlib.import_module(COMMANDS[cmd_name].module), cmd_name)
        assert isinstance(command, click.Command)
        raise_interrupts()
        return with_log_options(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.does) for name, command in COMMANDS.items()])


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="""\b
Examples:
  rebalance-lab compare --smoke
      two scenarios in two designs, about two minutes
  rebalance-lab scenarios pause  what a scenario does, and what to look for
  rebalance-lab run crash --design zookeeper    one scenario in one design
  rebalance-lab doctor                          check this machine

\b
By hand, in several terminals:
  rebalance-lab zookeeper start
  rebalance-lab broker --zookeeper 127.0.0.1:2181 --port 9092
  rebalance-lab topic create orders --partitions 6
  rebalance-lab consume --design zookeeper --group g --topic orders
  rebalance-lab produce --topic orders --rate 5
  rebalance-lab watch --group g

\b
Exit codes: 0 as expected, 1 not as expected, 2 unknown, 130 interrupted, 254
usage, 255 internal error or a server that did not answer.""",
)
@click.version_option(package_name="rebalance-lab")
def cli() -> None:
    """Compare the designs of Kafka's consumer groups, against a real ZooKeeper.

    Runs consumer groups of every design under the same load and the same faults, and reports what each design
    costs and which promises it breaks.
    """


with_log_options(cli)


def main(arguments: list[str] | None = None) -> None:
    """The console script. Always ends in SystemExit."""
    import_lean()
    sys.excepthook = _internal_error
    set_inherited_level()
    raise SystemExit(_exit_code(arguments))


def _exit_code(arguments: list[str] | None) -> int:
    try:
        result = cli.main(args=arguments, prog_name="rebalance-lab", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return Exit.USAGE
    except click.ClickException as error:
        return _report(usage_complaint(error), Exit.USAGE)
    except (click.Abort, KeyboardInterrupt):
        click.echo("rebalance-lab: interrupted", err=True)
        return Exit.INTERRUPTED
    except SeveralErrors as error:
        return _report_all(error)
    except UserError as error:
        return _report(str(error), Exit.USAGE)
    except RebalanceLabError as error:
        return _report(str(error), Exit.INTERNAL)
    except BrokenPipeError:
        # The reader closed the pipe (`| head`). Python would report it again at exit.
        sys.stdout = None
        return Exit.AS_EXPECTED
    except OSError as error:
        where = error.filename or "the operating system"
        return _report(f"{error.strerror or error} ({where}). See what is wrong there", Exit.INTERNAL)
    return result if isinstance(result, int) else Exit.AS_EXPECTED


def _report(message: str, code: Exit) -> int:
    click.echo(error_line(message), err=True)
    return code


def _report_all(errors: SeveralErrors) -> int:
    for text in errors.texts:
        _report(text, Exit.USAGE)
    for line in errors.details.splitlines():
        click.echo(printable(line), err=True)
    return Exit.USAGE


def _internal_error(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """The exception hook: one line, the traceback in a file, our exit code."""
    text = "".join(traceback.format_exception(kind, error, where))
    with tempfile.NamedTemporaryFile(
        "w", prefix="rebalance-lab-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        file.write(text)
    described = f"internal error: {kind.__name__}: {error} (traceback in {Path(file.name)}). Report it with that file"
    code = _report(described, Exit.INTERNAL)
    raise SystemExit(code)


if __name__ == "__main__":
    to_the_end(main)
