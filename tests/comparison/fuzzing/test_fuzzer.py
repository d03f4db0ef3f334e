"""What the fuzzer does with runs that are staged: how often it makes them, what it keeps, what it tells."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from comparison.fuzzing.attempts import Attempt
from comparison.fuzzing.fuzzer import SCHEDULES, Counterexample, Fuzzer, Listeners, Wanted
from comparison.fuzzing.judging import Judgement, Outcome, Violation
from comparison.fuzzing.schedule import Schedule
from comparison.fuzzing.summary import Summary
from comparison.scenarios.plan.vocabulary import FreezeOwner, Inject
from comparison.screen.progress import RunProgress
from kernel.designs import EAGER, SERVER

STALE = Judgement((Violation("no stale write", "1 commit"),), "", {"commits": 3})
HELD = Judgement((), "", {"commits": 3})


def freezes(schedule: Schedule) -> bool:
    return any(isinstance(step, FreezeOwner) for step in schedule.steps)


class Staged:
    """Stands for `Attempts`: a schedule's runs show what `shows` says, by their number."""

    def __init__(self, folder: Path, shows: Callable[[Schedule, int], Judgement]) -> None:
        self._folder = folder
        self._shows = shows
        self.made: list[Schedule] = []

    async def make(self, schedule: Schedule, *names: str) -> Attempt:
        number = sum(each.steps == schedule.steps for each in self.made)
        self.made.append(schedule)
        folder = self._folder.joinpath(*names)
        folder.mkdir(parents=True)
        return Attempt(schedule=schedule, judgement=self._shows(schedule, number), folder=folder, seconds=1.0)


class Fuzzed:
    """A finished command."""

    def __init__(self, folder: Path, shows: Callable[[Schedule, int], Judgement], **wanted: object) -> None:
        self.staged = Staged(folder, shows)
        self.summary = Summary()
        self.attempts: list[Attempt] = []
        self.found: list[Counterexample] = []
        usual: dict[str, object] = {
            "designs": (EAGER,), "seed": 1, "schedules": 12, "seconds": 60.0, "shrink_seconds": 60.0
        }  # fmt: skip
        listeners = Listeners(self.attempts.append, lambda _: None, self.found.append)
        with RunProgress(0, quiet=True) as progress:
            fuzzer = Fuzzer(folder, {}, Wanted(**{**usual, **wanted}), self.summary, progress, listeners)  # type: ignore[arg-type]  # given by name
            asyncio.run(fuzzer.run(self.staged))  # type: ignore[arg-type]  # it stands for it


def test_all_designs_in_turn_each_number_before_the_next(tmp_path: Path) -> None:
    fuzzed = Fuzzed(tmp_path, lambda _, __: HELD, designs=(EAGER, SERVER), schedules=3, first=5)
    assert [each.title for each in fuzzed.staged.made] == ["5 eager", "5 server", "6 eager"]
    assert fuzzed.summary.outcome is Outcome.HELD
    assert fuzzed.summary.last == 6
    assert not list(tmp_path.glob("*/eager"))  # what kept every promise is not kept


def test_nothing_is_drawn_when_the_time_is_up(tmp_path: Path) -> None:
    fuzzed = Fuzzed(tmp_path, lambda _, __: HELD, seconds=0.0)
    assert not fuzzed.staged.made
    assert fuzzed.summary.outcome is Outcome.UNKNOWN


def test_every_schedule_is_a_line_that_says_how_it_ended(tmp_path: Path) -> None:
    fuzzed = Fuzzed(tmp_path, lambda _, __: HELD, schedules=2, keep=True)
    lines = [json.loads(line) for line in (tmp_path / SCHEDULES).read_text().splitlines()]
    assert [(line["number"], line["outcome"], line["counts"]) for line in lines] == [
        (1, "held", {"commits": 3}),
        (2, "held", {"commits": 3}),
    ]
    assert lines[0]["steps"] == fuzzed.staged.made[0].in_words()
    assert len(list(tmp_path.glob("*/eager"))) == 2
    assert fuzzed.summary.counts["commits"] == 6


