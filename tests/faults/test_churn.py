"""A day of members and brokers that come and go, in twenty minutes: nothing may grow with the number of changes.

Verify that the memory, the descriptors and the threads of the processes that stay (a broker, a member) and the number
of files in the brokers' data folder are at the end what they were after the first quarter, and that no record and no
offset is lost meanwhile.

Setup: an embedded ZooKeeper, two brokers with a retention of 30 s, four members as processes, a producer.

Steps: again and again, two members are killed or leave and come back, one is restarted cleanly, and every few rounds
the second broker is killed, or restarted cleanly. The first member and the first broker are never touched.

Expectation per failure type: the promises of the run, except that each single change settles, since the next one
does not wait for it (each round ends when the group has settled); growth of less than 5 % (and 8 MB) from the second
quarter's median to the last one's.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import psutil
import pytest

from comparison.pipeline.analysis import analyze
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.request import RunRequest
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.step import Step
from comparison.scenarios.plan.vocabulary import Form, Heal, Inject, Settle, Steady
from kernel.designs import EAGER, ZOOKEEPER
from kernel.trace.reader import read_trace
from tests.faults.one_run import performed, request_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.faults, pytest.mark.long, pytest.mark.timeout(3600)]

SEED = 20120517
#: A round changes the group ten times and takes ten seconds, so this is 1,200 changes in twenty minutes: one in every
#: 72 s of a day.
ROUNDS = 120
EVERY_S = 2.0
#: What stays, and is not the test's own: the runner remembers every process. ZooKeeper's memory is the JVM's to decide.
STAYING = ("broker-1", "m1")
GROWTH, GROWTH_BYTES = 1.05, 8 << 20
SETTINGS = {
    "log.retention.ms": "30000",
    "log.retention.check.interval.ms": "5000",
    "session.timeout.ms": "6000",
    "zookeeper.session.timeout.ms": "6000",
    "rebalance.max.retries": "10",
}


def steps(rounds: int, seed: int) -> Iterator[Step]:
    yield Form()
    yield Steady()
    drawn = random.Random(seed)
    for number in range(rounds):
        for place in drawn.sample(("m2", "m3", "m4"), 2):
            by = drawn.choice(("kill", "leave"))
            yield Inject("flap", place, {"times": 2, "every_ms": 200, "by": by})
        yield Inject("restart", drawn.choice(("m2", "m3", "m4")), {"away_ms": 100})
        if number % 8 == 3:
            yield Inject("restart", "broker-2", {"away_ms": 200})
        if number % 8 == 7:
            yield Inject("kill", "broker-2")
            yield Heal()
        yield Settle()


@dataclass(frozen=True, slots=True)
class Sample:
    """What one process has, or (`data`) a folder's number of files."""

    of: str
    resident_bytes: int
    descriptors: int
    threads: int
    files: int = 0


def pids(request: RunRequest) -> dict[str, int]:
    """{name: pid} of what stays, once all have started."""
    trace = request.run_dir / "trace" / "runner.jsonl"
    if not trace.exists():
        return {}
    started = [event for event in read_trace(trace).events if event["kind"] == "process_started"]
    return {str(event["target"]): int(event["child_pid"]) for event in started if event["target"] in STAYING}


async def sample(request: RunRequest, samples: list[Sample]) -> None:
    """Sample what stays, until cancelled."""
    staying: dict[str, int] = {}
    while True:
        await asyncio.sleep(EVERY_S)
        staying = staying if len(staying) == len(STAYING) else pids(request)
        for name, pid in staying.items():
            process = psutil.Process(pid)
            with process.oneshot():
                samples.append(Sample(name, process.memory_info().rss, process.num_fds(), process.num_threads()))
        files = sum(1 for path in (request.run_dir / "data").rglob("*") if path.is_file())
        samples.append(Sample("data", 0, 0, 0, files))


def medians(samples: list[Sample]) -> dict[str, tuple[float, float]]:
    """{process and figure: (median of the second quarter, of the last)}."""
    found = {}
    for name in (*STAYING, "data"):
        own = [each for each in samples if each.of == name]
        quarter = len(own) // 4
        assert quarter >= 5, f"{name} was sampled only {len(own)} times"
        for figure in ("files",) if name == "data" else ("resident_bytes", "descriptors", "threads"):
            before = median(getattr(each, figure) for each in own[quarter : 2 * quarter])
            found[f"{name} {figure}"] = (before, median(getattr(each, figure) for each in own[-quarter:]))
    return found


def grown(found: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    slack = {"resident_bytes": GROWTH_BYTES, "descriptors": 6, "threads": 2, "files": 6}
    return {
        name: (before, after)
        for name, (before, after) in found.items()
        if after > max(before * GROWTH, before + slack[name.split()[1]])
    }


def test_growth_is_found_and_noise_is_not() -> None:
    steady = [Sample(name, 100 << 20, 50, 4, 20) for _ in range(40) for name in (*STAYING, "data")]
    assert grown(medians(steady)) == {}
    growing = [Sample(each.of, each.resident_bytes + (i << 19), 50, 4, 20) for i, each in enumerate(steady)]
    assert {name.split()[1] for name in grown(medians(growing))} == {"resident_bytes"}


@pytest.mark.parametrize("design", [EAGER, ZOOKEEPER])
async def test_nothing_grows_while_members_and_brokers_come_and_go(
    design: str,
    given_seed: int | None,
    spark: SparkSession,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    """The figures are in the JUnit XML, which --junitxml asks for."""
    seed = SEED if given_seed is None else given_seed
    rounds = ROUNDS
    scenario = Scenario(
        name="churn",
        symptom="Consumers and brokers come and go all day: does anything grow?",
        look_for=("memory, descriptors, files",),
        steps=tuple(steps(rounds, seed)),
        defaults=Parameters(rate=100, partitions=8, time_limit_s=3500),
        brokers_min=2,
    )
    settings = {name: value for name, value in SETTINGS.items() if design == ZOOKEEPER or not name.startswith("zook")}
    request = request_of(tmp_path, scenario, design, {"seed": seed, "settings": settings})
    samples: list[Sample] = []
    sampling = asyncio.create_task(sample(request, samples))
    try:
        outcome = await performed(request)
    finally:
        sampling.cancel()
        with contextlib.suppress(asyncio.CancelledError, psutil.NoSuchProcess):
            await sampling
    assert (outcome.outcome, outcome.error) == ("complete", ""), f"seed {seed}: {outcome.error}"
    record_property("rounds", f"{rounds} in {outcome.seconds:.0f} s")
    found = medians(samples)
    for name, (second_quarter, last_quarter) in found.items():
        record_property(name, f"{second_quarter:.0f} -> {last_quarter:.0f}")
    assert not grown(found), f"seed {seed}"
    (run,) = analyze(spark, [request.run_dir], output=tmp_path / "result").runs
    verdicts = {verdict.check: verdict.outcome + ": " + verdict.reason for verdict in run.verdicts}
    verdicts.pop("settles")
    assert {"no record lost", "final offsets"} <= verdicts.keys()
    assert not {check: text for check, text in verdicts.items() if not text.startswith("as expected")}, f"seed {seed}"
