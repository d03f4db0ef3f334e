"""`rebalance-lab trace`: one run's events as one stream, for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from comparison.cli.complaints import OneOf
from comparison.cli.trace_files import read_traces, run_of
from comparison.exits import Exit
from comparison.report.export.lines import lines
from comparison.report.export.stream import stream_of
from kernel.errors import UserError
from kernel.platform.whole_file import file_of_option

if TYPE_CHECKING:
    from comparison.report.export.stream import Stream

PERFETTO, JSONL, PARQUET = "perfetto", "jsonl", "parquet"
#: The forms, and the suffixes of files that ask for them, the usual one first.
SUFFIXES = {PERFETTO: (".pftrace", ".perfetto-trace"), JSONL: (".jsonl",), PARQUET: (".parquet",)}


@click.command(
    epilog="""\b
Examples:
  rebalance-lab trace runs/latest/crash/eager --to perfetto -o crash.pftrace
      open it in ui.perfetto.dev
  rebalance-lab trace runs/latest/crash/eager --to jsonl | grep zk_notified
  rebalance-lab trace runs/latest/crash/eager --to parquet -o crash.parquet
  duckdb -c "SELECT kind, count(*) FROM 'crash.parquet' GROUP BY kind\""""
)
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "form",
    type=OneOf(list(SUFFIXES)),
    help="perfetto: tracks of phases, ownership and faults, with instants and counters; jsonl: one line per event; "
    "parquet: a table, one row per event.  [default: by the suffix of --output]",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write to this file.  [default: standard output for jsonl, else trace.pftrace or trace.parquet in RUN]",
)
def trace(run: Path, form: str | None, output: Path | None) -> int:
    """Write a run's events, from all its processes and in the order of time.

    RUN is the folder of one run. Times are seconds of the run, as in result.json.
    """
    home = run_of(run)
    form = form or _form_of(output)
    stream = stream_of(read_traces([home]))
    if form == JSONL and output is None:
        for line in lines(stream):
            click.echo(line)
        return Exit.AS_EXPECTED
    named = output is not None
    output = output or home / f"trace{SUFFIXES[form][0]}"
    with file_of_option(output, "--output", named=named) as path:
        _write(form, stream, path)
    click.echo(str(output))
    return Exit.AS_EXPECTED


def _form_of(output: Path | None) -> str:
    """The form that a file's suffix asks for. Raises `UserError` if it asks for none."""
    forms = {suffix: form for form, suffixes in SUFFIXES.items() for suffix in suffixes}
    if output is None or output.suffix.lower() not in forms:
        raise UserError(
            f"nothing says what to write. Use --to {', '.join(SUFFIXES)}, or a file: -o x{', -o x'.join(forms)}"
        )
    return forms[output.suffix.lower()]


def _write(form: str, stream: Stream, path: Path) -> None:
    """Each form's libraries are loaded only for it."""
    if form == JSONL:
        with path.open("w", encoding="ascii") as file:
            file.writelines(f"{line}\n" for line in lines(stream))
    elif form == PARQUET:
        from comparison.report.export.table import write_table

        write_table(stream, path)
    else:
        from comparison.report.export.perfetto import write_perfetto

        with path.open("wb") as file:
            write_perfetto(stream, file)
