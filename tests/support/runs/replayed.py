"""The replay of hand-written runs, for tests of its page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from comparison.replay.captions import Caption
from comparison.replay.columns import columns_of
from comparison.replay.page import replay
from comparison.report.export.stream import Stream, stream_of
from kernel.trace.reader import read_trace


def stream_in(run: Path) -> Stream:
    return stream_of([read_trace(path) for path in sorted((run / "trace").glob("*.jsonl"))])


def write_replay_of(runs: Sequence[Path], file: Path, captions: Sequence[Caption] = ()) -> Path:
    """Write the replay of these runs, side by side."""
    file.write_text(replay(columns_of([stream_in(run) for run in runs]), captions), encoding="utf-8")
    return file
