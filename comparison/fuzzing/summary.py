"""What a command's schedules came to: how many, of which steps, with which faults, and what they showed. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from comparison.fuzzing.judging import Outcome
from comparison.fuzzing.schedule import kind_of_step
from comparison.scenarios.plan.vocabulary import Inject
from comparison.screen.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comparison.fuzzing.attempts import Attempt
    from comparison.fuzzing.schedule import Schedule

_HELD, _VIOLATED, _UNKNOWN = Outcome.HELD, Outcome.VIOLATED, Outcome.UNKNOWN


@dataclass(slots=True)
class Summary:
    """Grows with every schedule."""

    seconds: float = 0.0
    last: int = 0  #: number of the last schedule
    last_design: str = ""
    by_design: dict[str, Counter[Outcome]] = field(default_factory=dict)
    steps: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    counterexamples: list[Schedule] = field(default_factory=list)

    def add(self, attempt: Attempt) -> None:
        schedule = attempt.schedule
        self.seconds += attempt.seconds
        self.last, self.last_design = schedule.number, schedule.design
        self.by_design.setdefault(schedule.design, Counter())[attempt.judgement.outcome] += 1
        for step in schedule.steps:
            (self.faults if isinstance(step, Inject) else self.steps)[kind_of_step(step)] += 1
        self.counts.update({name: int(value) for name, value in attempt.judgement.counts.items()})

    def violated(self, shortest: Schedule) -> None:
        self.counterexamples.append(shortest)

    def number(self, outcome: Outcome) -> int:
        return sum(each[outcome] for each in self.by_design.values())

    @property
    def made(self) -> int:
        """How many schedules were run."""
        return sum(map(self.number, Outcome))

    @property
    def outcome(self) -> Outcome:
        """The worst of all; unknown if there was none."""
        if self.number(_VIOLATED):
            return _VIOLATED
        return _UNKNOWN if self.number(_UNKNOWN) or not self.by_design else _HELD

    def as_json(self) -> dict[str, object]:
        return {
            "outcome": self.outcome,
            "seconds": round(self.seconds, 1),
            "designs": {
                design: {str(outcome): each[outcome] for outcome in Outcome} for design, each in self.by_design.items()
            },
            "steps": dict(self.steps),
            "faults": dict(self.faults),
            "counts": dict(self.counts),
        }

    def lines(self) -> Iterator[str]:
        made = self.made
        a_minute = f", {60 * made / self.seconds:.1f} a minute" if self.seconds else ""
        yield f"{counted(made, 'schedule')} in {self.seconds:.0f} s{a_minute}: {_outcomes(self.number)}"
        for design, each in self.by_design.items():
            yield f"  {design}: {_outcomes(each.__getitem__)}"
        yield f"steps: {_list(self.steps)}"
        yield f"faults: {sum(self.faults.values())} injected: {_list(self.faults)}"
        yield f"to judge by: {_list(self.counts)}"


def _outcomes(number: object) -> str:
    assert callable(number)
    held, violated, unknown = (number(each) for each in (_HELD, _VIOLATED, _UNKNOWN))
    return f"{held} kept every promise, {violated} broke one, {unknown} unknown"


def _list(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common()) or "none"
