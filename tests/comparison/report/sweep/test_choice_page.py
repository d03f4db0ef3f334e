"""The page of a choice, and the section in a sweep's page: what they say, and that anybody can read them."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from comparison.choosing.answer import choice_of
from comparison.choosing.choice import Group, Tolerated
from comparison.choosing.costs import condensed
from comparison.report.sweep.choice import choice_page
from comparison.report.sweep.page import sweep_page
from comparison.results.run import Run
from comparison.results.sweep import SweepData
from comparison.sweep.plan import SweepRun
from tests.support.pages.browser import DESKTOP, PHONE, require_accessible, visit
from tests.support.runs.sweeps import data_of, plan_of, result_of

AXES = ("design=eager,consumer", "members=2,4,8", "partitions=8,16", "scenario=leave,crash,join,rolling-restart")


def costly(run: SweepRun) -> Run:
    each = run.planned.parameters
    standstill = each.partitions * (9.0 if run.cell.design == "eager" else 1.0)
    return result_of({"standstill_s": 2.0, "standstill_partition_s": standstill, "duplicates": 3})


@pytest.fixture(scope="module")
def data() -> SweepData:
    return data_of(plan_of(*AXES, metrics=["standstill_s"], simulated=True), costly)


def test_page_of_a_sweep_says_it_for_a_group_in_the_middle(data: SweepData) -> None:
    page = sweep_page(data)
    assert '<a href="#choice">what to choose</a>' in page
    assert "A week of 4 members with 8 partitions and 200 records/s: 7 deploys, 1 crash. Tolerated: anything." in page
    assert "Choose consumer of eager, consumer, by standstill of all partitions: " in page
    assert "--from runs/s</code>" in page


@pytest.mark.parametrize("axes", [AXES[:2], (AXES[0], *AXES[2:], "members=2", "rate=100,200")], ids=" ".join)
def test_page_of_a_sweep_that_has_no_use_says_nothing(axes: tuple[str, ...]) -> None:
    scenario = () if any("scenario" in each for each in axes) else ("scenario=crash",)
    assert "What to choose" not in sweep_page(data_of(plan_of(*axes, *scenario), costly))


@pytest.mark.parametrize(("viewport", "scheme"), list(product((DESKTOP, PHONE), ("light", "dark"))), ids=str)
def test_axe_finds_nothing_and_nothing_is_beyond_the_screen(
    browser: Any, data: SweepData, tmp_path: Path, viewport: dict[str, int], scheme: str
) -> None:
    group = Group(members=3, partitions=12, rate=100, slowest_record_s=0)
    choice = choice_of(condensed(data), group, {"crashes": 1}, Tolerated(standstill_s=1, repeats=9))
    for name, page in (("choice", choice_page(choice)), ("sweep", sweep_page(data))):
        path = tmp_path / f"{name}.html"
        path.write_text(page, encoding="utf-8")
        with visit(browser, path, viewport=viewport, color_scheme=scheme, java_script_enabled=True) as seen:
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
            require_accessible(seen.page)
