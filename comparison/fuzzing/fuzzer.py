"""`fuzz`: draws schedules and runs them until the time is up, and shrinks those that break a promise.

Real runs race, so what fails once may hold the next time. A candidate of the shrinking is accepted if one of K runs
breaks a promise that the drawn schedule broke; refusing a candidate takes all K. What is left is run K more times,
and its rate is reported with it. A simulated run ends the same way each time, so each candidate runs once; if more than
a few steps are left, what fails takes a moment that others miss, and they run in a few other worlds as well.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from comparison.fuzzing.attempts import Attempts
from comparison.fuzzing.drawing import draw
from comparison.fuzzing.judging import Outcome
from comparison.fuzzing.live_runs import LiveRuns
from comparison.fuzzing.schedule import kind_of_step
from comparison.fuzzing.shrinking import Shrunk, shrinking
from comparison.fuzzing.situation import sequence
from comparison.interruptible import interrupted_by_signals
from comparison.scenarios.plan.parameters import SEED_MAX
from comparison.scenarios.processes.fork_server import ForkServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from comparison.fuzzing.attempts import Attempt, Runs
    from comparison.fuzzing.schedule import Schedule, Steps
    from comparison.fuzzing.summary import Summary
    from comparison.screen.progress import RunProgress

#: One line for each schedule that was drawn.
SCHEDULES = "schedules.jsonl"
#: A simulated schedule with more steps is shrunk in other worlds as well, whose seeds are so much higher.
_FEW, _OTHER_SEEDS = 5, (1, 2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to fuzz, and for how long."""

    designs: tuple[str, ...]
    seed: int
    first: int = 1  #: number of the first schedule
    first_design: str = ""  #: the design that begins with it, if not the first one
    schedules: int | None = None  #: at most so many
    seconds: float
    shrink_seconds: float
    tries: int = 3  #: real runs of a candidate
    simulated: bool = False
    keep: bool = False  #: also the folders of runs that kept every promise

    def designs_of(self, number: int) -> tuple[str, ...]:
        """The designs whose schedule of this number is wanted."""
        from_ = self.designs.index(self.first_design) if self.first_design and number == self.first else 0
        return self.designs[from_:]


class Rate(NamedTuple):
    """How often a schedule failed when it was run again; a simulated one is not."""

    failed: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A schedule that breaks a promise, as short as it became."""

    drawn: Attempt
    shortest: Attempt
    asked: int  #: candidates that were run
    rate: Rate
    finished: bool  #: False: the time was up first


@dataclass(slots=True)
class Listeners:
    """What is called for which event."""

    attempt: Callable[[Attempt], None]
    shrinking: Callable[[str], None]
    counterexample: Callable[[Counterexample], None]


@dataclass(slots=True)
class Fuzzer:
    """One command's schedules; create it with a folder, and let it `fuzz`."""

    bundle: Path
    about: dict[str, object]
    wanted: Wanted
    summary: Summary
    progress: RunProgress
    listeners: Listeners
    _interrupted: asyncio.Event = field(default_factory=asyncio.Event)

    async def fuzz(self) -> bool:
        """Run schedules until the time is up; False after an interrupt. Raises `UserError` if none can start."""
        with interrupted_by_signals(self.progress) as self._interrupted:
            runs = await self._runs()
            try:
                await self.run(Attempts(self.bundle, runs, self._interrupted))
            finally:
                await runs.stop()
            return not self._interrupted.is_set()

    async def _runs(self) -> Runs:
        if self.wanted.simulated:
            from comparison.fuzzing.simulated_runs import SimulatedRuns  # only here needed

            return SimulatedRuns(self.about, self._interrupted)
        fork_server = await ForkServer.open()
        return LiveRuns(self.about, fork_server, self._interrupted, self.progress.stage)

    async def run(self, attempts: Attempts) -> None:
        """Fuzz on `attempts`, which make the runs."""
        end = time.monotonic() + self.wanted.seconds
        for schedule in schedules_of(self.wanted):
            if time.monotonic() >= end:
                return
            self.progress.started(schedule.title)
            attempt = await attempts.make(schedule, f"{schedule.number:05}", schedule.design)
            if attempt.interrupted:
                return
            self._note(attempt)
            if attempt.judgement.outcome is Outcome.VIOLATED:
                shrunk = await self._shrunk(attempts, attempt)
                self.summary.violated(shrunk.shortest.schedule)
                self.listeners.counterexample(shrunk)
            elif attempt.judgement.outcome is Outcome.HELD and not self.wanted.keep:
                attempt.remove()
            if self._interrupted.is_set():
                return

    def _note(self, attempt: Attempt) -> None:
        self.summary.add(attempt)
        self.listeners.attempt(attempt)
        with (self.bundle / SCHEDULES).open("ab") as file:
            file.write(msgspec.json.encode(as_json(attempt)) + b"\n")

    async def _shrunk(self, attempts: Attempts, drawn: Attempt) -> Counterexample:
        """The shortest schedule that breaks one of the same promises."""
        end = time.monotonic() + self.wanted.shrink_seconds
        simulated = self.wanted.simulated
        found, again = Shrunk(drawn.schedule.steps), _Again(attempts, drawn)
        seeds = (0,) if simulated else (0,) * self.wanted.tries
        finished = await self._shrink(found, again, seeds, end)
        if finished and simulated and len(found.steps) > _FEW:
            # It takes a moment that other steps miss: in other worlds they may meet it.
            finished = await self._shrink(found, again, _OTHER_SEEDS, end)
        rate = Rate(0, 0)
        if not simulated and not self._interrupted.is_set():
            rate = await again.rate(seeds)
        return Counterexample(drawn=drawn, shortest=again.best, asked=found.asked, rate=rate, finished=finished)

    async def _shrink(self, found: Shrunk, again: _Again, seeds: Sequence[int], end: float) -> bool:
        """Shrink as far as possible; False if the time was up first."""
        schedule = again.best.schedule
        asking = shrinking(found, partial(sequence, schedule.design))
        try:
            candidate = next(asking)
            while time.monotonic() < end and not self._interrupted.is_set():
                fails = await again.fails(candidate, seeds, end)
                state = f"{len(candidate)} steps {'fail too' if fails else 'do not fail'}"
                self.listeners.shrinking(f"{state}: {schedule.with_steps(candidate).in_words()}")
                candidate = asking.send(fails)
        except StopIteration:
            return True
        return False


