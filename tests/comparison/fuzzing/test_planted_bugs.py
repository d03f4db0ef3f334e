"""Exams of `fuzz --simulated`: bugs that are planted must be found, and shrunk to few steps; without them nothing is.

Nobody selects schedules for the long exams: they come as the seed draws them. Short ones leave the search out: what is
left of what it found breaks the same promise with the bug, and none without it.
"""

from __future__ import annotations

import asyncio
import resource
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import ANY

import pytest

from comparison.fuzzing import simulated_runs
from comparison.fuzzing.attempts import Attempt, Attempts
from comparison.fuzzing.fuzzer import Counterexample, Fuzzer, Listeners, Wanted
from comparison.fuzzing.judging import Judgement
from comparison.fuzzing.schedule import Schedule
from comparison.fuzzing.simulated_runs import SimulatedRuns
from comparison.fuzzing.summary import Summary
from comparison.scenarios.plan.links import DEFAULT
from comparison.scenarios.plan.vocabulary import CutEnsemble, Heal, Hold, Inject, KillAtPoint, Settle
from comparison.screen.progress import RunProgress
from kernel.designs import COOPERATIVE, ZOOKEEPER
from tests.support.planted.bugs import BUGS
from tests.support.planted.schedules import SEED, SHRUNK, shrunk, worlds_of
from tests.support.runs.simulations import load_processes

STEPS_MAX = 5
#: Of an exam from the seed's first schedule on, on a quiet machine.
CPU_S_MAX = 120
SEARCHED_MAX = 60
#: The one that `make test` searches for.
SEARCHED_IN_CI = "unreleased ignored"


class Found(Exception):
    """Ends an exam."""


@dataclass
class Exam:
    """The schedules of one design from a number on, until a bug is found that breaks one of these promises."""

    folder: Path
    design: str
    breaks: frozenset[str] = frozenset()
    attempts: list[Attempt] = field(default_factory=list)
    found: Counterexample | None = None

    def sit(self, first: int, schedules: int) -> None:
        asyncio.run(self._sit(first, schedules))

    async def _sit(self, first: int, schedules: int) -> None:
        interrupted = asyncio.Event()
        wanted = Wanted(
            designs=(self.design,), seed=SEED, first=first, schedules=schedules, seconds=3600, shrink_seconds=3600,
            simulated=True,
        )  # fmt: skip
        listeners = Listeners(self.attempts.append, lambda _: None, self._find)
        runs = SimulatedRuns({}, interrupted)
        try:
            with RunProgress(0, quiet=True) as progress:
                fuzzer = Fuzzer(self.folder, {}, wanted, Summary(), progress, listeners)
                await fuzzer.run(Attempts(self.folder, runs, interrupted))
        except Found:
            pass
        finally:
            await runs.stop()

    def _find(self, found: Counterexample) -> None:
        if found.shortest.judgement.broken & self.breaks:
            self.found = found
            raise Found

    def assert_passed(self) -> None:
        told = [f"{each.schedule.title}: {each.judgement.in_words()}" for each in self.attempts]
        assert self.found is not None, told
        assert len(self.found.shortest.schedule.steps) <= STEPS_MAX, self.found.shortest.schedule.in_words()
        assert self.found.finished


def cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def judged(folder: Path, *schedules: Schedule) -> list[Judgement]:
    """The judgement of a run of each of these. So few do not repay one that warms up."""
    load_processes()

    async def made() -> list[Judgement]:
        interrupted = asyncio.Event()
        runs = SimulatedRuns({}, interrupted)
        attempts = Attempts(folder, runs, interrupted)
        try:
            return [(await attempts.make(each, str(number))).judgement for number, each in enumerate(schedules)]
        finally:
            await runs.stop()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulated_runs, "_warmed", lambda *_: None)
        return asyncio.run(made())


@pytest.mark.parametrize("name", BUGS)
def test_few_steps_show_a_planted_bug(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = BUGS[name]
    bug.plant(monkeypatch.setattr)
    assert len(SHRUNK[name].steps) <= STEPS_MAX
    found = (judged(tmp_path / str(each.run_seed), each)[0] for each in worlds_of(name))
    assert any(judgement.broken & bug.breaks for judgement in found)


#: The member that is cut off, m1 in this world, has a new process by then.
OF_A_NEW_PROCESS = shrunk(1, ZOOKEEPER, 1, DEFAULT, Inject("slow-start", "m1"), Settle(), CutEnsemble(over_ms=2000))
#: A member whose requests were late joins anew just before another one is to be killed in a rebalance.
OF_A_LATE_MEMBER = shrunk(
    42, COOPERATIVE, 1777612422, "loopback,priorities=1",
    Inject("growing-delay", "m1->authority", {"within_ms": 500, "ways": "out"}), Hold(3000),
    Heal("growing-delay", "m1->authority"), KillAtPoint("preparing", "member"),
)  # fmt: skip
#: At the heal, two members have new sessions and have not rebalanced in them, but believe in what they had.
OF_NEW_SESSIONS = shrunk(
    151, ZOOKEEPER, 915497082, "zone", Inject("cut", "leader->ensemble"), Hold(3000), fixed=True
)  # fmt: skip


def test_steps_that_once_accused_a_design_show_nothing(tmp_path: Path) -> None:
    assert "cut ensemble" in OF_A_NEW_PROCESS.in_words()
    schedules = (OF_A_NEW_PROCESS, OF_A_LATE_MEMBER, OF_NEW_SESSIONS)
    assert judged(tmp_path, *schedules) == [Judgement(counts=ANY)] * 3


def test_the_same_steps_show_nothing_without_the_bug(tmp_path: Path) -> None:
    judgements = judged(tmp_path, *SHRUNK.values())
    assert dict(zip(SHRUNK, judgements, strict=True)) == dict.fromkeys(SHRUNK, Judgement(counts=ANY))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == SEARCHED_IN_CI else pytest.mark.long)  # ten to forty CPU s each
        for name in BUGS
    ],
)
@pytest.mark.timeout(1_500)
def test_a_planted_bug_is_found_from_the_first_schedule_on(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug = BUGS[name]
    bug.plant(monkeypatch.setattr)
    exam = Exam(tmp_path, bug.design, bug.breaks)
    before = cpu_s()
    exam.sit(1, SEARCHED_MAX)
    exam.assert_passed()
    assert cpu_s() - before < CPU_S_MAX
