"""Runs whose figures are known, by hand or by construction: the pipeline and its twin both find them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from comparison.pipeline.bronze.runs import TraceRun, find_runs
from comparison.pipeline.generated.runs import Faults, write_synthetic
from comparison.pipeline.gold.run import measure
from comparison.pipeline.measured import Measured
from tests.support.oracle import twin as oracle
from tests.support.oracle.twin import AUTHORITY, BELIEVED, DELIVERING, OFFSETS, SERIALS
from tests.support.trace.traces import MS, e, tables, traced_run

WHOLE = -1
#: What the pipeline counts while it reads the files, which is before it measures.
COUNTED_ON_READING = ("total", "quarantined", "missing")
Event = dict[str, Any]


def measured_of(run: TraceRun, events: list[Event]) -> Measured:
    """A run as the pipeline measures it, which is as its twin does."""
    found, _ = measure(run, tables([event for event in events if not event.get("problem")], numbered=True))
    expected = oracle.measured_of(events, tolerance_ns=run.tolerance_ns, design=run.design, boots=run.boots)
    assert oracle.differences(found, expected, leaving_out=COUNTED_ON_READING) == []
    found.counts += [count for count in expected.counts if count.kind in COUNTED_ON_READING]
    return found


# -- by hand -----------------------------------------------------------------------------------------------------------


def measured(*events: Event, tolerance_ms: int = 1) -> Measured:
    """The events in order of time, as their files have them."""
    in_order = sorted(events, key=lambda event: event["t_ns"])
    return measured_of(traced_run(tolerance_ns=tolerance_ms * MS), oracle.numbered(in_order))


def notified(at_ms: float, process: str, what: str) -> Event:
    return e(at_ms, process, f"partitions_{what}", t="t0", member=process, stream=0)


def polled(at_ms: float, process: str, first: int, last: int) -> Event:
    serials = {"serial_first": first, "serial_last": last}
    return e(at_ms, process, "records_delivered", p=0, first=first, last=last, member=process, stream=0, **serials)


def named(at_ms: float, owner: str) -> Event:
    return e(at_ms, "observer", "authority_named", group="g", p=0, owner=f"{owner}-0", epoch=1)


def cleared(at_ms: float) -> Event:
    return e(at_ms, "observer", "authority_cleared", group="g", p=0, owner="", epoch=1, reason="delete")


def stage(at_ms: float, name: str) -> Event:
    return e(at_ms, "runner", "stage_entered", stage=name)


#: m1 has t0 all the time.
FIRST = [notified(0, "m1", "assigned"), stage(0, "steady"), stage(1_000, "final")]


def test_gaps_and_duplicates_are_counted_by_number() -> None:
    acked = e(0, "runner", "records_acked", p=0, first=0, last=9, serial_first=0, serial_last=9)
    found = measured(acked, polled(1, "m1", 0, 3), polled(2, "m2", 2, 5), polled(3, "m1", 3, 3), polled(4, "m1", 8, 8))
    offsets, serials = found.coverage[WHOLE, OFFSETS], found.coverage[WHOLE, SERIALS]
    assert (offsets.held, offsets.doubled, offsets.doubled_longest, offsets.gap) == (7, 3, 2, 0)
    assert (serials.held, serials.gap, serials.gap_longest, serials.unsettled_until) == (7, 3, 2, 10)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [([(0, 1), (500, 0)], (300, 200, 500)), ([(0, 1), (500, 3), (600, 1)], (700 + 2 * 100, 600, 900))],
    ids=["as long as the topic is wanted", "one gap where the topic goes on being wanted"],
)
def test_unowned_time_lasts(wanted: list[tuple[int, int]], expected: tuple[int, int, int]) -> None:
    announced = [e(ms, "runner", "topic_wanted", topic="t", wanted=count) for ms, count in wanted]
    claim = [notified(100, "m1", "assigned"), notified(300, "m1", "lost")]
    found = measured(stage(0, "steady"), *announced, *claim, stage(900, "final")).coverage[WHOLE, BELIEVED]
    assert (found.gap, found.gap_longest, found.unsettled_until) == tuple(ms * MS for ms in expected)


def stale_delivered(*events: Event, tolerance_ms: int = 1) -> int:
    found = measured(*events, tolerance_ms=tolerance_ms).commits
    assert found is not None
    return found.stale_delivered


@pytest.mark.parametrize(
    ("tolerance_ms", "at_ms", "records"), [(1, 100, 0), (1, 101, 10), (1, 100.999, 0), (50, 149, 0), (50, 150, 10)]
)
def test_delivery_is_stale_beyond_the_tolerance(tolerance_ms: int, at_ms: float, records: int) -> None:
    events = [named(0, "m1"), named(100, "m2"), polled(at_ms, "m1", 0, 9)]
    assert stale_delivered(*events, tolerance_ms=tolerance_ms) == records


def test_delivery_at_the_moment_of_its_naming_is_the_owners() -> None:
    assert stale_delivered(polled(100, "m2", 0, 9), named(100, "m2"), named(0, "m1")) == 0
    # It becomes the owner only later, but by less than clocks can tell.
    assert stale_delivered(polled(99.5, "m2", 0, 9), named(100, "m2"), named(0, "m1")) == 0
    assert stale_delivered(polled(98, "m2", 0, 9), named(100, "m2"), named(0, "m1")) == 10


def test_delivery_while_no_owner_is_named_is_not_stale() -> None:
    assert stale_delivered(named(0, "m1"), cleared(50), polled(100, "m2", 0, 9), named(100.5, "m1")) == 0


def test_differences_say_what_is_where() -> None:
    one, other = measured(*FIRST), measured(*FIRST, notified(10, "m2", "assigned"))
    assert oracle.differences(one, one) == []
    complaints = oracle.differences(one, other)
    assert any(complaint.startswith("coverage[(-1, 'believed')]") for complaint in complaints)
    shown = ("coverage", "first_overlaps", "counts")
    assert all(complaint.startswith(shown) for complaint in complaints)
    assert oracle.differences(one, other, leaving_out=shown) == []


# -- by construction ---------------------------------------------------------------------------------------------------


def figures(found: Measured) -> dict[str, int]:
    """What a synthetic run's truth has, from a measurement."""
    believed, authority, delivering, serials, offsets = (
        found.coverage[WHOLE, view] for view in (BELIEVED, AUTHORITY, DELIVERING, SERIALS, OFFSETS)
    )
    assert found.commits is not None
    assert found.final_offsets is not None
    return {
        "events": sum(count.n for count in found.counts if count.kind == "total"),
        "torn": sum(count.n for count in found.counts if count.kind == "quarantined"),
        "deaths": sum(count.n for count in found.counts if count.kind == "process_ended"),
        "rounds": len(found.rounds),
        "rebalances": len([each for each in found.phases if each.phase == "rebalance"]),
        "delivered": offsets.held,
        "duplicates": offsets.doubled,
        "lost": serials.gap,
        "out_of_order": found.out_of_order,
        "double_owned_ms": believed.doubled // MS,
        "double_owned_longest_ms": (believed.doubled_longest or 0) // MS,
        "unowned_ms": believed.gap // MS,
        "unowned_longest_ms": (believed.gap_longest or 0) // MS,
        "unowned_authority_ms": authority.gap // MS,
        "two_delivering_ms": delivering.doubled // MS,
        "two_delivering_longest_ms": (delivering.doubled_longest or 0) // MS,
        "stale_deliveries": found.commits.stale_delivered,
        "commits": found.commits.written,
        "stale_writes": found.commits.stale_writes,
        "moved_back": found.commits.moved_back,
        "moved_back_records": found.commits.moved_back_records,
        "started_behind": found.commits.started_behind,
        "final_read": found.final_offsets.read,
        "final_behind": found.final_offsets.behind,
        "final_beyond": found.final_offsets.beyond,
    }


#: Each number of members with each number of partitions; with faults, each with torn and with foreign lines.
SEEDS = 12


@pytest.mark.parametrize("with_faults", [False, True], ids=["without faults", "with faults"])
@pytest.mark.parametrize(
    "seed", [*range(SEEDS), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(SEEDS, 30))]
)
def test_synthetic_truth_is_what_is_measured(tmp_path: Path, seed: int, with_faults: bool) -> None:
    faults = Faults(zombies=0.7, brief=0.3, deaths=0.2, torn=seed % 3, foreign=seed % 2) if with_faults else Faults()
    truth = write_synthetic(
        tmp_path / "run",
        events_min=500 + 100 * seed,
        members=2 + seed % 3,
        partitions=2 + seed % 4,
        seed=seed,
        faults=faults,
    )
    events, tolerance_ns = oracle.events_of(tmp_path / "run")
    (run,) = find_runs([tmp_path])
    assert run.tolerance_ns == tolerance_ns == truth.tolerance_ms * MS
    found = figures(measured_of(run, events))
    assert found == {name: getattr(truth, name) for name in found}
