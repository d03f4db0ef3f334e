"""The page has a bound: with more runs it draws less of each, and of two designs rather than nothing of all."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import comparison.report.page
from comparison.pipeline.analysis import compose
from comparison.report.page import page
from comparison.report.view.model import Commit, Holding, PartitionView
from comparison.results.result import Result
from kernel.designs import DESIGN_NAMES
from tests.comparison.report.drawing.test_lanes import lane
from tests.comparison.report.sections.run_views import empty_view
from tests.support.runs.results import run

SCENARIOS = ("crash", "join")


def busy(number: int) -> PartitionView:
    """A partition that changes its owner often."""
    held = tuple(Holding(100.0 * n, 100.0 * n + 90, f"m{n % 3}") for n in range(90))
    commits = tuple(
        Commit(at_ms=100.0 * n, member="m1", offset=n, outcome="accepted", is_stale=False, moved_back_by=0)
        for n in range(90)
    )
    return lane(f"t-{number}", named=held, delivering=held, commits=commits)


def drawn(result: Result, bytes_max: int, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(comparison.report.page, "BYTES_MAX", bytes_max)
    lanes = tuple(map(busy, range(4)))
    members = {f"m{n}": f"m{n}" for n in range(3)}
    view = replace(empty_view(), partitions=lanes, members=tuple(members), places=members)
    return page(result, [replace(view, scenario=each.scenario, design=each.design) for each in result.runs])


def test_page_of_too_many_runs_has_lanes_of_two_designs_and_strips_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    result = compose([run(name, design) for name in SCENARIOS for design in DESIGN_NAMES])
    whole = drawn(result, 8_000_000, monkeypatch)
    assert len(lanes_of(whole)) == len(result.runs)
    assert "no room for the lanes" not in whole
    fewer = drawn(result, len(whole.encode()) // 2, monkeypatch)
    assert len(fewer.encode()) <= len(whole.encode()) // 2
    assert len(lanes_of(fewer)) == 2 * len(SCENARIOS)
    assert fewer.count("no room for the lanes of") == len(SCENARIOS)
    strips = re.findall(r'aria-label="Share of the partitions delivered from over time, in (.*?)\.', fewer)
    assert strips == [", ".join(DESIGN_NAMES)] * len(SCENARIOS)
    links = set(re.findall(r'href="#([^"]*)"', fewer))
    assert links <= set(re.findall(r' id="([^"]*)"', fewer))


def lanes_of(text: str) -> list[str]:
    return re.findall(r'<[a-z]+ class="run[^>]* data-path=', text)
