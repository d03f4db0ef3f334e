"""What each surface says of one analysed run: the same figures, taken from what each of them shows.

`watch` shows a live group only, by what `describe` shows too (`comparison.group_readers.columns`), so it has no
figures here. The terminal and report.html print the metrics of result.json, and report.html draws the lanes of
`report`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from comparison.ownership.cover import doubled_ns, stops
from comparison.playground import messages
from comparison.playground.live.first import first_group
from comparison.playground.live.fold import GroupFold
from comparison.replay.columns import columns_of
from comparison.replay.steps import DETAILS, folded
from comparison.report import terminal
from comparison.report.diagrams.timeline import timeline
from comparison.report.export.picture import picture
from comparison.report.export.stream import stream_of
from comparison.report.export.tracks import Track
from comparison.report.history.group_history import GroupHistory, read_history
from comparison.report.history.group_moment import RunEvents
from comparison.report.view.model import RunView
from comparison.report.view.runs import read_views
from comparison.results.metrics import METRICS
from comparison.results.result import Result
from kernel.designs import ZOOKEEPER
from kernel.trace.reader import Trace, read_trace
from kernel.trace.run_clock import events_in_order

#: Figures by name, then by surface.
Said = dict[str, dict[str, float]]

#: The metrics that a surface beside result.json shows.
SHOWN = (
    *("two_delivering_partition_s", "unowned_partition_s", "unowned_authority_partition_s", "commits", "moved_back"),
    *("refused", "delivered", "duplicates", "notifications", "rebalances"),
)
#: Times are compared to the milliseconds that the playground counts in.
TOLERANCE_S = 0.05


def figures_of(folder: Path, result: Result) -> Iterator[tuple[str, Said]]:
    """Each run of an analysed folder by its design, with what its surfaces say."""
    for place, (run, report) in enumerate(zip(result.runs, read_views(result, folder), strict=True)):
        traces = [read_trace(path) for path in sorted((folder / run.path / "trace").glob("*.jsonl"))]
        events, history = events_in_order(traces), read_history(traces)
        end_ns = next(event["ns"] for event in events if stops(event))
        # Times are measured until the members are stopped; commits are counted to the end.
        diagram, whole = (timeline(history, history.zero_ns, until_ns) for until_ns in (end_ns, events[-1]["ns"] + 1))
        assert report is not None
        said: defaultdict[str, dict[str, float]] = defaultdict(dict)
        surfaces: dict[str, dict[str, Any]] = {
            "result.json": {name: run.metrics[name] for name in SHOWN},
            "report": _times(report) | _commits(report),
            "diagram": {**_times(diagram), **_commits(whole), "rebalances": _rebalances(history, end_ns)},
            "perfetto": _perfetto(traces, end_ns),
            "playground": _played(events, run.design),
            "replay": _replayed(traces),
            "terminal": _printed(result, place),
        }
        for surface, figures in surfaces.items():
            for name, value in figures.items():
                if value is not None:
                    said[name][surface] = value
        _owners(said, traces, diagram, report, end_ns)
        yield run.design, said


def disagreements(said: Said) -> list[str]:
    """The figures that two surfaces say differently."""
    return [
        f"{name}: {values}"
        for name, values in said.items()
        if max(values.values()) - min(values.values()) > (TOLERANCE_S if name.endswith("_s") else 0)
    ]


def _times(view: RunView) -> dict[str, float]:
    """Of lanes, as the report and a diagram draw them."""
    held = [[(round(h.from_ms * 1e6), round(h.until_ms * 1e6)) for h in lane.delivering] for lane in view.partitions]
    lanes = view.partitions
    return {
        "two_delivering_partition_s": sum(doubled_ns(each, 1_000_000) for each in held) / 1e9,
        "unowned_partition_s": sum(gap.length_ms for lane in lanes for gap in lane.unclaimed) / 1e3,
        "unowned_authority_partition_s": sum(gap.length_ms for lane in lanes for gap in lane.unnamed) / 1e3,
    }


def _commits(view: RunView) -> dict[str, float]:
    commits = [each for lane in view.partitions for each in lane.commits]
    return {
        "commits": sum(each.is_accepted for each in commits),
        "moved_back": sum(each.moved_back_by > 0 for each in commits),
        "refused": sum(not each.is_accepted for each in commits),
    }


def _rebalances(history: GroupHistory, end_ns: int) -> int:
    return sum(each.began_ns < end_ns for found in history.rounds for each in found.rebalances)


def _perfetto(traces: list[Trace], end_ns: int) -> dict[str, float]:
    root = picture(stream_of(traces))
    partitions = root.below["partitions"].below.values()
    held = [
        [(each.from_ns, min(each.until_ns, end_ns)) for each in of.below["delivers"].slices if each.from_ns < end_ns]
        for of in partitions
        if "delivers" in of.below
    ]
    commits = [each.name for of in partitions if "commits" in of.below for each in of.below["commits"].instants]
    accepted = [name for name in commits if ": " not in name]
    counted = [
        max((each.value for each in track.values if each.at_ns < end_ns), default=0)
        for track in _named(root, "records delivered")
    ]
    return {
        "two_delivering_partition_s": sum(doubled_ns(each, 1_000_000) for each in held) / 1e9,
        "commits": len(accepted),
        "moved_back": sum("moves back by" in name for name in accepted),
        "refused": len(commits) - len(accepted),
        "delivered": sum(counted),
    }


def _named(track: Track, name: str) -> Iterator[Track]:
    for each in track.below.values():
        if each.name == name:
            yield each
        yield from _named(each, name)


def _played(events: list[dict[str, Any]], design: str) -> dict[str, float]:
    """The counters of the playground, if it had been a game."""
    coordinated = design != ZOOKEEPER
    group = messages.Group(
        design=design, coordinated=coordinated, coordinator=messages.Coordinator() if coordinated else None
    )
    fold = GroupFold(group)
    for event in events:
        fold.apply(event["ns"] / 1e6, event)
    (counters,) = (
        each.counters
        for each in fold.drain(events[-1]["ns"] // 10**6, group)
        if isinstance(each, messages.CountersChanged)
    )
    return {name: getattr(counters, name) for name in counters.__struct_fields__ if name in SHOWN}


def _replayed(traces: list[Trace]) -> dict[str, float]:
    """The counters at the end of a replay."""
    (column,) = columns_of([stream_of(traces)])
    found = folded(first_group(column.design, column.rate), column.events, DETAILS[0], znodes=False)
    changes = (change for step in found.steps for change in step.changes)
    *_, counters = (each.counters for each in changes if isinstance(each, messages.CountersChanged))
    return {name: getattr(counters, name) for name in counters.__struct_fields__ if name in SHOWN}


def _printed(result: Result, place: int) -> dict[str, float]:
    """The sums that the terminal prints of a run of its one scenario, rounded as it does."""
    found: dict[str, float] = {}
    for line in map(str.strip, terminal.render(result, Console(width=200)).splitlines()):
        for name in SHOWN:
            label = f"{METRICS[name].label} "
            if METRICS[name].label and line.startswith(f"{label} "):
                found[name] = float(line.removeprefix(label).split()[place].replace(",", ""))
    return found


def _owners(said: Said, traces: list[Trace], diagram: RunView, report: RunView, end_ns: int) -> None:
    """How many partitions have an owner by the authority, in the middle of the run, and when most of it was over."""
    run = RunEvents(traces)
    start_ns = run.events[0]["ns"]
    for share in (0.5, 0.9):
        at_ns = round(start_ns + share * (end_ns - start_ns))
        at_ms = at_ns / 1e6
        name = f"owned at {at_ms:.0f} ms"
        said[name]["describe"] = sum(bool(row.owner) for seen in run.at(at_ns / 1e9) for row in seen.partitions)
        for surface, view, moment_ms in (("diagram", diagram, at_ms - start_ns / 1e6), ("report", report, at_ms)):
            said[name][surface] = sum(
                any(each.from_ms <= moment_ms < each.until_ms for each in lane.named) for lane in view.partitions
            )
