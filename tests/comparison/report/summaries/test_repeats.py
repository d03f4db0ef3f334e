"""Repeats in both reports: one column per design, medians with ranges, and ratios only where they are meaningful."""

from __future__ import annotations

import pytest
from rich.console import Console

from comparison.pipeline.analysis import compose
from comparison.report.page import page
from comparison.report.summaries.figures import ratio
from comparison.report.summaries.repeats import columns_of
from comparison.report.terminal import render
from comparison.results.outcomes import VerdictOutcome
from comparison.results.result import Result
from comparison.results.run import Run
from tests.support.runs.results import change, run

PARAMETERS = {"members": 4, "partitions": 12, "brokers": 2, "rate": 200, "preset": "equal-timers"}
TIMERS = {"session_ms": 3000, "max_poll_ms": 10_000}


def one(design: str, seed: int, converge_ms: float, *, session_ms: int = 3000) -> Run:
    worst = VerdictOutcome.UNKNOWN if seed == 2 else VerdictOutcome.EXPECTED
    return run(
        "join",
        design,
        seed=seed,
        path=f"/runs/join/{design}/seed-{seed}",
        converge_ms=converge_ms,
        stopped=12.0,
        heartbeats=40.0 + seed,
        changes=[change(converge_ms=converge_ms)],
        parameters={**PARAMETERS, "timers": {**TIMERS, "session_ms": session_ms}},
        verdict=worst,
    )


def result(repeats: int = 3, *, eager_session_ms: int = 3000) -> Result:
    old = [one("zookeeper", seed, 100.0 * seed) for seed in range(1, repeats + 1)]
    new = [one("eager", seed, 300.0 * seed, session_ms=eager_session_ms) for seed in range(1, repeats + 1)]
    return compose([*old, *new])


def columns(mapping: Result) -> list[Run]:
    return columns_of(mapping.scenarios[0], mapping)


def rendered(mapping: Result, width: int) -> str:
    return render(mapping, Console(width=width, force_terminal=False))


def test_repeats_are_one_column_per_design_with_medians_and_the_worst_verdict() -> None:
    old, new = columns(result())
    assert [each.design for each in (old, new)] == ["zookeeper", "eager"]
    assert (new.metrics["converge_ms"], new.verdict, new.seed) == (600.0, "unknown", 2)
    assert new.changes[0].converge_ms == 600.0


@pytest.mark.parametrize("width", [80, 120])
def test_terminal_shows_medians_ranges_and_the_number_of_repeats(width: int) -> None:
    text = rendered(result(), width)
    words = " ".join(text.split())
    assert "600" in words
    assert "300-900" in words
    assert "3 repeats, seed 1-3" in words
    assert "3 repeats: 2 as expected, 1 unknown; shown below: seed 2" in words
    assert max(map(len, text.splitlines())) <= width


def test_page_shows_medians_ranges_and_the_number_of_repeats() -> None:
    text = page(result())
    assert '600<span class="ratio">300-900</span><span class="ratio">3.00x</span>' in text
    assert "3 repeats, seed 1-3" in text
    assert "3 repeats: 2 as expected, 1 unknown; shown below: seed 2" in text


@pytest.mark.parametrize(
    ("name", "repeats", "eager_session_ms", "shown"),
    [
        ("stopped", 1, 3000, "1.00x"),  # follows from the change
        ("converge_ms", 1, 3000, ""),  # one draw
        ("converge_ms", 2, 3000, ""),
        ("converge_ms", 3, 3000, "3.00x"),
        ("converge_ms", 3, 6000, ""),  # other timers
        ("duplicates", 1, 3000, ""),
        ("heartbeats", 3, 3000, ""),  # totals of runs of different length
        ("delivered", 3, 3000, ""),
    ],
)
def test_figures_have_ratios_only_where_they_are_comparable(
    name: str, repeats: int, eager_session_ms: int, shown: str
) -> None:
    old, new = columns(result(repeats, eager_session_ms=eager_session_ms))
    assert ratio(name, new, old) == shown
