"""Which of the bystander's operations were before a change and which during it, and how long they took."""

from __future__ import annotations

from typing import Any

from comparison.pipeline.figures.assemble import assemble
from comparison.pipeline.figures.bystanders import bystander_metrics
from comparison.pipeline.gold.run import measure
from comparison.pipeline.measured import BystanderLatency
from tests.support.oracle.bystanders import latencies_of
from tests.support.trace.traces import MS, e, tables, traced_run

WHOLE = -1
#: A rest from 100 ms on, a join from 200 ms to 300 ms, and growth without a rest from 400 ms to 500 ms.
RUNNER = [
    e(0, "runner", "run_started", parameters={}),
    e(100, "runner", "stage_entered", stage="steady"),
    e(200, "runner", "change_started", change="join", round=1, members=3),
    e(300, "runner", "change_settled", change="join", round=1, members=3),
    e(400, "runner", "change_started", change="grow", round=2, members=5),
    e(500, "runner", "change_settled", change="grow", round=2, members=5),
    e(600, "runner", "stage_entered", stage="final"),
]


def op(begin_ms: float, end_ms: float, name: str = "getData", *, ok: bool = True) -> dict[str, Any]:
    latency_ns = round((end_ms - begin_ms) * MS)
    return e(end_ms, "bystander", "bystander_op", op=name, ok=ok, latency_ns=latency_ns, error=None)


def found(*operations: dict[str, Any]) -> dict[tuple[int, str, str], BystanderLatency]:
    events = sorted([*RUNNER, *operations], key=lambda event: event["t_ns"])
    measured, _ = measure(traced_run(scenario="herd"), tables(events))
    assert sorted(measured.bystanders, key=repr) == sorted(latencies_of(events), key=repr)
    return {(each.window, each.stage, each.op): each for each in measured.bystanders}


def test_operation_is_during_a_change_if_any_part_of_it_was() -> None:
    during = [(199, 200), (199, 301), (299, 301), (250, 251)]
    assert found(*(op(*each) for each in during))[0, "during", "getData"].answered == len(during)


def test_operation_is_before_a_change_if_it_began_after_the_rest_and_ended_before_the_change() -> None:
    answers = found(op(99, 101), op(100, 101), op(150, 199.9), op(300, 301), op(550, 551))
    assert {key: each.answered for key, each in answers.items()} == {
        (0, "before", "getData"): 2,
        (WHOLE, "before", "getData"): 2,
    }


def test_without_a_rest_nothing_is_before_a_change_and_it_is_not_among_those_of_the_run() -> None:
    answers = found(op(350, 351), op(450, 451, "setData"))
    assert [(key, each.answered) for key, each in answers.items()] == [((1, "during", "setData"), 1)]


def test_a_change_that_never_settled_lasts_until_the_next() -> None:
    unsettled = [event for event in RUNNER if event["kind"] != "change_settled"]
    events = sorted([*unsettled, op(350, 351), op(599, 600)], key=lambda event: event["t_ns"])
    measured, _ = measure(traced_run(scenario="herd"), tables(events))
    assert [(each.window, each.answered) for each in measured.bystanders if each.window >= 0] == [(0, 1), (1, 1)]


def test_percentiles_are_latencies_that_occurred() -> None:
    operations = [op(100, 100 + ms / 10) for ms in range(1, 201)]
    (before,) = [each for key, each in found(*operations).items() if key == (0, "before", "getData")]
    assert (before.p50_ns, before.p99_ns, before.max_ns) == (10 * MS, 198 * MS // 10, 20 * MS)
    few = found(op(100, 101), op(110, 130))[0, "before", "getData"]
    assert (few.p50_ns, few.p99_ns, few.max_ns) == (1 * MS, 20 * MS, 20 * MS)


def test_failed_operations_are_counted_apart() -> None:
    both = found(op(100, 101), op(110, 190, ok=False))[0, "before", "getData"]
    assert (both.answered, both.failed, both.max_ns) == (1, 1, MS)
    none = found(op(110, 190, ok=False))[0, "before", "getData"]
    assert (none.answered, none.failed, none.p50_ns, none.max_ns) == (0, 1, None, None)


def test_figures_name_the_change_and_its_size_and_leave_counts_as_they_are() -> None:
    events = sorted([*RUNNER, op(150, 152), op(210, 215), op(410, 450)], key=lambda event: event["t_ns"])
    measured, _ = measure(traced_run(scenario="herd"), tables(events))
    run = assemble(traced_run(scenario="herd"), measured)
    shown = [(each.change, each.members, each.stage, each.p99_ms) for each in run.bystanders]
    assert shown == [("join", 3, "before", 2.0), ("join", 3, "during", 5.0), ("grow", 5, "during", 40.0)]
    metrics = {name: run.metrics[name] for name in bystander_metrics(measured)}
    assert metrics == dict.fromkeys(metrics) | {
        f"bystander_get_{stage}_{share}_ms": ms
        for stage, ms in (("before", 2.0), ("during", 5.0))
        for share in ("p50", "p99")
    }
    assert (run.metrics["zk_reads"], run.zk_operations, run.counters) == (0, {}, [])
    assert not [count for count in measured.counts if count.role == "bystander"]
