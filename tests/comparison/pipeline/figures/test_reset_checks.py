"""Verdicts on positions that were set to the log's end."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.results.outcomes import VerdictOutcome
from tests.comparison.pipeline.figures.judged import NO, PARAMETERS, UNKNOWN, YES, assert_verdict, rows_of
from tests.support.runs.results import skipped

FIRST, LATER = skipped(0), skipped(1, 7, committed=10)
TABLE = {
    ("skips what came meanwhile", "uncommitted-reset", "eager"): [
        ({"skips": [FIRST, skipped(2)]}, YES, "10 records of 2 partitions skipped before a first commit"),
        ({"skips": [LATER]}, NO, "nothing was skipped before a first commit"),
        ({"skips": []}, NO, ""),
    ],
    ("reset only without a commit", "uncommitted-reset", "consumer"): [
        ({"skips": [FIRST]}, YES, ""),
        ({"skips": [FIRST, LATER]}, NO, "t-1 was reset to 17 although 10 had been committed"),
        ({"skips": [], "skipped": None}, UNKNOWN, "nothing was delivered"),
    ],
    ("reset only without a commit", "expired-offsets", "zookeeper"): [
        ({"skips": []}, YES, "nothing was skipped behind an offset that was committed"),
        ({"skips": [LATER]}, NO, ""),
    ],
    ("forgets where it was", "expired-offsets", "server"): [
        ({"skips": [FIRST, LATER]}, YES, "7 records of 1 partition skipped behind an offset that was committed"),
        ({"skips": [FIRST]}, NO, ""),
    ],
}


@pytest.mark.parametrize(PARAMETERS, rows_of(TABLE))
def test_skips_are_judged(judged: tuple[str, str, str], given: Any, outcome: VerdictOutcome, reason: str) -> None:
    assert_verdict(judged, given, outcome, reason)