def test_what_always_fails_is_shrunk_and_confirmed(tmp_path: Path) -> None:
    fuzzed = Fuzzed(tmp_path, lambda schedule, _: STALE if freezes(schedule) else HELD)
    assert fuzzed.found
    for each in fuzzed.found:
        assert each.shortest.schedule.in_words() == "form · freeze owner"
        assert (each.rate, each.finished) == ((3, 3), True)
        assert each.shortest.folder.exists()
        assert each.drawn.folder.exists()
    assert fuzzed.summary.outcome is Outcome.VIOLATED
    assert fuzzed.summary.number(Outcome.VIOLATED) == len(fuzzed.found) == len(fuzzed.summary.counterexamples)


def test_what_fails_in_every_other_run_is_shrunk_as_well_and_its_rate_is_told(tmp_path: Path) -> None:
    shows = lambda schedule, number: STALE if freezes(schedule) and number % 2 == 0 else HELD  # noqa: E731  # on one line
    fuzzed = Fuzzed(tmp_path, shows)
    assert {each.shortest.schedule.in_words() for each in fuzzed.found} == {"form · freeze owner"}
    assert {each.rate for each in fuzzed.found} <= {(1, 3), (2, 3)}


def test_a_simulated_candidate_runs_once(tmp_path: Path) -> None:
    fuzzed = Fuzzed(tmp_path, lambda schedule, _: STALE if freezes(schedule) else HELD, simulated=True)
    assert {each.shortest.schedule.in_words() for each in fuzzed.found} == {"form · freeze owner"}
    assert {each.rate for each in fuzzed.found} == {(0, 0)}
    made = Counter((each.number, each.in_words()) for each in fuzzed.staged.made)
    assert set(made.values()) == {1}


def test_what_few_steps_show_in_other_worlds_only_is_shrunk_in_them(tmp_path: Path) -> None:
    def shows(schedule: Schedule, _: int) -> Judgement:
        meets = len(schedule.steps) > 5 or schedule.run_seed % 3 == 0
        return STALE if freezes(schedule) and meets else HELD

    fuzzed = Fuzzed(tmp_path, shows, simulated=True, schedules=30)
    other = [each.shortest.schedule for each in fuzzed.found if each.drawn.schedule.run_seed % 3]
    assert other
    assert {(each.in_words(), each.run_seed % 3) for each in other} == {("form · freeze owner", 0)}


def test_another_promise_that_breaks_on_the_way_does_not_lead_the_shrinking_astray(tmp_path: Path) -> None:
    other = Judgement((Violation("settles", "it did not"),))
    fuzzed = Fuzzed(tmp_path, lambda schedule, _: STALE if freezes(schedule) else other)
    stale = [each for each in fuzzed.found if "no stale write" in each.drawn.judgement.broken]
    assert stale
    assert all(freezes(each.shortest.schedule) for each in stale)


def test_without_time_to_shrink_the_drawn_schedule_is_the_counterexample(tmp_path: Path) -> None:
    fuzzed = Fuzzed(tmp_path, lambda schedule, _: STALE if freezes(schedule) else HELD, shrink_seconds=0.0)
    for each in fuzzed.found:
        assert each.shortest.schedule.steps == each.drawn.schedule.steps
        assert not each.finished or len(each.drawn.schedule.steps) == 2


@pytest.mark.parametrize(
    ("outcome", "judgement"), [(Outcome.UNKNOWN, Judgement(unknown="it failed")), (Outcome.HELD, HELD)]
)
def test_only_the_folder_of_a_run_that_showed_something_is_kept(
    tmp_path: Path, outcome: Outcome, judgement: Judgement
) -> None:
    fuzzed = Fuzzed(tmp_path, lambda _, __: judgement, schedules=1)
    assert fuzzed.summary.outcome is outcome
    assert fuzzed.attempts[0].folder.exists() == (outcome is Outcome.UNKNOWN)


def test_summary_in_words(tmp_path: Path) -> None:
    fuzzed = Fuzzed(tmp_path, lambda _, __: HELD, schedules=12)
    lines = list(fuzzed.summary.lines())
    assert lines[0] == "12 schedules in 12 s, 60.0 a minute: 12 kept every promise, 0 broke one, 0 unknown"
    assert lines[1] == "  eager: 12 kept every promise, 0 broke one, 0 unknown"
    injected = sum(isinstance(step, Inject) for each in fuzzed.staged.made for step in each.steps)
    assert lines[3].startswith(f"faults: {injected} injected: ")
    assert lines[4] == "to judge by: commits 36"
