"""Partitions that a change moved or stopped, kept partitions, and owners before and after it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from comparison.pipeline.gold.ownership import authority, believed
from comparison.pipeline.gold.run import measure
from comparison.pipeline.gold.turnover import kept_through, owners_around
from comparison.pipeline.measured import Round
from comparison.pipeline.silver.deliveries import claims_of, delivered_of
from comparison.pipeline.silver.naming import Naming, naming_rows
from tests.support.trace.traces import MS, context, e, tables, traced_run


def change(at_ms: float, name: str = "join") -> dict:
    return e(at_ms, "runner", "change_started", change=name, round=1, members=3)


def ownership_changed(at_ms: float, what: str, t: str, process: str) -> dict:
    return e(at_ms, process, f"partitions_{what}", t=t, member=process, stream=0)


TURNOVER = {
    "leave": [
        ownership_changed(1, "assigned", "t0 t1", "m1"),
        ownership_changed(1, "assigned", "t2", "m2"),
        ownership_changed(2, "revoked", "t0 t1", "m1"),  # before the change
        ownership_changed(3, "assigned", "t0 t1", "m1"),
        change(5, "leave"),
        ownership_changed(6, "revoked", "t2", "m2"),
        e(7, "m2", "member_closed", group="g", member="m2"),
        ownership_changed(8, "revoked", "t0 t1", "m1"),
        ownership_changed(9, "assigned", "t0 t1 t2", "m1"),
        ownership_changed(10, "revoked", "t0 t1 t2", "m1"),  # a second round stops the same ones again
    ],
    "restart": [
        ownership_changed(1, "assigned", "t0", "m1"),
        ownership_changed(1, "assigned", "t1 t2", "m2"),
        change(5, "restart"),
        ownership_changed(6, "revoked", "t0", "m1"),
        e(7, "m1", "member_closed", group="g", member="m1"),
        ownership_changed(8, "assigned", "t0", "m2"),
        ownership_changed(9, "revoked", "t0", "m2"),
        ownership_changed(10, "assigned", "t0", "m1.2"),
    ],
    "restart in place": [
        ownership_changed(1, "assigned", "t0", "m1"),
        change(5, "restart"),
        ownership_changed(6, "revoked", "t0", "m1"),
        e(7, "m1", "member_closed", group="g", member="m1"),
        ownership_changed(10, "assigned", "t0", "m1.2"),
    ],
    "expired": [
        ownership_changed(1, "assigned", "t0", "m1"),
        change(5, "restart"),
        ownership_changed(6, "lost", "t0", "m1"),
        e(7, "m1", "partitions_assigned", t="t0", member="its next id", stream=0),
    ],
    "join": [
        ownership_changed(1, "assigned", "t0 t1", "m1"),
        change(5, "join"),
        ownership_changed(6, "revoked", "t1", "m1"),
        ownership_changed(7, "assigned", "t1", "m2"),
    ],
    "several members of a process": [
        ownership_changed(1, "assigned", "t0 t1", "m1"),
        change(5, "join"),
        ownership_changed(6, "revoked", "t1", "m1"),
        e(7, "m1", "partitions_assigned", t="t1", member="another", stream=0),
    ],
}


@pytest.mark.parametrize(
    ("case", "moved", "stopped", "stopped_kept"),
    [
        ("leave", 1, 5, 2),
        ("restart", 2, 1, 0),
        ("restart in place", None, None, None),  # nothing to count
        ("expired", 0, 1, 0),
        ("join", 1, 1, 0),
        ("several members of a process", 1, 1, 0),
    ],
)
def test_partitions_moved_and_partitions_taken_from_members_that_stay(
    case: str, moved: int | None, stopped: int | None, stopped_kept: int | None
) -> None:
    turnover = measure(traced_run(), tables(TURNOVER[case]))[0].turnover
    rows = [(row.moved, row.stopped, row.stopped_kept) for row in turnover.values()]
    assert rows == ([(moved, stopped, stopped_kept)] if moved is not None else [])


def test_kept_partitions_are_determined_for_each_round() -> None:
    def poll(at_ms: float, partition: int, process: str = "m1") -> dict:
        return e(at_ms, process, "records_delivered", p=partition, first=0, last=0, member=process, stream=0)

    cases = {
        "join": [
            ownership_changed(1, "assigned", "t0 t1 t2", "m1"),
            poll(5, 2),
            poll(12, 0),
            poll(13, 0),
            poll(14, 1),
            ownership_changed(15, "revoked", "t1", "m1"),
            poll(25, 2),
            ownership_changed(30, "assigned", "t1", "m2"),
        ]
    }
    found = tables(cases["join"])
    rounds = tuple(Round(from_ms * MS, until_ms * MS) for from_ms, until_ms in ((10, 20), (20, 28), (28, 40)))
    around = replace(context(found), rounds=rounds, keeps=True)
    in_rounds = delivered_of(found, claims_of(found, around), around, Naming(naming_rows(found))).in_rounds
    kept = kept_through(believed(claims_of(found, around), around), in_rounds, rounds)
    assert {number: (each.kept, each.delivered) for number, each in kept.items()} == {0: (2, 1), 1: (2, 1), 2: (2, 0)}


def test_owners_before_and_after_a_change() -> None:
    def named(at_ms: float, partition: int, owner: str) -> dict:
        return e(at_ms, "observer", "authority_named", group="g", p=partition, owner=owner, epoch=1)

    def cleared(at_ms: float, partition: int) -> dict:
        return e(at_ms, "observer", "authority_cleared", group="g", p=partition, owner="", epoch=1, reason="delete")

    cases = {
        "join": [
            named(1, 0, "a"),
            named(1, 1, "a"),
            named(1, 2, "a"),
            change(5),
            cleared(6, 0),
            cleared(6, 1),
            named(7, 0, "a"),
            named(7, 1, "b"),
            named(7, 3, "b"),
            e(9, "runner", "stage_entered", stage="final"),
            cleared(10, 0),
        ]
    }

    found = tables(cases["join"])
    (owners,) = owners_around(authority(naming_rows(found)), context(found).change_windows).values()
    assert {(each.topic, each.partition) for each in owners} == {("t", partition) for partition in range(4)}
    assert sorted((pair.before or "", pair.after or "") for pair in owners) == [
        ("", "b"),
        ("a", "a"),
        ("a", "a"),
        ("a", "b"),
    ]


def test_partitions_without_an_owner_at_the_end_are_those_that_should_have_one() -> None:
    """Also one that had none when the last change began; not one of a topic that nobody wants any more."""

    def named(at_ms: float, partition: int, kind: str = "named", topic: str = "t") -> dict:
        owner, what = {"named": ("a", {}), "cleared": ("", {"reason": "delete"})}[kind]
        return e(
            at_ms, "observer", f"authority_{kind}", group="g", topic=topic, p=partition, owner=owner, epoch=1, **what
        )

    events = [
        *(named(1, partition) for partition in range(4)),
        named(4, 1, "cleared"),
        change(5),
        named(6, 1),
        named(7, 2, "cleared"),
        named(8, 1, "cleared"),
        e(8.5, "runner", "topic_wanted", topic="t", wanted=2),
        e(9, "runner", "stage_entered", stage="final"),
        named(10, 0, "cleared"),
    ]
    assert measure(traced_run(), tables(events))[0].left_unnamed == 1
