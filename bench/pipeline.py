"""Speed and memory of the pipeline beside DuckDB and bare numpy, on generated runs whose figures are known.

Each side analyses each run in a process of its own: from its JSON lines, then from the tables of events that ours left.
All sides must give the same answers to a common core of questions, equal to what the generator counted; ours also
judges, checks every line and writes tables. The start of Spark is shown by itself.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from bench.figures import table
from bench.pipeline_child import DUCKDB, JSON, NUMPY, OURS, TABLES
from comparison.pipeline.generated.runs import Faults, write_synthetic, write_synthetic_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bench.bench import Bench
    from comparison.pipeline.generated.truth import Truth

MEASURE = "pipeline"
LARGE = 50_000_000
SIZES = (100_000, 1_000_000, 10_000_000)
#: From this size on the exponent is fitted; below, fixed costs rule.
FITTED_FROM = 1_000_000
SEED = 7
FAULTS = Faults(zombies=0.5)
#: Many runs in one analysis: what it is like, how many runs, events of each, goal in seconds with Spark's start.
MANY = (
    ("a comparison: 15 runs", 15, 5_000, 12.0),
    ("one scenario in two designs: 2 runs", 2, 5_000, 8.0),
    ("1,000 small runs", 1_000, 2_000, 60.0),
)
MANY_SMOKE = (("20 small runs", 20, 1_000, 60.0),)
#: With the largest size.
WALL_S_MAX = {JSON: 90.0, TABLES: 30.0}
OF_DUCKDB_MAX, EXPONENT_MAX, PEAK_MB_MAX = 0.6, 1.05, 4_000.0
_CHILD_TIMEOUT_S = 3_600.0
_MS = 1_000_000


@dataclass(frozen=True)
class Figure:
    """What one side took for one run from one source, medians of its repeats; without Spark's start."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    start_s: float
    start_cpu_s: float


@dataclass(frozen=True)
class Goal:
    """A line of the table of goals; `met` is None for what was not measured."""

    what: str
    found: str
    goal: str
    met: bool | None


def command_line(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--events",
        type=click.IntRange(1_000),
        multiple=True,
        help="Pipeline: size of a run in events (repeatable); with --full also 50 million.",
    )(command)


def run(bench: Bench) -> None:
    """Measure all sizes, then many runs at once; print a table of both, and the goals."""
    sizes = (10_000,) if bench.smoke else (*SIZES, *((LARGE,) if bench.asked.get("full") else ()))
    sizes = tuple(bench.asked.get("events") or ()) or sizes
    found: dict[tuple[int, str, str], Figure] = {}
    for size in sizes:
        found |= _of_size(bench, size)
        _print(bench, found)
    many = [_many(bench, *each) for each in (MANY_SMOKE if bench.smoke else MANY)]
    goals = [*_goals(found), *many]
    made = table("Pipeline: goals", "", "measured", "goal", "", left=(0, 2, 3))
    for goal in goals:
        verdict = {True: "met", False: "[bold]not met[/]", None: "not measured"}[goal.met]
        made.add_row(goal.what, goal.found, goal.goal, verdict)
    bench.console.print(made)


def _of_size(bench: Bench, size: int) -> dict[tuple[int, str, str], Figure]:
    runs, output = bench.folder / f"synthetic-{size}", bench.folder / f"output-{size}"
    truth = write_synthetic(runs, events_min=size, seed=SEED, faults=FAULTS)
    sides = [OURS, *_peers(bench)]
    repeats: dict[tuple[str, str], list[dict[str, Any]]] = {}
    try:
        for _ in range(bench.runs or 1):
            for source in (JSON, TABLES):
                for side in sides:
                    load = os.getloadavg()[0]
                    measured = _child(side, source, runs, output)
                    check(side, source, measured["answers"], truth)
                    repeats.setdefault((source, side), []).append(measured)
                    figures = {name: measured["work"][name] for name in ("wall_s", "cpu_s")}
                    figures |= {"start_s": measured["session"]["wall_s"], "start_cpu_s": measured["session"]["cpu_s"]}
                    figures |= {"peak_mb": measured["peak_mb"], "load": load}
                    about = {"events": truth.events, "from_json": int(source == JSON)}
                    bench.figures.add(MEASURE, side, about, figures)
    finally:
        for folder in bench.folder.glob(f"*-{size}*"):
            shutil.rmtree(folder, ignore_errors=True)
    return {(truth.events, source, side): _median(every) for (source, side), every in repeats.items()}


