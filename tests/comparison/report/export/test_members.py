"""Whose an event is: members of one process are told apart, and nobody is invented."""

from __future__ import annotations

from typing import Any

from comparison.report.export.members import Members
from comparison.report.export.stream import Recorded
from tests.support.runs.seen_runs import UUID
from tests.support.trace.traces import e


def of(*started: tuple[str, str | None, int | None]) -> Members:
    """The members of a run in which these (process, member, stream) started."""
    events = [e(0, process, "member_started", group="g", member=id_, stream=n) for process, id_, n in started]
    return Members([Recorded(0, "member", event) for event in events])


def traced(process: str, member: str | None, stream: int | None = None) -> dict[str, Any]:
    return e(1, process, "rebalance_started", trigger="x", member=member, stream=stream)


def test_only_member_of_a_process_is_named_after_it_before_it_has_an_id() -> None:
    members = of(("m1", f"m1-{UUID}", 0))
    assert members.of(traced("m1", f"m1-{UUID}", 0)) == members.of(traced("m1", None, 0)) == "m1"
    assert members.of(traced("m2", None)) == ""


def test_members_of_one_process_with_the_same_stream_are_told_apart() -> None:
    members = of(("m1", f"m1-0-{UUID}", 0), ("m1", f"m1-1-{UUID}", 0))
    assert [members.of(traced("m1", f"m1-{n}-{UUID}", 0)) for n in (0, 1)] == ["m1-0", "m1-1"]


def test_streams_of_one_consumer_are_told_apart_and_an_unknown_one_is_the_first() -> None:
    members = of(("m1", "g_host-1", 0), ("m1", "g_host-1", 1))
    assert [members.of(traced("m1", "g_host-1", n)) for n in (None, 0, 1, 7)] == ["m1-0", "m1-0", "m1-1", "m1-0"]
    assert members.of_owner("g_host-1-1") == "m1-1"
