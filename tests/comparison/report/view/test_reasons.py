"""The words of reasons, of stretches that no run needs to have."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.report.view.model import Overlap, PartitionView
from comparison.report.view.reasons import reasons_of


class Unknown:
    """No cause is known of anything, and nothing is asked of the run."""

    def overlap(self, *_: object) -> tuple[()]:
        return ()


@pytest.mark.parametrize(
    ("lengths_ms", "said"),
    [
        ((150.0, 199.4), "for 150 to 199 ms"),
        ((199.4, 201.0), "for 199 ms to 0.2 s"),
        ((199.9, 201.0), "for 0.2 s"),
        ((199.9, 360.0), "for 0.2 to 0.4 s"),
    ],
)
def test_a_length_has_one_unit_also_where_it_is_rounded(lengths_ms: tuple[float, float], said: str) -> None:
    none: Any = dict.fromkeys(("named", "delivering", "unnamed", "unclaimed", "commits"), ())
    lanes: Any = {
        place: PartitionView(name=f"t-{place}", overlaps=(Overlap(0.0, length_ms, ("m1", "m2")),), **none)
        for place, length_ms in enumerate(lengths_ms)
    }
    unknown: Any = Unknown()
    (reason,) = reasons_of(unknown, lanes, unknown, unknown, 0.0)
    assert reason.text.startswith(f"m1 and m2 both delivered t-0 to t-1 {said}.")
