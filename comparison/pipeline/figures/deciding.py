"""What all checks are decided with: outcomes, what a check needs to find, and what is looked up in a run.

A function that decides a check takes a run's figures, and returns an outcome and its reason. `needs` says beside it
what the run has to have at least; below that its verdict is unknown, never as expected.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from comparison.pipeline.figures.model import RESTART
from comparison.results.outcomes import VerdictOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from comparison.results.run import Change, Run

T = TypeVar("T")

#: None: the check does not apply to the run.
CheckResult = tuple[VerdictOutcome, str] | None

EXPECTED, UNKNOWN, NOT_EXPECTED = VerdictOutcome.EXPECTED, VerdictOutcome.UNKNOWN, VerdictOutcome.NOT_EXPECTED

#: What each check needs, by the function that decides it.
EVIDENCE: dict[Callable[[Run], CheckResult], str] = {}
#: What these look at is the group's; where a run has several groups, nobody can say whose it is.
ABOUT_ONE_GROUP: set[Callable[[Run], CheckResult]] = set()
#: ZooKeeper's log has its times in milliseconds of the wall clock, as has a coordinator's timer.
SILENT_EARLY_MS = 10.0


class NotShown(Exception):
    """A run lacks something without which a check cannot be decided; the message says what."""


def needs(
    evidence: str, *, of_one_group: bool = False
) -> Callable[[Callable[[Run], CheckResult]], Callable[[Run], CheckResult]]:
    """Note what a check has to find, and whether it is about one group. It is unknown where something is `NotShown`."""

    def noted(decide: Callable[[Run], CheckResult]) -> Callable[[Run], CheckResult]:
        @wraps(decide)
        def decided(run: Run) -> CheckResult:
            try:
                return decide(run)
            except NotShown as lacking:
                return UNKNOWN, str(lacking)

        EVIDENCE[decided] = evidence
        if of_one_group:
            ABOUT_ONE_GROUP.add(decided)
        return decided

    return noted


def shown(value: T | None, why_not: str) -> T:
    """The value. Raises `NotShown` if the run does not have it."""
    if value is None:
        raise NotShown(why_not)
    return value


def counted_noun(count: float, what: str, several: str = "") -> str:
    """`1 commit`, `2 commits`; `several` is the plural where an s is not enough."""
    return f"{count:g} {what if count == 1 else several or what + 's'}"


def named(change: Change) -> str:
    """A short name of a change: `join to 5`, `restart 2`, or the fault's name."""
    if change.change == RESTART:
        return f"restart {change.round}"
    return f"{change.change} to {change.members}" if change.members is not None else change.change


def first_change(run: Run, *names: str) -> Change | None:
    """The first change or fault with one of these names."""
    return next((change for change in run.changes if change.change in names), None)


def injected_fault(run: Run, fault: str) -> Mapping[str, Any]:
    """The first such fault that the scenario's steps inject, with its parameters; empty if there is none."""
    return next((each for each in run.parameters.get("injected", []) if each.get("fault") == fault), {})


def timer_ms(run: Run, name: str) -> float | None:
    timers = run.parameters.get("timers", {})
    value = timers.get(name) if isinstance(timers, dict) else None
    return float(value) if value else None


def timer_s(run: Run, name: str) -> float | None:
    value = timer_ms(run, name)
    return None if value is None else value / 1000


def partitions_of(run: Run) -> int:
    """How many partitions all its topics have."""
    return int(run.parameters.get("partitions", 0)) * int(run.parameters.get("topics", 1))


def was_silent_for_a_session(run: Run, change: Change) -> bool:
    """Whether each member whose session was ended can have been silent for so long: then it was back too late."""
    session_ms, silent_ms = timer_ms(run, "session_ms"), change.silent_ms
    return session_ms is not None and silent_ms is not None and silent_ms + SILENT_EARLY_MS >= session_ms
