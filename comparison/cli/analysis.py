"""From run folders to a result that is kept and shown: the one place where Spark is started."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.console import Console

from comparison.exits import Exit
from comparison.printable import printable_all
from comparison.report.page import page
from comparison.report.terminal import render
from comparison.run_folder import UNWRITABLE, write_json
from kernel.errors import EnvironmentFault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

RESULT, REPORT = "result.json", "report.html"

#: Of several verdicts the worst decides: a violation before what could not be told.
_EXITS = {"as expected": Exit.AS_EXPECTED, "unknown": Exit.UNKNOWN, "not as expected": Exit.NOT_AS_EXPECTED}


def analysed(
    run_dirs: Sequence[Path],
    folder: Path,
    *,
    master: str = "local[*]",
    progress: Callable[[str], None] = lambda _: None,
) -> Mapping[str, Any]:
    """Analyse and keep the result beside the runs, as `result.json` and, to be looked at, as `report.html`.

    Raises `EnvironmentFault` when there is no room for it.
    """
    # Only here: loading Spark takes longer than most commands.
    from comparison.pipeline.analysis import analyze
    from comparison.pipeline.session import spark_session

    # Of an interrupt py4j logs tracebacks, some to the root logger; what went wrong is raised as well.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(not_of_py4j)
    try:
        with interrupted_by_sigterm(), spark_session(master) as spark:
            result = analyze(spark, run_dirs, output=folder, progress=progress)
        (folder / REPORT).write_text(page(result), encoding="utf-8")
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        raise EnvironmentFault(
            f"the analysis cannot write in {tempfile.gettempdir()} or {folder}: {os.strerror(error.errno)}; "
            "make room, or set TMPDIR to a folder that has some"
        ) from error
    write_json(folder / RESULT, result)
    return result


def not_of_py4j(record: logging.LogRecord) -> bool:
    """A logging filter."""
    return "py4j" not in Path(record.pathname).parts


@contextlib.contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """Inside the block SIGTERM acts as Ctrl-C, so that children and files are cleared away."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def shown(result: Mapping[str, Any], form: str) -> int:
    """Print the result to standard output; the exit code that its verdicts mean."""
    if form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(result), indent=2))
    else:
        render(printable_all(result), Console())
    return _EXITS[result["verdict"]]
