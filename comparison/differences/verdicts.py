"""Which promises were kept on one side only, and which checks came to another verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from comparison.results.outcomes import Kind, VerdictOutcome, worst
from comparison.results.promises import PromiseOutcome, over

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.results.run import Run


class PromiseDifference(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a promise over the repeats, and what shows it."""

    promise: str
    before: PromiseOutcome
    after: PromiseOutcome
    shown_before: str
    shown_after: str

    @property
    def became_worse(self) -> bool:
        return self.after is PromiseOutcome.BROKEN

    @property
    def became_unknown(self) -> bool:
        return self.after is PromiseOutcome.UNKNOWN and self.before is PromiseOutcome.KEPT


class VerdictDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A check's verdicts over the repeats: the worst, and how many are as expected. None: it was not made."""

    check: str
    kind: Kind
    before: VerdictOutcome | None
    after: VerdictOutcome | None
    expected_before: int
    expected_after: int

    @property
    def is_on_both_sides(self) -> bool:
        return self.before is not None and self.after is not None

    @property
    def became_worse(self) -> bool:
        """Not as expected where it was; a fault of history that is seen no more is not worse."""
        return self.after is VerdictOutcome.NOT_EXPECTED and self.kind is not Kind.HISTORY

    @property
    def became_unknown(self) -> bool:
        return self.after is VerdictOutcome.UNKNOWN and self.before is VerdictOutcome.EXPECTED


def promise_differences(before: Sequence[Run], after: Sequence[Run]) -> list[PromiseDifference]:
    """The promises of which something else became, in display order."""
    return [
        PromiseDifference(
            promise=was.promise.name,
            before=was.outcome,
            after=became.outcome,
            shown_before=was.shown,
            shown_after=became.shown,
        )
        for was, became in zip(over(before), over(after), strict=True)
        if was.outcome != became.outcome
    ]


def verdict_differences(before: Sequence[Run], after: Sequence[Run]) -> list[VerdictDifference]:
    """The checks whose worst verdict differs, in their order."""
    first, second = _outcomes(before), _outcomes(after)
    found = []
    for check, kind in {**first, **second}:
        was, became = first.get((check, kind), []), second.get((check, kind), [])
        each = VerdictDifference(
            check=check,
            kind=kind,
            before=worst(was) if was else None,
            after=worst(became) if became else None,
            expected_before=was.count(VerdictOutcome.EXPECTED),
            expected_after=became.count(VerdictOutcome.EXPECTED),
        )
        if each.before is not each.after:
            found.append(each)
    return found


def _outcomes(runs: Sequence[Run]) -> dict[tuple[str, Kind], list[VerdictOutcome]]:
    found: dict[tuple[str, Kind], list[VerdictOutcome]] = {}
    for verdict in (each for run in runs for each in run.verdicts):
        found.setdefault((verdict.check, verdict.kind), []).append(verdict.outcome)
    return found
