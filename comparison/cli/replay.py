"""What `rebalance-lab report --replay` writes: a page of its own, from the traces of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.cli.trace_files import read_traces
from comparison.near_paths import path_complaint
from comparison.replay.captions import read_captions
from comparison.replay.columns import columns_of
from comparison.report.export.stream import stream_of
from comparison.screen.counted import counted
from kernel.designs import DESIGN_NAMES
from kernel.errors import EnvironmentFault, UserError
from kernel.platform.whole_file import file_of_option

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from comparison.replay.captions import Caption
    from comparison.report.export.stream import Stream

REPLAY = "replay.html"


def write_replay(
    folders: Sequence[Path], output: Path | None, captions: Path | None, designs: Sequence[str] | None
) -> Path:
    """Write the replay of the runs below these folders, of these designs or all; where it is.

    Raises `UserError`.
    """
    if output is None and len(folders) > 1:
        raise UserError("several runs were given. Say with -o where their replay goes")
    text = replay_of(folders, read_captions(captions) if captions else (), designs)
    home = output or folders[0] / REPLAY
    with file_of_option(home, "--output", named=output is not None) as file:
        file.write_text(text, encoding="utf-8")
    return home


def replay_of(
    folders: Sequence[Path], captions: Sequence[Caption] = (), designs: Sequence[str] | None = None, *, title: str = ""
) -> str:
    """The replay of the runs below these folders, of these designs or all. Raises `UserError`."""
    # Slow imports (Jinja), of which no other command needs any.
    from comparison.replay.page import replay

    found = [_stream(run) for run in dict.fromkeys(run for folder in folders for run in _runs(folder))]
    chosen = [stream for stream, _ in found if designs is None or stream.design in designs]
    if not chosen:
        there = ", ".join(dict.fromkeys(each.design for each, _ in found))
        raise UserError(f"no run of {', '.join(designs or ())}. There are runs of {there}")
    return replay(columns_of(chosen), captions, [line for _, lines in found for line in lines], title=title)


def _runs(folder: Path) -> list[Path]:
    """The folders with traces in a folder, or below it."""
    if not folder.is_dir():
        raise EnvironmentFault(path_complaint(folder, "Give the folder of a run, such as runs/latest/pause/eager"))
    own = [each for each in (folder, folder / "trace") if any(each.glob("*.jsonl"))]
    below = (each for each in folder.rglob("trace") if any(each.glob("*.jsonl")))
    found = own[:1] or sorted(below, key=_order)
    if not found:
        raise UserError(f"no trace (*.jsonl) in {folder}. Give the folder of a run")
    return found


def _order(traces: Path) -> tuple[Path, int, str]:
    """Designs in the order of their history, within a scenario."""
    name = traces.parent.name
    return traces.parent.parent, DESIGN_NAMES.index(name) if name in DESIGN_NAMES else len(DESIGN_NAMES), name


def _stream(folder: Path) -> tuple[Stream, list[str]]:
    """The run whose traces are in this folder, and what of them could not be used."""
    traces = read_traces([folder])
    damage = [
        f"{trace.path.name}: {counted(len(trace.quarantined), 'line')} could not be used "
        f"({', '.join(sorted({each.reason.value for each in trace.quarantined}))})."
        for trace in traces
        if trace.quarantined
    ]
    return stream_of(traces), damage
