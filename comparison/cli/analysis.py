"""Analyses run folders, stores the result and shows it: the only place that starts Spark."""

from __future__ import annotations

import logging
import os
import tempfile
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from rich.console import Console

from comparison.cli.documents import print_document
from comparison.cli.log_options import is_verbose
from comparison.cli.options import form_option, quiet_option, with_options
from comparison.cli.report_file import REPORT, left_out, shown_of, write_report
from comparison.cli.sources import output_folder, runs_in, sources_of
from comparison.cli.spark_options import SparkChoice, chosen_spark, cluster_options
from comparison.exits import Exit
from comparison.interrupts import interrupts_wait
from comparison.report.brief import render_brief
from comparison.report.junit import junit
from comparison.report.terminal import render
from comparison.results.outcomes import VerdictOutcome
from comparison.results.result import RESULT
from comparison.run_folder import write_json
from comparison.screen.printable import printable_all
from kernel.errors import UNWRITABLE, EnvironmentFault
from kernel.platform.full_disk import full_disk_named
from kernel.platform.places import exists, is_in_store
from kernel.platform.store_faults import explained
from kernel.platform.whole_file import file_of_option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

    from comparison.cli.report_file import Unshown
    from comparison.pipeline.spark.connect import ConnectSession
    from comparison.pipeline.spark.session import StartingSession
    from comparison.results.result import Result
    from kernel.platform.places import Place

#: The worst verdict decides: a violation before an unknown one.
_EXITS = {
    VerdictOutcome.EXPECTED: Exit.AS_EXPECTED,
    VerdictOutcome.UNKNOWN: Exit.UNKNOWN,
    VerdictOutcome.NOT_EXPECTED: Exit.NOT_AS_EXPECTED,
}


class Analysed(NamedTuple):
    """A result, and the runs that the report could not show."""

    result: Result
    unshown: Sequence[Unshown]


class Showing(NamedTuple):
    """How a command shows its result."""

    form: str
    details: bool
    junit: Path | None


#: How to show a result; `chosen_showing` takes them out of a command's options.
showing_options = with_options(
    form_option,
    click.option("--details", is_flag=True, help="Print every change, figure and check; so does -v."),
    click.option(
        "--junit",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Also write the verdicts as JUnit XML, for CI servers.",
    ),
)


def chosen_showing(options: dict[str, Any]) -> Showing:
    """What the options of `showing_options` say.

    Raises a usage error for a file in a folder that is not there, and for details of a document that has them all.
    """
    showing = Showing(options.pop("form"), options.pop("details"), options.pop("junit"))
    if showing.details and showing.form == "json":
        raise click.UsageError("--details has no effect on --format json, which has everything. Leave one of them out")
    if showing.junit is not None and not showing.junit.resolve().parent.is_dir():
        raise click.UsageError(f"--junit {showing.junit}: there is no folder {showing.junit.parent}")
    return showing


@contextmanager
def session_of_command(
    folder: Place, chosen: SparkChoice, ships: Sequence[ModuleType] = (), *, at_once: bool = True
) -> Iterator[StartingSession | ConnectSession]:
    """The command's one session, for the duration of the block, whose tasks write into `folder`.

    `ships` are packages that executors on other hosts need beside the pipeline. A session that may not be needed does
    not start `at_once`.
    Raises `EnvironmentFault` when the disk is full.
    """
    with interrupts_wait():
        # Imported only here: loading Spark takes longer than most commands.
        from comparison.pipeline.spark.session import starting_session

    # After an interrupt py4j logs tracebacks, some to the root logger. The error itself is raised as well.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(not_of_py4j)
    starting = starting_session(
        chosen.master, memory=chosen.memory, options=chosen.options, ships=ships, at_once=at_once
    )
    with _errors_named(folder), starting as started, started.ended_by_signals():
        yield started


@contextmanager
def _errors_named(*folders: Place) -> Iterator[None]:
    """Name a full disk, or a store that fails."""
    stores = [str(folder) for folder in folders if is_in_store(folder)]
    with ExitStack() as stack:
        if stores:
            stack.enter_context(explained(" and ".join(stores)))
            stack.enter_context(full_disk_named(Path(tempfile.gettempdir()), "set TMPDIR to another disk"))
        for folder in folders:
            if not is_in_store(folder):
                stack.enter_context(_disk_errors_named(folder))
        yield


@contextmanager
def _disk_errors_named(folder: Path) -> Iterator[None]:
    temporary = Path(tempfile.gettempdir())
    try:
        with full_disk_named(folder), full_disk_named(temporary, "set TMPDIR to another disk"):
            yield
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        raise EnvironmentFault(
            f"the analysis cannot write to {temporary} or {folder}: {os.strerror(error.errno)}. "
            "Free some space, or set TMPDIR to another disk"
        ) from error


