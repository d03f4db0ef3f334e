"""Which partitions should have an owner, and when; who had them is in `tests/comparison/ownership`."""

from __future__ import annotations

from comparison.pipeline.bronze.tables import Tables
from comparison.pipeline.gold.line_keys import Keys
from comparison.pipeline.gold.partitions import known_partitions, wanted_ranges
from comparison.pipeline.silver.context import Context
from comparison.pipeline.silver.reduce import reduced
from tests.support.trace.traces import MS, e, staged

A = {"member": "a", "stream": 0}


def ownership_changed(at_ms: float, what: str, t: str, process: str = "m1", **who: object) -> dict:
    return e(at_ms, process, f"partitions_{what}", t=t, **{**A, **who})


def test_partitions_that_should_be_owned_are_those_with_records_or_owners() -> None:
    acked = e(1, "runner", "records_acked", p=5, first=0, last=0, serial_first=0, serial_last=0)
    cases = {
        "both": [acked, ownership_changed(2, "assigned", "t0 t1"), ownership_changed(3, "assigned", "t1")],
        "none": [],
    }
    rows = staged(cases, lambda tables, context: known_partitions(reduced(tables, context)[0], context))
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

    def led(at_ms: float, leader: int, epoch: int = 0) -> dict:
        return e(at_ms, "broker-1", "leader_changed", p=0, leader=leader, leader_epoch=epoch)

    joined = e(5, "m1", "member_started", group="lab", member="a")
    cases |= {
        "created later": [wanted(1, "t", 1), joined, steady, led(20, 1), led(25, 2, 1), final],
        "led before": [wanted(1, "t", 1), joined, steady, led(20, 1, 3), led(25, 1), led(30, -1), final],
        "deleted": [wanted(1, "t", 1), joined, steady, led(20, -2), led(25, -2), final],
        "recreated": [wanted(1, "t", 1), joined, led(8, 1), steady, led(20, -2), led(30, 1), led(31, 2), final],
    }

    def stage(tables: Tables, context: Context) -> list[tuple[str, int, int]]:
        keys = Keys()
        wanted, _ = wanted_ranges(keys, reduced(tables, context)[0], context, 0, 1)
        places = [f"{topic}{partition}" for _, topic, partition in (keys.meanings[key] for key in wanted.keys.tolist())]
        return sorted(zip(places, (wanted.lows // MS).tolist(), (wanted.highs // MS).tolist(), strict=True))

    found = staged(cases, stage)
    assert found == {
        "not announced": [("t0", 10, 90)],
        "grows": [("t0", 10, 90), ("t1", 30, 90)],
        "shrinks for a while": [("t0", 10, 90), ("t1", 10, 30), ("t1", 40, 90)],
        "given up": [("t0", 10, 40), ("u0", 40, 90)],
        "of another topic": [("t0", 10, 90), ("u0", 10, 90)],
        "created later": [("t0", 20, 90)],
        "led before": [("t0", 10, 90)],
        "deleted": [("t0", 10, 20)],
        "recreated": [("t0", 10, 20), ("t0", 30, 90)],
    }
