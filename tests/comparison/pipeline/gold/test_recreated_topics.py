"""What is measured of a topic that is deleted and created again: offsets of one name in two logs."""

from __future__ import annotations

from typing import Any

from comparison.pipeline.gold.run import measure
from comparison.pipeline.measured import CommitTotals, Measured
from comparison.pipeline.silver.lives import LIFE
from comparison.results.keys import OFFSETS, SERIALS, WHOLE_RUN
from tests.support.trace.traces import e, tables, traced_run

#: When the old topic goes, and when the new one is there.
GONE_MS, BACK_MS = 300, 400


def led(at_ms: float, leader: int) -> dict:
    return e(at_ms, "broker-1", "leader_changed", p=0, leader=leader, leader_epoch=0)


def acked(at_ms: float, first: int, last: int, serial: int) -> dict:
    serials = {"serial_first": serial, "serial_last": serial + last - first}
    return e(at_ms, "runner", "records_acked", p=0, first=first, last=last, **serials)


def poll(at_ms: float, first: int, last: int, serial: int) -> dict:
    numbers = {"serial_first": serial, "serial_last": serial + last - first}
    return e(at_ms, "m1", "records_delivered", p=0, first=first, last=last, member="m1", stream=0, **numbers)


def started(at_ms: float, offset: int) -> dict:
    return e(at_ms, "m1", "position_started", p=0, offset=offset, member="m1", stream=0)


def reset(at_ms: float, offset: int, to: str) -> dict:
    return e(at_ms, "m1", "position_reset", p=0, offset=offset, reset=to, member="m1", stream=0)


def committed(at_ms: float, offset: int) -> dict:
    return e(at_ms, "broker-1", "offset_written", p=0, group="g", offset=offset, by="m1", epoch=1)


def final(at_ms: float, offset: int, end: int) -> dict:
    return e(at_ms, "runner", "final_offset", group="g", p=0, committed=offset, end=end)


JOINED = e(1, "m1", "member_started", group="g", member="m1")
#: The group reads ten records, commits, and the topic goes.
OLD = [led(2, 1), JOINED, started(3, 0), acked(100, 0, 9, 0), poll(110, 0, 9, 0), committed(200, 10), led(GONE_MS, -2)]


def measured(*new: dict) -> tuple[Measured, Any]:
    return measure(traced_run(), tables([*OLD, *new]))


def commits_of(found: Measured) -> CommitTotals:
    assert found.commits is not None
    return found.commits


def test_offsets_of_the_new_topic_are_no_repeats_and_move_nothing_back() -> None:
    new = [led(BACK_MS, 1), started(410, 0), acked(500, 0, 4, 10), poll(510, 0, 4, 10), committed(600, 5)]
    found, of_partitions = measured(*new, final(700, 5, 5))
    commits = commits_of(found)
    assert (commits.moved_back, commits.started_behind, found.out_of_order) == (0, 0, 0)
    assert found.final_offsets is not None
    assert (found.final_offsets.behind, found.final_offsets.beyond) == (0, 0)
    coverage = {view: found.coverage[WHOLE_RUN, view] for view in (OFFSETS, SERIALS)}
    assert [(each.held, each.doubled, each.gap) for each in coverage.values()] == [(15, 0, 0), (15, 0, 0)]
    assert [each.lag for each in found.course][-1] == 0
    segments = [row for row in of_partitions.segments.to_pylist() if row["view"] == OFFSETS]
    assert sorted((row["low"], row["high"], row["holders"]) for row in segments) == [(0, 5, 1), (0, 10, 1)]
    assert sorted(of_partitions.committed["offset"].to_pylist()) == [5, 10]


def test_within_the_new_topic_repeats_and_offsets_that_move_back_are_counted() -> None:
    new = [led(BACK_MS, 1), started(410, 0), poll(510, 0, 4, 10), committed(600, 5)]
    found, _ = measured(*new, started(610, 3), poll(620, 3, 4, 13), committed(630, 4))
    assert found.coverage[WHOLE_RUN, OFFSETS].doubled == 2
    assert commits_of(found).moved_back_records == 1


def test_committed_offset_that_was_deleted_is_not_behind_the_old_one() -> None:
    found, _ = measured(led(BACK_MS, 1), final(700, -1, 0))
    assert found.final_offsets is not None
    assert (found.final_offsets.behind, found.final_offsets.beyond) == (0, 0)


def test_old_offset_is_used_where_the_group_first_begins_at_one() -> None:
    back = led(BACK_MS, 1)
    cases = {
        "at the old one": [back, started(410, 10)],
        "before the new one is led": [started(BACK_MS - 1, 10), back],
        "reset, but to where it was": [back, started(410, 10), reset(420, 0, "earliest"), started(420, 0)],
        "elsewhere": [back, started(410, 7)],
        "at the beginning": [back, started(410, 0)],
        "only later": [back, started(410, 0), committed(420, 3), started(500, 10)],
        "at a commit to the new one": [back, committed(405, 10), started(410, 10)],
        "not begun": [back],
        "not back": [started(350, 10)],
    }
    found = {name: measured(*new)[0].old_offsets_used for name, new in cases.items()}
    assert found == {
        "at the old one": 1,
        "before the new one is led": 1,
        "reset, but to where it was": 1,
        "elsewhere": 0,
        "at the beginning": 0,
        "only later": 0,
        "at a commit to the new one": 0,
        "not begun": None,
        "not back": None,
    }


def test_skip_in_the_new_topic_has_the_offsets_of_its_log() -> None:
    found, _ = measured(led(BACK_MS, 1), acked(500, 0, 7, 10), reset(510, 6, "latest"), started(510, 6))
    (skip,) = found.skips
    assert (skip.first, skip.end, skip.records, skip.committed) == (0, 6, 6, 10)


def test_offsets_of_a_topic_with_one_life_are_whatever_they_are() -> None:
    high = 5 * LIFE
    found, of_partitions = measure(traced_run(), tables([JOINED, poll(5, high, high, 0), committed(6, high + 1)]))
    assert of_partitions.committed["offset"].to_pylist() == [high + 1]
    assert found.coverage[WHOLE_RUN, OFFSETS].held == 1
