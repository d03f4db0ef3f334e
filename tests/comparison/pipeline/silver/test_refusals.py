"""Whether refused members had been in their groups, from traces written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.gold.run import measure
from tests.support.oracle.twin import measured_of
from tests.support.trace.traces import e, tables, traced_run

Event = dict[str, Any]


def started(at_ms: float, process: str, group: str = "g") -> Event:
    return e(at_ms, process, "member_started", member=f"{process}-id", stream=0, group=group)


def closed(at_ms: float, process: str) -> Event:
    return e(at_ms, process, "member_closed", member=f"{process}-id", stream=0, group="g")


@pytest.mark.parametrize(
    ("others", "was_in"),
    [
        pytest.param([], False, id="a newcomer"),
        pytest.param([started(1, "m1.2")], True, id="a member"),
        pytest.param([started(1, "m1"), closed(2, "m1")], True, id="restarted"),
        pytest.param([started(1, "m2")], False, id="another one"),
        pytest.param([started(1, "m1.2", "h")], False, id="in another group"),
        pytest.param([started(9, "m1.2")], False, id="admitted later"),
    ],
)
def test_refused_member_had_been_in_if_a_process_at_its_place_had_joined(others: list[Event], was_in: bool) -> None:
    about = {"member": "m1.2-id", "stream": 0, "group": "g", "api": "JoinGroup", "error": "GROUP_MAX_SIZE_REACHED"}
    events = [*others, e(5, "m1.2", "member_refused", **about)]
    found, _ = measure(traced_run(), tables(events))
    assert [each.was_in for each in found.refusals] == [was_in]
    assert found.refusals == measured_of(events).refusals
