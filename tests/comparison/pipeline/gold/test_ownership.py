"""Who owned what, and when: by the members' belief, by the authority, and by actual deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from comparison.pipeline.gold import ownership
from comparison.pipeline.gold.partitions import Keys, known_partitions, wanted_ranges
from comparison.pipeline.silver.deliveries import claims_of, delivered_of
from comparison.pipeline.silver.naming import Naming, naming_rows
from comparison.pipeline.silver.reduce import reduced
from tests.support.trace.traces import MS, e, staged

if TYPE_CHECKING:
    import pyarrow as pa

    from comparison.pipeline.bronze.tables import Tables
    from comparison.pipeline.silver.context import Context


A = {"member": "a", "stream": 0}


def ownership_changed(at_ms: float, what: str, t: str, process: str = "m1", **who: object) -> dict:
    return e(at_ms, process, f"partitions_{what}", t=t, **{**A, **who})


def delivered(at_ms: float, process: str = "m1") -> dict:
    return e(at_ms, process, "records_delivered", p=0, first=0, last=9, **A)


BELIEFS = {
    "revoked": [ownership_changed(1, "assigned", "t0 t1"), ownership_changed(5, "revoked", "t0")],
    "lost": [
        ownership_changed(1, "assigned", "t0"),
        ownership_changed(5, "lost", "t0"),
        ownership_changed(9, "assigned", "t0"),
    ],
    "assigned twice": [ownership_changed(1, "assigned", "t0"), ownership_changed(5, "assigned", "t0")],
    "killed": [ownership_changed(1, "assigned", "t0"), e(7, "runner", "process_ended", target="m1", how="kill")],
    "stopped": [
        ownership_changed(1, "assigned", "t0"),
        e(7, "runner", "fault_started", fault="freeze", target="m1"),
        ownership_changed(90, "lost", "t0"),
    ],
    "left": [
        ownership_changed(1, "assigned", "t0"),
        ownership_changed(1, "assigned", "t1", member="b"),
        e(6, "m1", "member_closed", group="g", member="a"),
    ],
    "streams": [
        ownership_changed(1, "assigned", "t0"),
        ownership_changed(1, "assigned", "t1", stream=1),
        ownership_changed(4, "revoked", "t1", stream=1),
    ],
}


def _believed(tables: Tables, context: Context) -> pa.Table:
    intervals = ownership.believed(claims_of(tables, context), context)
    return intervals.sort_by([("from_ns", "ascending"), ("partition", "ascending")])


def _delivering(tables: Tables, context: Context) -> pa.Table:
    delivered = delivered_of(tables, claims_of(tables, context), context, Naming(naming_rows(tables)))
    intervals = ownership.delivering(delivered.stretches, claims_of(tables, context))
    return intervals.sort_by([("owner", "ascending"), ("from_ns", "ascending")])


@pytest.fixture(scope="module")
def believed() -> dict[str, list[Any]]:
    return staged(BELIEFS, _believed)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("revoked", [("m1/a/0", 0, 1, 5, "revoked"), ("m1/a/0", 1, 1, None, "end")]),
        ("lost", [("m1/a/0", 0, 1, 5, "lost"), ("m1/a/0", 0, 9, None, "end")]),
        ("assigned twice", [("m1/a/0", 0, 1, 5, "reassigned"), ("m1/a/0", 0, 5, None, "end")]),
        ("killed", [("m1/a/0", 0, 1, 7, "process")]),
        ("stopped", [("m1/a/0", 0, 1, 90, "lost")]),
        ("left", [("m1/a/0", 0, 1, 6, "member"), ("m1/b/0", 1, 1, None, "end")]),
        ("streams", [("m1/a/0", 0, 1, None, "end"), ("m1/a/1", 1, 1, 4, "revoked")]),
    ],
)
def test_belief_ends_with(believed: dict[str, list[Any]], case: str, expected: list[tuple]) -> None:
    found = [
        (row.owner, row.partition, row.from_ns // MS, row.until_ns // MS if row.until_ns else None, row.closed_by)
        for row in believed[case]
    ]
    assert found == expected


def test_believed_interval_says_when_its_owner_ended(believed: dict[str, list[Any]]) -> None:
    assert [row.gone_ns for row in believed["left"]] == [6 * MS, None]


def test_authority_names_one_owner_at_a_time() -> None:
    def named(at_ms: float, owner: str) -> dict:
        return e(at_ms, "observer", "authority_named", group="g", p=0, owner=owner, epoch=1)

    cleared = e(5, "observer", "authority_cleared", group="g", p=0, owner="a-0", epoch=1, reason="session")
    cases = {"one": [named(1, "a-0"), cleared, named(8, "b-0"), named(9, "c-0")]}
    rows = staged(cases, lambda tables, _: ownership.authority(naming_rows(tables)))["one"]
    assert [(row.owner, row.from_ns // MS, row.until_ns, row.closed_by) for row in rows] == [
        ("a-0", 1, 5 * MS, "session"),
        ("b-0", 8, 9 * MS, "renamed"),
        ("c-0", 9, None, "end"),
    ]


def test_pause_of_more_than_a_second_ends_an_interval_of_delivery() -> None:
    cases = {
        "steady": [delivered(0), delivered(400), delivered(1_400)],
        "paused": [delivered(0), delivered(400), delivered(1_401), delivered(1_500)],
        "two members": [delivered(0), delivered(10, "m2"), delivered(20)],
    }
    rows = staged(cases, _delivering)
    found = {
        case: [(row.owner[:2], row.from_ns // MS, row.until_ns // MS) for row in of_case]
        for case, of_case in rows.items()
    }
    assert found == {
        "steady": [("m1", 0, 1_400)],
        "paused": [("m1", 0, 400), ("m1", 1_401, 1_500)],
        "two members": [("m1", 0, 20), ("m2", 10, 10)],
    }


def test_partitions_that_should_be_owned_are_those_with_records_or_owners() -> None:
    acked = e(1, "runner", "records_acked", p=5, first=0, last=0, serial_first=0, serial_last=0)
    cases = {
        "both": [acked, ownership_changed(2, "assigned", "t0 t1"), ownership_changed(3, "assigned", "t1")],
        "none": [],
    }
    rows = staged(cases, lambda tables, context: known_partitions(reduced(tables, context).bundle, context))
    assert sorted(partition for _, _, partition in rows["both"]) == [0, 1, 5]
    assert rows["none"] == []


def test_partitions_are_wanted_as_long_as_the_group_wants_their_topic() -> None:
    def wanted(at_ms: float, topic: str, count: int) -> dict:
        return e(at_ms, "runner", "topic_wanted", topic=topic, wanted=count)

    steady, final = (e(ms, "runner", "stage_entered", stage=stage) for ms, stage in ((10, "steady"), (90, "final")))
    cases = {
        "not announced": [steady, ownership_changed(20, "assigned", "t0"), final],
        "grows": [wanted(1, "t", 1), steady, ownership_changed(20, "assigned", "t0 t1"), wanted(30, "t", 2), final],
        "shrinks for a while": [wanted(1, "t", 2), steady, wanted(30, "t", 1), wanted(40, "t", 2), final],
        "given up": [wanted(1, "t", 1), steady, wanted(40, "t", 0), wanted(40, "u", 1), final],
        "of another topic": [wanted(1, "u", 1), steady, ownership_changed(20, "assigned", "t0"), final],
    }

    def stage(tables: Tables, context: Context) -> list[tuple[str, int, int]]:
        keys = Keys()
        wanted = wanted_ranges(keys, reduced(tables, context).bundle, context, 0, 1)
        places = [f"{topic}{partition}" for _, topic, partition in (keys.meanings[key] for key in wanted.keys.tolist())]
        return sorted(zip(places, (wanted.lows // MS).tolist(), (wanted.highs // MS).tolist(), strict=True))

    found = staged(cases, stage)
    assert found == {
        "not announced": [("t0", 10, 90)],
        "grows": [("t0", 10, 90), ("t1", 30, 90)],
        "shrinks for a while": [("t0", 10, 90), ("t1", 10, 30), ("t1", 40, 90)],
        "given up": [("t0", 10, 40), ("u0", 40, 90)],
        "of another topic": [("t0", 10, 90), ("u0", 10, 90)],
    }


def test_each_start_of_a_process_of_one_name_has_its_own_end() -> None:
    ended = [e(at_ms, "runner", "process_ended", target="m1", how="kill") for at_ms in (5, 20)]
    cases = {
        "twice": [ownership_changed(1, "assigned", "t0"), ended[0], ownership_changed(10, "assigned", "t0"), ended[1]]
    }
    rows = staged(cases, _believed)["twice"]
    assert [(row.from_ns // MS, row.until_ns // MS, row.closed_by) for row in rows] == [
        (1, 5, "process"),
        (10, 20, "process"),
    ]