def _peers(bench: Bench) -> list[str]:
    if importlib.util.find_spec("duckdb") is None:
        why = "it is not installed; make setup installs it"
        if not any(each.startswith(DUCKDB) for each in bench.figures.left_out):
            bench.leave_out(DUCKDB, why)
        return [NUMPY]
    return [DUCKDB, NUMPY]


def _child(side: str, source: str, runs: Path, output: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.pipeline_child", side, source, str(runs), str(output)],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=_CHILD_TIMEOUT_S,
    )
    if done.returncode:
        raise RuntimeError(f"{side} from {source} failed, see above")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _median(every: Sequence[dict[str, Any]]) -> Figure:
    return Figure(
        wall_s=statistics.median(each["work"]["wall_s"] for each in every),
        cpu_s=statistics.median(each["work"]["cpu_s"] for each in every),
        peak_mb=max(each["peak_mb"] for each in every),
        start_s=statistics.median(each["session"]["wall_s"] for each in every),
        start_cpu_s=statistics.median(each["session"]["cpu_s"] for each in every),
    )


def check(side: str, source: str, answers: dict[str, Any], truth: Truth) -> None:
    """Raise RuntimeError if the answers are not the true ones: a benchmark that does not check measures nothing."""
    if side == OURS and (problems := answers["runs"][0]["problems"]):
        raise RuntimeError(f"{side} from {source} found problems in the generated run: {problems}")
    found = core_of(answers["kinds"], answers["runs"][0]["metrics"]) if side == OURS else dict(answers)
    kinds = found.pop("kinds")
    expected = {
        "unowned_ns": truth.unowned_ms * _MS,
        "double_owned_ns": truth.double_owned_ms * _MS,
        "two_delivering_ns": truth.two_delivering_ms * _MS,
        **{name: getattr(truth, name) for name in COUNTS},
    }
    if found != expected or sum(kinds.values()) != truth.events or kinds["rebalance_started"] != truth.rebalances:
        raise RuntimeError(f"{side} from {source} found {found} in {kinds}, the generator wrote {truth}")


#: What is counted, by the names of the metrics and of the truth.
COUNTS = (
    "duplicates",
    "lost",
    "out_of_order",
    "commits",
    "stale_writes",
    "moved_back",
    "final_read",
    "final_behind",
    "final_beyond",
)


def core_of(kinds: dict[str, int], metrics: dict[str, float]) -> dict[str, Any]:
    """Our answers to the questions that all sides are asked."""
    times = {
        "unowned_ns": "unowned_partition_s",
        "double_owned_ns": "double_owned_partition_s",
        "two_delivering_ns": "two_delivering_partition_s",
    }
    return {
        "kinds": kinds,
        **{name: round(metrics[metric] * 1000) * _MS for name, metric in times.items()},
        **{name: metrics[name] for name in COUNTS},
    }


def _many(bench: Bench, what: str, count: int, events: int, goal_s: float) -> Goal:
    """Many runs in one analysis, timed with Spark's start."""
    runs, output = bench.folder / "many", bench.folder / "many-output"
    truths = write_synthetic_runs(runs, runs=count, events_min=count * events, seed=SEED, faults=FAULTS)
    try:
        every = [_child(OURS, JSON, runs, output) for _ in range(bench.runs or 1)]
    finally:
        for folder in (runs, output):
            shutil.rmtree(folder, ignore_errors=True)
    for measured in every:
        ours = {
            each["run_id"]: {name: each["metrics"][name] for name in COUNTS} for each in measured["answers"]["runs"]
        }
        expected = {
            f"run-{number:05}": {name: getattr(truth, name) for name in COUNTS} for number, truth in enumerate(truths)
        }
        if ours != expected:
            raise RuntimeError(f"{what}: the analysis did not find what the generator wrote")
    median = _median(every)
    wall_s = median.start_s + median.wall_s
    about = {"runs": count, "events": sum(truth.events for truth in truths)}
    bench.figures.add(MEASURE, OURS, about, {"wall_s": wall_s, "cpu_s": median.start_cpu_s + median.cpu_s})
    found = f"{wall_s:.1f} s, {median.start_cpu_s + median.cpu_s:.1f} CPU s"
    return Goal(f"{what} of {events:,} events, with Spark's start", found, f"<= {goal_s:g} s", wall_s <= goal_s)


