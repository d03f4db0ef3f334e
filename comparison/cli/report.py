"""`rebalance-lab report`: one page of finished analyses, without analysing or running anything again."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from comparison.cli.comparing import difference_of, have_common, names_option, sides_of
from comparison.cli.given_results import result_of
from comparison.cli.options import refuse_beside
from comparison.cli.replay import write_replay
from comparison.cli.report_file import REPORT, page_written, write_comparison, write_page
from comparison.exits import Exit
from comparison.scenarios.plan.catalogue import designs_named
from kernel.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from comparison.cli.report_file import Unshown
    from comparison.results.result import Result


@click.command(
    epilog="""\b
Examples:
  rebalance-lab report runs/latest --open
  rebalance-lab report runs/latest/split-brain -o split-brain.html
  rebalance-lab report runs/20261123T111623Z-run runs/20261124T091200Z-run \\
      -o both.html
  rebalance-lab report before/latest after/latest -o difference.html
  rebalance-lab report runs/latest/pause/eager --replay --open
  rebalance-lab report runs/latest/pause --replay --design zookeeper,eager"""
)
@click.argument("folders", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write to this file.  [default: report.html beside the result.json of the only RUN; replay.html in RUN]",
)
@click.option(
    "--replay",
    "is_replay",
    is_flag=True,
    help="Write a replay instead: the traces of the runs, played on a page of its own that can be sent to somebody.",
)
@click.option(
    "--design",
    "designs",
    multiple=True,
    metavar="NAME",
    help="With --replay: only the runs of this design. Repeat it, or separate with commas.  [default: all]",
)
@click.option(
    "--captions",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --replay: words beside it, as JSON: a list of {at, text, part}; at is in seconds since the first "
    "change or fault.",
)
@names_option
@click.option("--open", "is_opened", is_flag=True, help="Open the page in the browser.")
def report(
    folders: tuple[Path, ...],
    output: Path | None,
    names: str | None,
    is_opened: bool,
    is_replay: bool,
    designs: tuple[str, ...],
    captions: Path | None,
) -> int:
    """Write the report of runs that were analysed before, or a replay of runs.

    RUN is a folder with a result.json, or a scenario's or run's folder in one. Give several to see them on one page.
    Two that have the same scenario in the same design are compared, as `diff` does: give the one before first. A replay
    needs traces only.
    """
    if not is_replay and (designs or captions):
        raise click.UsageError("--design and --captions are for --replay")
    if is_replay:
        refuse_beside("--replay", "names")
    written, code = _replay(folders, output, designs, captions) if is_replay else _report(folders, output, names)
    click.echo(str(written))
    if is_opened and not webbrowser.open(written.resolve().as_uri()):
        click.echo(f"no browser could be started: open {written.resolve().as_uri()}", err=True)
    return code


def _replay(
    folders: Sequence[Path], output: Path | None, designs: Sequence[str], captions: Path | None
) -> tuple[Path, int]:
    """Write a replay; where it is, and the exit code."""
    return write_replay(folders, output, captions, designs_named(designs) if designs else None), Exit.AS_EXPECTED


def _report(folders: Sequence[Path], output: Path | None, names: str | None) -> tuple[Path, int]:
    """Write a report; where it is, and the exit code."""
    found = [result_of(folder) for folder in folders]
    write = _writer(found, names)
    named = output is not None
    if output is None:
        home = found[0][1]
        if len(found) > 1 or folders[0].resolve() != home:
            raise UserError("this is not all of one result. Say with -o where its page goes")
        output = home / REPORT
    return output, page_written(lambda: write(output, named), output)


def _writer(found: list[tuple[Result, Path]], names: str | None) -> Callable[[Path, bool], list[Unshown]]:
    """What writes the page, given its file and whether the user has named it. Raises `UserError`."""
    if len(found) == 2 and have_common(*found):
        before, after = found
        difference = difference_of(before, after, sides_of(names))
        return lambda output, named: write_comparison(before, after, difference, output, named=named)
    if names is not None:
        raise UserError("--names is for two results with a scenario in the same design. Leave it out")
    _require_distinct(found)
    return lambda output, named: write_page(found, output, named=named)


def _require_distinct(found: list[tuple[Result, Path]]) -> None:
    """A column of a page is one design in one scenario: raise `UserError` for two of them."""
    seen: dict[tuple[str, str], Path] = {}
    for result, home in found:
        for scenario, design in sorted({(run.scenario, run.design) for run in result.runs}):
            other = seen.setdefault((scenario, design), home)
            if other != home:
                raise UserError(f"{scenario} in {design} is in {other} and in {home}. Give one of them")
