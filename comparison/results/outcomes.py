"""The words of a verdict: what a check compares a run with, and what it came to."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class VerdictOutcome(StrEnum):
    """A verdict. A check that could not run is unknown, never a pass."""

    EXPECTED = "as expected"
    UNKNOWN = "unknown"
    NOT_EXPECTED = "not as expected"


class Kind(StrEnum):
    """What a check compares a run with."""

    PROMISE = "promise"  #: what the design promises; broken means a fault of ours
    HISTORY = "history"  #: a fault that the historical design has; not seen means it was not rebuilt faithfully
    MODEL = "model"  #: an exact count


def worst(outcomes: Iterable[VerdictOutcome]) -> VerdictOutcome:
    """The worst of several verdicts; unknown if there is none."""
    order = (VerdictOutcome.NOT_EXPECTED, VerdictOutcome.UNKNOWN, VerdictOutcome.EXPECTED)
    return min(outcomes, key=order.index, default=VerdictOutcome.UNKNOWN)
