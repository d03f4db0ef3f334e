"""Shrinks a schedule: delta debugging over its steps, then each step toward its plainest form. Pure.

`shrinking` is a generator: it yields a candidate, is sent whether that one fails too, and returns the shortest one
found. Whoever drives it decides how often a candidate runs, and when to stop: `close()` leaves what was found so far
in `Shrunk`.

The steps go through `sequence`, so a candidate is always possible: without its fault, a heal is left out as well.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from comparison.scenarios.plan.fields import required
from comparison.scenarios.plan.vocabulary import Form, Heal, Hold, Inject, Settle

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from comparison.fuzzing.schedule import Steps
    from comparison.scenarios.plan.step import Step

#: Shorter holds are not tried.
_HOLD_MS_MIN = 100


@dataclass(slots=True)
class Shrunk:
    """What is left, and how many candidates were asked about."""

    steps: Steps
    asked: int = 0


def shrinking(found: Shrunk, possible: Callable[[Steps], Steps]) -> Generator[Steps, bool, None]:
    """Shrink `found`, which fails; `possible` makes any steps a schedule."""
    refused: set[str] = set()

    def fails(candidate: Steps) -> Generator[Steps, bool, bool]:
        """Ask about a candidate once; one that is no shorter and no plainer is not worth a run."""
        made = possible(candidate)
        if repr(made) in refused or _weight(made) >= _weight(found.steps) or not _between(made):
            return False
        found.asked += 1
        if (yield made):
            found.steps = made
            return True
        refused.add(repr(made))
        return False

    yield from _fewer(found, fails)
    yield from _plainer(found, fails)


def _weight(steps: Steps) -> tuple[int, int]:
    """Fewer steps first, then fewer values that are not the default ones, and shorter holds."""
    return len(steps), sum(map(_oddity, steps))


def _oddity(step: Step) -> int:
    if isinstance(step, Hold):
        return step.ms
    if isinstance(step, Inject):
        return len(step.parameters)
    return sum(getattr(step, each.name) != each.default for each in fields(step))


def _fewer(found: Shrunk, fails: Callable[[Steps], Generator[Steps, bool, bool]]) -> Generator[Steps, bool, None]:
    """Zeller's ddmin: leave out halves, then quarters, down to single steps, until none can be left out."""
    pieces = 2
    while steps := tuple(step for step in found.steps if not isinstance(step, Form)):
        pieces = min(pieces, len(steps))  # several steps may go at once: a fault takes its heal with it
        size = -(-len(steps) // pieces)
        for start in range(0, len(steps), size):
            if (yield from fails((*steps[:start], *steps[start + size :]))):
                pieces = max(pieces - 1, 2)
                break
        else:
            if size == 1:
                return
            pieces *= 2


def _between(steps: Steps) -> Steps:
    """What is between the start and the end that `sequence` gives every schedule."""
    end = len(steps) - (steps[-1] in (Heal(), Settle()))
    return tuple(step for step in steps[:end] if not isinstance(step, Form))


def _plainer(found: Shrunk, fails: Callable[[Steps], Generator[Steps, bool, bool]]) -> Generator[Steps, bool, None]:
    place = 0
    while place < len(found.steps):
        for plain in _forms(found.steps[place]):
            if (yield from fails((*found.steps[:place], plain, *found.steps[place + 1 :]))):
                break
        else:
            place += 1


def _forms(step: Step) -> Iterator[Step]:
    """Plainer forms of a step, the plainest first."""
    if isinstance(step, Hold):
        if step.ms // 2 >= _HOLD_MS_MIN:
            yield Hold(step.ms // 2)
    elif isinstance(step, Inject):
        if step.parameters:
            yield replace(step, parameters={})
        if len(step.parameters) > 1:
            for name in step.parameters:
                yield replace(step, parameters={key: value for key, value in step.parameters.items() if key != name})
    elif not isinstance(step, Heal) and not required(type(step)) and _oddity(step):
        yield type(step)()