def schedules_of(wanted: Wanted) -> Iterator[Schedule]:
    """One of each design in turn, then their next ones."""
    all_of_them = (
        draw(wanted.seed, number, design, simulated=wanted.simulated)
        for number in itertools.count(wanted.first)
        for design in wanted.designs_of(number)
    )
    return itertools.islice(all_of_them, wanted.schedules)


def as_json(attempt: Attempt) -> dict[str, object]:
    """What was drawn, and what its run showed."""
    schedule, judgement = attempt.schedule, attempt.judgement
    return {
        "seed": schedule.seed,
        "number": schedule.number,
        "design": schedule.design,
        "outcome": judgement.outcome,
        "why": judgement.in_words(),
        "seconds": round(attempt.seconds, 1),
        **({"links": schedule.links, "fixed": schedule.fixed} if schedule.simulated else {}),
        "steps": schedule.in_words(),
        "kinds": list(map(kind_of_step, schedule.steps)),
        "counts": dict(judgement.counts),
    }


class _Again:
    """Runs candidates of one shrinking: of each one, runs whose seeds differ from the best's by `seeds`."""

    def __init__(self, attempts: Attempts, drawn: Attempt) -> None:
        self.best = drawn  #: the last one that broke a promise
        self._attempts = attempts
        self._drawn = drawn
        self._made = 0

    async def fails(self, steps: Steps, seeds: Sequence[int], end: float) -> bool:
        """Whether a run of a candidate breaks a promise that was broken before; none is made after `end`."""
        for more in seeds:
            attempt = await self._run(steps, more)
            if self._fails(attempt):
                if self.best is not self._drawn:
                    self.best.remove()
                self.best = attempt
                return True
            attempt.remove()
            if attempt.interrupted or time.monotonic() >= end:
                return False
        return False

    async def rate(self, seeds: Sequence[int]) -> Rate:
        failed = runs = 0
        for more in seeds:
            attempt = await self._run(self.best.schedule.steps, more)
            attempt.remove()
            if attempt.interrupted:
                break
            runs += 1
            failed += self._fails(attempt)
        return Rate(failed, runs)

    def _fails(self, attempt: Attempt) -> bool:
        return bool(attempt.judgement.broken & self._drawn.judgement.broken)

    async def _run(self, steps: Steps, more: int) -> Attempt:
        self._made += 1
        schedule = self.best.schedule
        names = (f"{schedule.number:05}", f"{schedule.design}-shrunk-{self._made}")
        candidate = replace(schedule, steps=steps, run_seed=(schedule.run_seed + more) % (SEED_MAX + 1))
        return await self._attempts.make(candidate, *names)
