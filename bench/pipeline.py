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
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bench.figures import table
from bench.pipeline_child import DUCKDB, JSON, NUMPY, OURS, TABLES
from comparison.pipeline.generated.runs import Faults, write_synthetic, write_synthetic_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
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
#: What ours may take of DuckDB's CPU seconds. Below `RATIO_FROM` what costs the same at any size comes on top.
OF_DUCKDB_MAX = {JSON: 1.9, TABLES: 1.2}
RATIO_FROM, FIXED_CPU_S_MAX = 10_000_000, 9.0
EXPONENT_MAX, PEAK_MB_MAX = 1.05, 4_000.0
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


class Many(NamedTuple):
    """Many runs in one analysis."""

    runs: int
    events: int  #: of each
    what: str  #: is limited
    of: Callable[[Figure], float]
    limit: float


MANY = (
    Many(15, 5_000, "CPU s beyond Spark's start", lambda figure: figure.cpu_s, 12.0),
    Many(1_000, 2_000, "s with Spark's start", lambda figure: figure.start_s + figure.wall_s, 60.0),
)
MANY_SMOKE = (Many(20, 1_000, "s with Spark's start", lambda figure: figure.start_s + figure.wall_s, 60.0),)


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
    goals = [*goals_of(found), *(_many(bench, each) for each in (MANY_SMOKE if bench.smoke else MANY))]
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
    *("duplicates", "lost", "out_of_order", "commits", "stale_writes", "moved_back", "final_read"),
    *("final_behind", "final_beyond"),
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


def _many(bench: Bench, many: Many) -> Goal:
    runs, output = bench.folder / "many", bench.folder / "many-output"
    truths = write_synthetic_runs(runs, runs=many.runs, events_min=many.runs * many.events, seed=SEED, faults=FAULTS)
    what = f"{many.runs:,} runs of {many.events:,} events"
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
    about = {"runs": many.runs, "events": sum(truth.events for truth in truths)}
    figures = {name: getattr(median, name) for name in ("wall_s", "cpu_s", "start_s", "start_cpu_s", "peak_mb")}
    bench.figures.add(MEASURE, OURS, about, figures)
    found = many.of(median)
    return Goal(f"{what}: {many.what}", f"{found:.1f}", f"<= {many.limit:g}", found <= many.limit)


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


def goals_of(found: Mapping[tuple[int, str, str], Figure]) -> list[Goal]:
    """What the sizes come to: CPU seconds beside DuckDB's, their growth, and memory."""
    ours = {(size, source): figure for (size, source, side), figure in found.items() if side == OURS}
    goals = [
        _beside(size, source, figure, found.get((size, source, DUCKDB))) for (size, source), figure in ours.items()
    ]
    for source in (JSON, TABLES):
        exponent = exponent_of({size: figure.cpu_s for (size, of), figure in ours.items() if of == source})
        measured = f"{exponent:.2f}" if exponent is not None else ""
        met = exponent <= EXPONENT_MAX if exponent is not None else None
        goals.append(Goal(f"growth of CPU s from {source}, exponent from 1M up", measured, f"<= {EXPONENT_MAX}", met))
    peak_mb = max(figure.peak_mb for figure in ours.values())
    goals.append(Goal("peak memory", f"{peak_mb:,.0f} MB", f"<= {PEAK_MB_MAX:,.0f} MB", peak_mb <= PEAK_MB_MAX))
    return goals


def _beside(size: int, source: str, ours: Figure, peer: Figure | None) -> Goal:
    share, fixed_s = OF_DUCKDB_MAX[source], 0.0 if size >= RATIO_FROM else FIXED_CPU_S_MAX
    goal = f"<= {share} x DuckDB's" + (f" + {fixed_s:g}" if fixed_s else "")
    what = f"{size:,} events from {source}: CPU s beyond Spark's start"
    if peer is None:
        return Goal(what, f"{ours.cpu_s:.1f}", goal, None)
    found = f"{ours.cpu_s:.1f} ({ours.cpu_s / peer.cpu_s:.2f} x DuckDB's)"
    return Goal(what, found, goal, ours.cpu_s <= fixed_s + share * peer.cpu_s)


def exponent_of(seconds: dict[int, float]) -> float | None:
    """The slope of a line through the logarithms, by least squares; None below two sizes."""
    points = [(math.log(size), math.log(each)) for size, each in seconds.items() if size >= FITTED_FROM]
    if len(points) < 2:
        return None
    slope, _ = statistics.linear_regression(*zip(*points, strict=True))
    return slope
