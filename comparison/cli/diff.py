"""`rebalance-lab diff`: the same scenarios and designs in two results, figure by figure."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from comparison.cli.comparing import difference_of, names_option, sides_of
from comparison.cli.documents import print_document
from comparison.cli.given_results import result_of
from comparison.cli.log_options import is_verbose
from comparison.cli.options import form_option
from comparison.cli.report_file import page_written, write_comparison
from comparison.differences.bounds import bounds_of
from comparison.exits import Exit
from comparison.report.difference import render
from comparison.report.summaries.differences import conclusion
from comparison.screen.printable import printable_all


@click.command(
    epilog="""\b
Examples:
  rebalance-lab diff runs/20261123T111623Z-run runs/latest
  rebalance-lab diff main branch --worse-than 20%
  rebalance-lab diff 0.1 0.2 --names 0.1,0.2 --worse-than lost=0 \\
      --worse-than converge_ms=20%

\b
Exit codes with --worse-than: 0 nothing is worse, 1 something is worse than
allowed, 2 it cannot be known. In any case 130 interrupted, 254 usage, 255
internal error."""
)
@click.argument("before", metavar="A", type=click.Path(path_type=Path))
@click.argument("after", metavar="B", type=click.Path(path_type=Path))
@click.option(
    "--worse-than",
    "bounds",
    multiple=True,
    metavar="[FIGURE=]BOUND",
    help="Fail if a figure of B is worse than A's by more than this and beyond the repeats' ranges: 20%, lost=0, "
    "converge_ms=20%. May be repeated, or separated with commas.",
)
@names_option
@click.option(
    "--report",
    "page",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write a page: what differs, and both sides' lanes on one axis.",
)
@click.option("--details", is_flag=True, help="Also show the figures that do not differ; so does -v.")
@form_option
def diff(  # what the command line says, each by its name
    before: Path,
    after: Path,
    bounds: tuple[str, ...],
    names: str | None,
    page: Path | None,
    details: bool,
    form: str,
) -> int:
    """Compare the same scenarios and designs in two results: with other settings, or another release.

    A and B are folders with a result.json, or a scenario's or run's folder in one. Repeats (--repeat) of both show
    which differences are more than chance.
    """
    allowed = bounds_of(bounds)
    both = result_of(before), result_of(after)
    found = difference_of(*both, sides_of(names), allowed)
    code: int = Exit.AS_EXPECTED
    if page is not None:
        code = page_written(lambda: write_comparison(*both, found, page, named=True), page)
    if form == "json":
        print_document(found)
        if text := conclusion(found):
            click.echo(text, err=True)
    else:
        console = Console()
        console.file.write(render(printable_all(found), console, with_all=details or is_verbose()))
    if code != Exit.AS_EXPECTED:
        return code
    if found.worse:
        return Exit.NOT_AS_EXPECTED
    return Exit.UNKNOWN if found.unknown else Exit.AS_EXPECTED
