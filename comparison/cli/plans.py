"""What `--dry-run` shows of runs to be made: a summary for people, or a document for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from comparison.cli.documents import print_found
from comparison.screen.printable import printable
from comparison.screen.progress import about
from kernel.trace.words import TimeSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that would be made."""

    title: str
    scenario: str
    design: str
    seconds: int  #: estimated, without its analysis
    parameters: Mapping[str, Any]


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A combination that would not be run."""

    title: str
    reason: str


class RunsPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a command would run."""

    summary: str  #: how many runs, of what
    seconds: int  #: estimated, with the analysis
    seed: int  #: the first one
    folder: str  #: in which the results would be
    zookeeper: str
    clock: TimeSource = TimeSource.MONOTONIC
    runs: Sequence[PlannedRun]
    left_out: Sequence[LeftOut]


def show_plan(plan: RunsPlan, form: str) -> None:
    """Print the plan to standard output."""
    print_found(form, plan, map(printable, _lines(plan)))


def _lines(plan: RunsPlan) -> Iterator[str]:
    yield f"would make {plan.summary}, in {about(plan.seconds)}"
    yield f"results: {plan.folder}"
    yield f"ZooKeeper: {plan.zookeeper}"
    if plan.clock is not TimeSource.MONOTONIC:
        yield f"clock: {plan.clock}"
    yield "runs:"
    yield from (f"  {run.title}: {about(run.seconds)}" for run in plan.runs)
    if plan.left_out:
        yield "left out:"
        yield from (f"  {each.title}: {each.reason}" for each in plan.left_out)
