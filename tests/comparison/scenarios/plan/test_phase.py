"""The phase of a change: anywhere in the interval, the same for all designs, and traced."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from comparison.scenarios.plan.catalogue import CATALOGUE
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.phase import INTERVAL_MS_MAX, interval_ms, share_of
from comparison.scenarios.run.changes import Changes
from tests.support.trace.tracers import ListTracer


def changes_of(design: str, seed: int) -> tuple[Changes, ListTracer]:
    tracer = ListTracer(process="runner")
    parameters = Parameters(seed=seed)
    request = SimpleNamespace(
        parameters=parameters, scenario=CATALOGUE["join"], configuration=configuration(design, parameters)
    )
    testbed: Any = SimpleNamespace(request=request, tracer=tracer)
    members: Any = SimpleNamespace()
    return Changes(testbed, members, lambda _: None), tracer


def drawn(
    monkeypatch: pytest.MonkeyPatch, design: str, seed: int, *, commits: bool = True
) -> tuple[list[float], list[Any]]:
    """The sleeps in seconds, and the traced details, of three phases of one run."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    changes, tracer = changes_of(design, seed)

    async def three() -> None:
        for _ in range(3):
            await changes.wait_for_phase(commits=commits)

    asyncio.run(three())
    return slept, [event["detail"] for event in tracer.events]


def test_phases_are_spread_evenly_over_the_seeds() -> None:
    shares = sorted(share_of(seed, "join", 1) for seed in range(200))
    assert all(abs(share - place / 200) < 0.1 for place, share in enumerate(shares))


def test_phases_of_one_run_differ_from_change_to_change_and_from_seed_to_seed() -> None:
    shares = {
        share_of(seed, scenario, change) for seed in (1, 2) for scenario in ("join", "leave") for change in (1, 2)
    }
    assert len(shares) == 8


def test_phase_is_the_same_in_all_designs_of_one_seed_and_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {design: drawn(monkeypatch, design, 7) for design in ("zookeeper", "eager", "delayed")}
    slept, traced = found["eager"]
    assert all(each == (slept, traced) for each in found.values())
    assert [each["wait_ms"] / 1000 for each in traced] == slept
    assert {each["interval_ms"] for each in traced} == {1000}
    assert drawn(monkeypatch, "eager", 8)[0] != slept


def test_phase_of_heartbeats_is_skipped_in_designs_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(monkeypatch, "zookeeper", 7, commits=False) == ([], [])
    assert len(drawn(monkeypatch, "eager", 7, commits=False)[0]) == 3


def test_phase_is_drawn_from_the_longer_interval_up_to_a_bound() -> None:
    assert interval_ms(1000) == 1000
    assert interval_ms(1000, 3000) == 3000
    assert interval_ms(3000, 60_000) == INTERVAL_MS_MAX
