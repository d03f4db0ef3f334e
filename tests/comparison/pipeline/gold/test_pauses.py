"""What rebalances do to pauses: dropped and given back, moved, or outlasted."""

from __future__ import annotations

from comparison.pipeline.bronze.tables import Tables
from comparison.pipeline.gold.partitions import measure_partitions
from comparison.pipeline.gold.pauses import added
from comparison.pipeline.measured_pauses import Pauses
from comparison.pipeline.silver.context import Context
from comparison.pipeline.silver.reduce import reduced
from tests.support.trace.traces import e, staged


def told(at_ms: float, what: str, process: str = "m1", t: str = "t0", **given: object) -> dict:
    return e(at_ms, process, f"partitions_{what}", t=t, member=f"g_{process}", stream=0, **given)


def round_of(at_ms: float, until_ms: float, generation: int) -> list[dict]:
    states = ((at_ms, "PreparingRebalance"), (at_ms, "CompletingRebalance"), (until_ms, "Stable"))
    more = {"group": "g", "generation": generation, "members": 2, "reason": ""}
    return [e(each_ms, "broker-1", "group_changed", state=state, **more) for each_ms, state in states]


JOINED = [e(1, process, "member_started", group="g", member=f"g_{process}") for process in ("m1", "m2")]
PAUSED = [*JOINED, told(2, "assigned"), told(3, "paused")]
DROPPED = told(10, "resumed", cause="rebalance")
CASES: dict[str, tuple[list[dict], Pauses | None]] = {
    "never": (JOINED, None),
    "given back": ([*PAUSED, DROPPED, told(12, "assigned")], Pauses(dropped=1)),
    "given back to another thread": ([*PAUSED, DROPPED, told(12, "assigned") | {"stream": 1}], Pauses(moved=1)),
    "given away and later back": (
        [*PAUSED, DROPPED, told(12, "assigned", "m2"), told(20, "assigned")],
        Pauses(moved=1),
    ),
    "given to nobody": ([*PAUSED, DROPPED], Pauses(moved=1)),
    "asked for": ([*PAUSED, told(10, "resumed", cause="asked"), told(12, "assigned")], Pauses()),
    "asked for behind a rebalance": (
        [*PAUSED, *round_of(4, 6, 2), told(10, "resumed", cause="asked")],
        Pauses(outlasting=1),
    ),
    "for good": ([*PAUSED, *round_of(4, 6, 2), *round_of(8, 9, 3)], Pauses(outlasting=1)),
    "into a rebalance": ([*PAUSED, *round_of(4, 12, 2), DROPPED, told(12, "assigned")], Pauses(dropped=1)),
    "twice": (
        [*PAUSED, DROPPED, told(12, "assigned"), told(13, "paused"), told(14, "paused"), *round_of(15, 16, 2)],
        Pauses(dropped=1, outlasting=1),
    ),
}


def _found(tables: Tables, context: Context) -> list[Pauses | None]:
    """At once, and in two buckets."""
    bundle = reduced(tables, context)[0]
    parts = [measure_partitions(each, context, number, 2)[0].pauses for number, each in enumerate(bundle.shared_out(2))]
    return [measure_partitions(bundle, context)[0].pauses, added(parts)]


def test_pauses_that_met_with_a_rebalance() -> None:
    found = staged({name: events for name, (events, _) in CASES.items()}, _found)

    assert found == {name: [expected, expected] for name, (_, expected) in CASES.items()}