def analysed(  # noqa: PLR0913  # what a command chooses, each by its name
    run_dirs: Sequence[Place],
    folder: Place,
    *,
    spark: SparkChoice | None = None,
    session: StartingSession | ConnectSession | None = None,
    progress: Callable[[str], None] = lambda _: None,
    report: bool = True,
    again: bool = False,
    bundles: Sequence[Place] = (),
) -> Analysed:
    """Analyse the runs and store the result in `folder` as `result.json` and, unless `report` is false, `report.html`.

    Runs that have not changed since an analysis in that folder are read `again` only if asked for. `bundles` are the
    folders of the commands that made the runs. `session` is the command's, if it has one already. Raises
    `EnvironmentFault` when the disk is full, or a store cannot be used.
    """
    if session is not None:
        opened: AbstractContextManager[StartingSession | ConnectSession] = nullcontext(session)
    else:
        is_first = again or not exists(folder / RESULT)
        opened = session_of_command(folder, spark or SparkChoice(), at_once=is_first)
    with _errors_named(folder, *(each for each in run_dirs if is_in_store(each))):
        with opened as started:
            with interrupts_wait():
                # Loaded while the JVM starts.
                from comparison.cli.damage import damage_of
                from comparison.cli.last_word import last_word
                from comparison.pipeline.analysis import Again
                from comparison.pipeline.analysis import analyze as analyze_on
                from comparison.pipeline.published import TABLES

            result = analyze_on(
                started.session,
                run_dirs,
                output=folder,
                progress=progress,
                again=Again.READING if again else Again.NOTHING,
                bundles=bundles,
                judged=last_word,
            )
        write_json(folder / RESULT, result)
        unshown = write_report(result, folder) if report else []
        for text in damage_of(result, folder / TABLES):
            click.echo(text, err=True)
    return Analysed(result, unshown)


def not_of_py4j(record: logging.LogRecord) -> bool:
    """A logging filter that drops py4j's records."""
    return "py4j" not in Path(record.pathname).parts


def shown(analysed: Analysed, showing: Showing) -> int:
    """Print the result to standard output; the exit code for its verdicts, or for runs that cannot be shown.

    Raises `EnvironmentFault` if a file that was asked for cannot be written.
    """
    result, unshown = analysed
    if showing.form == "json":
        print_document(result)
    else:
        console, show = Console(), render if showing.details or is_verbose() else render_brief
        text, others = shown_of([(result, Path())], lambda some: show(printable_all(some[0][0]), console))
        console.file.write(text)
        unshown = list({each.path: each for each in (*others, *unshown)}.values())
    if showing.junit is not None:
        _write_junit(result, showing.junit)
    return left_out(unshown) or _EXITS[result.verdict]


def _write_junit(result: Result, path: Path) -> None:
    with file_of_option(path, "--junit") as file:
        file.write_bytes(junit(result))


@click.command(
    epilog="""\b
Examples:
  rebalance-lab analyze runs/latest
  rebalance-lab analyze runs/latest --details      every figure and check
  rebalance-lab analyze runs/latest/crash --format json
  rebalance-lab analyze 'runs/2026*' --output all
  rebalance-lab analyze hdfs://10.0.0.4/runs s3a://bucket/runs \\
      --output s3a://bucket/all
  rebalance-lab analyze /shared/runs/latest --master spark://10.0.0.5:7077 \\
      --driver-host 10.0.0.9"""
)
@click.argument("sources", metavar="RUNS...", nargs=-1, required=True)
@click.option("-o", "--output", metavar="FOLDER", help="Folder for the results, or its URI.  [default: RUNS, if one]")
@showing_options
@quiet_option
@click.option("--again", is_flag=True, help="Also read runs that have not changed since their last analysis.")
@cluster_options
def analyze(sources: tuple[str, ...], output: str | None, quiet: bool, again: bool, **options: Any) -> int:
    """Analyse finished runs from their traces.

    RUNS are folders of runs, or with runs in them; patterns of such folders, in quotes; and URIs of such folders in
    stores that Spark reads and writes: file://, hdfs:// and s3a:// (docs/cluster.md). What an earlier analysis found of
    runs that have not changed is kept.
    """
    showing, found = chosen_showing(options), sources_of(sources)
    folder, run_dirs, spark = output_folder(output, found), runs_in(found), chosen_spark(options)

    def say(text: str) -> None:
        if not quiet:
            click.echo(text, err=True)

    code = shown(analysed(run_dirs, folder, spark=spark, again=again, progress=say, bundles=found), showing)
    say(f"report: {folder / REPORT}")
    return code