def _print(bench: Bench, found: dict[tuple[int, str, str], Figure]) -> None:
    headings = ("events", "from", OURS, "Spark's start", DUCKDB, NUMPY, "ours / DuckDB", "ours / numpy")
    made = table("Pipeline: CPU s (wall s, peak MB)", *headings, left=(1,))
    for size, source in dict.fromkeys((size, source) for size, source, _ in found):
        sides = {side: found.get((size, source, side)) for side in (OURS, DUCKDB, NUMPY)}
        ours = sides[OURS]
        assert ours is not None
        made.add_row(
            f"{size:,}",
            source,
            _in_words(ours),
            f"{ours.start_cpu_s:.1f} ({ours.start_s:.1f})",
            *(_in_words(sides[side]) for side in (DUCKDB, NUMPY)),
            *(f"{ours.cpu_s / each.cpu_s:.2f}" if (each := sides[side]) else "" for side in (DUCKDB, NUMPY)),
        )
    bench.console.print(made)


def _in_words(figure: Figure | None) -> str:
    return f"{figure.cpu_s:.1f} ({figure.wall_s:.1f}, {figure.peak_mb:,.0f})" if figure else ""


def _goals(found: dict[tuple[int, str, str], Figure]) -> list[Goal]:
    goals = []
    largest = max(size for size, _, _ in found)
    is_large = largest >= LARGE
    for source in (JSON, TABLES):
        ours = found[largest, source, OURS]
        measured, limit = f"{ours.wall_s:.1f} s", WALL_S_MAX[source]
        met = ours.wall_s <= limit if is_large else None
        goals.append(
            Goal(f"{largest:,} events from {source}, beyond Spark's start", measured, f"<= {limit:g} s (50M)", met)
        )
        exponent = exponent_of(
            {size: each.cpu_s for (size, of, side), each in found.items() if (of, side) == (source, OURS)}
        )
        measured = f"{exponent:.2f}" if exponent is not None else ""
        met = exponent <= EXPONENT_MAX if exponent is not None else None
        goals.append(Goal(f"growth of CPU s from {source}, exponent from 1M up", measured, f"<= {EXPONENT_MAX}", met))
    ours, peer = found[largest, TABLES, OURS], found.get((largest, TABLES, DUCKDB))
    if peer is not None:
        ratio = ours.cpu_s / peer.cpu_s
        met = ratio <= OF_DUCKDB_MAX if is_large else None
        shown = f"{ratio:.2f} (wall {ours.wall_s / peer.wall_s:.2f})"
        goals.append(
            Goal(f"{largest:,} events from tables, CPU s of DuckDB's", shown, f"<= {OF_DUCKDB_MAX} (50M)", met)
        )
    peak_mb = max(each.peak_mb for (_, _, side), each in found.items() if side == OURS)
    goals.append(Goal("peak memory", f"{peak_mb:,.0f} MB", f"<= {PEAK_MB_MAX:,.0f} MB", peak_mb <= PEAK_MB_MAX))
    return goals


def exponent_of(seconds: dict[int, float]) -> float | None:
    """The slope of a line through the logarithms, by least squares; None below two sizes."""
    points = [(math.log(size), math.log(each)) for size, each in seconds.items() if size >= FITTED_FROM]
    if len(points) < 2:
        return None
    slope, _ = statistics.linear_regression(*zip(*points, strict=True))
    return slope
