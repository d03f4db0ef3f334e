"""Exams of `fuzz --simulated`: bugs that are planted must be found, and shrunk to few steps; without them nothing is.

Nobody selects schedules for the long exams: they come as the seed draws them. The short ones begin shortly before the
first schedule that finds the bug, and end with it; the same schedules then run without the bug.
"""

from __future__ import annotations

import asyncio
import resource
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from comparison.fuzzing.attempts import Attempt, Attempts
from comparison.fuzzing.fuzzer import Counterexample, Fuzzer, Listeners, Wanted
from comparison.fuzzing.judging import Outcome
from comparison.fuzzing.simulated_runs import SimulatedRuns
from comparison.fuzzing.summary import Summary
from comparison.screen.progress import RunProgress
from kernel.designs import CONSUMER, EAGER, ZOOKEEPER
from tests.support.planted.bugs import BUGS

SEED = 1
STEPS_MAX = 5
#: Of an exam from the seed's first schedule on, on a quiet machine.
CPU_S_MAX = 120
SEARCHED_MAX = 200


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


#: What finds its bug at once, with the number of the schedule of SEED that does.
AT_ONCE = {
    "unfenced commit": 3,
    "unreleased ignored": 1,
    "zombie producer": 4,
    "fence before the write": 51,
}
#: What two minutes may not suffice for from the first schedule on.
LATE = "fence before the write"


@pytest.mark.parametrize(("name", "number"), AT_ONCE.items())
def test_a_planted_bug_is_found_and_shrunk(
    name: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug = BUGS[name]
    bug.plant(monkeypatch.setattr)
    exam = Exam(tmp_path, bug.design, bug.breaks)
    exam.sit(number, 1)
    exam.assert_passed()


@pytest.mark.parametrize(("design", "number"), [(EAGER, 3), (EAGER, 4), (EAGER, 51), (CONSUMER, 1), (ZOOKEEPER, 5)])
def test_the_same_schedules_hold_without_the_bug(design: str, number: int, tmp_path: Path) -> None:
    exam = Exam(tmp_path, design)
    exam.sit(number, 1)
    assert [each.judgement.in_words() for each in exam.attempts] == [""]
    assert exam.attempts[0].judgement.outcome is Outcome.HELD


@pytest.mark.long  # up to two minutes of processor time each
@pytest.mark.timeout(1_500)
@pytest.mark.parametrize("name", [name for name in BUGS if name != LATE])
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
