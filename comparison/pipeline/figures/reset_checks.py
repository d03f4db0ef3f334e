"""Decide the checks on positions that `auto.offset.reset` set to the log's end.

As in comparison.pipeline.figures.deciding: a run's figures in, an outcome and its reason out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.pipeline.figures.deciding import EXPECTED, NOT_EXPECTED, UNKNOWN, counted_noun, needs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.pipeline.figures.deciding import CheckResult
    from comparison.results.run import Run, Skipped


_NEEDED = "deliveries, and members with auto.offset.reset=latest"


@needs(_NEEDED)
def skips_what_was_not_committed(run: Run) -> CheckResult:
    """Records vanish, though no part failed: a member began at the log's end, for nothing had been committed yet."""
    return _skipped([skip for skip in run.skips if skip.committed is None], "before a first commit")


@needs(_NEEDED)
def forgets_expired_offsets(run: Run) -> CheckResult:
    """The group had committed, but its offsets have expired meanwhile: it begins at the log's end (KIP-211)."""
    return _skipped([skip for skip in run.skips if skip.committed is not None], "behind an offset that was committed")


def _skipped(skips: Sequence[Skipped], where: str) -> CheckResult:
    if not skips:
        return NOT_EXPECTED, f"nothing was skipped {where}"
    records, places = sum(skip.records for skip in skips), {(skip.topic, skip.partition) for skip in skips}
    return EXPECTED, (f"{counted_noun(records, 'record')} of {counted_noun(len(places), 'partition')} skipped {where}")


@needs(_NEEDED)
def resets_without_a_commit_only(run: Run) -> CheckResult:
    """A partition for which the group has an offset is read from there, whatever auto.offset.reset says."""
    if run.metrics["skipped"] is None:
        return UNKNOWN, "nothing was delivered"
    first = next((skip for skip in run.skips if skip.committed is not None), None)
    if first is None:
        return EXPECTED, "nothing was skipped behind an offset that was committed"
    return NOT_EXPECTED, (
        f"{first.topic}-{first.partition} was reset to {first.end} although {first.committed} had been committed"
    )
