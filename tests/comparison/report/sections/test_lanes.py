"""Which lanes are drawn of a run that has hundreds of partitions."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from comparison.report.sections.lanes import LANES_MAX, thinned
from comparison.report.view.model import Overlap, PartitionView, RunView, Stretch


def lane(number: int, **given: Any) -> PartitionView:
    nothing: dict[str, Any] = dict.fromkeys(("named", "delivering", "overlaps", "unnamed", "unclaimed", "commits"), ())
    return PartitionView(name=f"t-{number}", **{**nothing, **given})


def view(*lanes: PartitionView) -> RunView:
    fields: dict[str, Any] = dict.fromkeys(RunView.__dataclass_fields__)
    return replace(RunView(**{**fields, "left_out": {"commits": 3}}), partitions=lanes)


def test_run_with_few_partitions_is_drawn_whole() -> None:
    whole = view(*(lane(number) for number in range(LANES_MAX)))
    assert thinned(whole) is whole


def test_of_hundreds_those_to_look_at_are_drawn_and_some_of_the_others() -> None:
    lanes = [lane(number) for number in range(900)]
    lanes[401] = lane(401, overlaps=(Overlap(0.0, 1.0, ("m1", "m2")),))
    lanes[402] = lane(402, commits=(SimpleNamespace(is_accepted=False, moved_back_by=0),))
    lanes[403] = lane(403, unclaimed=(Stretch(0.0, 9.0),))
    drawn = thinned(view(*lanes))
    assert len(drawn.partitions) == LANES_MAX
    names = [each.name for each in drawn.partitions]
    assert {"t-401", "t-402", "t-403"} <= set(names)
    assert names == sorted(names, key=lambda name: int(name[2:]))
    assert int(names[-1][2:]) > 800
    assert drawn.left_out == {"commits": 3, "partitions": 900 - LANES_MAX}
