"""From the results of runs to cells, exponents and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from comparison.results.outcomes import VerdictOutcome
from comparison.results.run import Added, Run
from comparison.results.sweep import GROUP_SIZE, CellData, SweepData
from comparison.sweep.data import as_number
from comparison.sweep.grid_file import metrics_named
from comparison.sweep.plan import SweepRun
from comparison.sweep.tables import CELLS_SCHEMA, EXPONENTS_SCHEMA, write_sweep_tables
from kernel.errors import ConfigurationError
from tests.support.runs.results import refused
from tests.support.runs.sweeps import change_of, data_of, plan_of, result_of


def joined(run: SweepRun) -> Run:
    """A join whose reads grow with the square of the group in zookeeper, and that needs no reads in other designs."""
    members = run.planned.parameters.members
    reads = 5 * members**2 if run.cell.design == "zookeeper" else 0
    change = change_of(
        "join", members=members + 1, zk_reads=reads, requests={"JoinGroup": 3, "SyncGroup": 2, "Fetch": 9}
    )
    metrics = {"converge_ms": 100 * members + run.seed, "lost": 0, "moved_back": members == 4, "rounds": None}
    return result_of(metrics, [change_of("form"), change])


def cell_of(data: SweepData, **at: object) -> CellData:
    (found,) = [cell for cell in data.cells if cell.at == at]
    return found


def test_cell_has_median_and_range_over_seeds() -> None:
    data = data_of(plan_of("scenario=join", "design=eager", "members=2,4", seeds=3), joined)
    figure = cell_of(data, members=2).figures["converge_ms"]
    assert (figure.n, figure.median, figure.low, figure.high) == (3, 202, 201, 203)
    assert cell_of(data, members=4).figures["converge_ms"].median == 402
    assert (data.planned, data.complete, data.seeds) == (6, 6, [1, 2, 3])
    assert cell_of(data, members=2).verdicts == {"as expected": 3}
    assert [cell_of(data, members=size).broken for size in (2, 4)] == [{}, {"no offset moves back": 3}]


def test_figure_that_was_not_measured_is_absent_and_forming_is_not_counted() -> None:
    data = data_of(plan_of("scenario=join", "design=eager"), joined)
    figures = data.cells[0].figures
    assert "rounds" not in figures
    assert "form.group_requests" not in figures
    assert figures["join.group_requests"].median == 5
    assert figures["application_errors"].median == 0
    assert (
        data.metrics["join.group_requests"].meaning == "join: JoinGroup, SyncGroup and LeaveGroup requests of members"
    )


def test_time_until_added_partitions_were_read_is_a_figure_of_their_change() -> None:
    def grown(run: SweepRun) -> Run:
        added = Added(partitions=1, owned=1, delivered=1, delivered_ms=1000.0 * run.seed, parts={})
        return result_of({}, [change_of("partition-increase", added=added), change_of("join")])

    data = data_of(plan_of("scenario=add-partitions", "design=eager", seeds=3), grown)
    figures = data.cells[0].figures
    assert figures["partition-increase.added_ms"].median == 2000
    assert "join.added_ms" not in figures


def test_failed_and_missing_runs_are_counted_and_not_measured() -> None:
    plan = plan_of("scenario=join", "design=eager", "members=2,4", seeds=2)
    failed = plan.runs[0]

    def result(run: SweepRun) -> Run | None:
        if run is failed:
            return result_of({"converge_ms": 99_999}, outcome="failed", verdict=VerdictOutcome.UNKNOWN)
        return None if run.cell.at["members"] == 4 else joined(run)

    data = data_of(plan, result, [(failed, "time limit of 60 s reached")])
    small, large = data.cells
    assert (small.runs, small.failed, small.figures["converge_ms"].high) == (1, 1, 202)
    assert (small.figures["failed_runs"].median, small.figures["failed_runs"].n) == (1, 2)
    assert data.shown[0] == "failed_runs"
    assert (large.runs, large.figures, large.verdicts) == (0, {}, {})
    assert (data.planned, data.complete) == (4, 1)
    assert [(each.what, each.reason) for each in data.failures] == [
        ("join · eager · members 2 · seed 1", "time limit of 60 s reached")
    ]


def test_errors_of_applications_are_counted_in_failed_runs_too() -> None:
    plan = plan_of("scenario=mass-start", "design=zookeeper")
    (run,) = plan.runs
    error = "RebalanceFailed: can't rebalance after 1 retries"
    gave_up = result_of({"converge_ms": 5.0}, outcome="failed", failures=[error], refusals=[refused("m5", asked=2)])
    data = data_of(plan, lambda _: gave_up, [(run, "timed out")])
    assert {name: figure.median for name, figure in data.cells[0].figures.items()} == {
        "application_errors": 3,
        "failed_runs": 1,
    }


def test_exponent_is_fitted_for_each_design_and_combination_of_the_other_axes() -> None:
    plan = plan_of("scenario=join", "members=2,4,8", "rate=100,200", seeds=2)
    data = data_of(plan, joined)
    reads = [each for each in data.exponents if each.metric == "join.zk_reads"]
    assert [(each.design, each.axis, each.at) for each in reads] == [
        ("zookeeper", "members", {"rate": 100}),
        ("zookeeper", "members", {"rate": 200}),
        *(("zookeeper", "rate", {"members": members}) for members in (2, 4, 8)),
    ]
    by_members, by_rate = reads[0], reads[2]
    assert (by_members.exponent, by_members.n) == (2, 6)
    assert by_members.low == pytest.approx(2, abs=1e-3)
    assert (by_members.through_x, by_members.through_y) == (pytest.approx(4), pytest.approx(80))
    assert by_rate.exponent == 0
    assert not [each for each in data.exponents if each.metric == "lost"], "0 everywhere grows with nothing"


def test_exponent_of_figures_with_a_zero_says_why_there_is_none() -> None:
    plan = plan_of("scenario=join", "design=eager", "members=2,4,8")
    data = data_of(plan, lambda run: result_of({"duplicates": run.planned.parameters.members - 2}))
    (each,) = data.exponents
    assert (each.exponent, each.low, each.through_y) == (None, None, None)
    assert each.reason == "1 of 3 figures are 0"


def test_settings_that_are_numbers_are_numeric_axes() -> None:
    plan = plan_of("scenario=join", "design=zookeeper,eager", "rebalance.backoff.ms=250,1000", "preset=equal-timers")
    data = data_of(plan, joined)
    axes = {axis.name: (axis.values, axis.numeric) for axis in data.axes}
    assert axes == {
        "scenario": (["join"], False),
        "design": (["zookeeper", "eager"], False),
        "preset": (["equal-timers"], False),
        "rebalance.backoff.ms": ([250, 1000], True),
    }
    assert data.cells[-1].at == {"preset": "equal-timers", "rebalance.backoff.ms": None}
    assert {each.design for each in data.exponents} == {"zookeeper"}, "eager has no such axis"


def test_rounds_of_a_scenario_with_its_own_sizes_are_cells_by_group_size() -> None:
    def herd(run: SweepRun) -> Run:
        joins = [change_of("join", place, size, notifications=size - 1) for place, size in enumerate((3, 6, 11), 1)]
        return result_of({"notifications": 40}, joins)

    data = data_of(plan_of("scenario=herd", "design=zookeeper", seeds=2), herd)
    assert [cell.at.get(GROUP_SIZE) for cell in data.cells] == [None, 3, 6, 11]
    assert [cell.figures["join.notifications"].median for cell in data.cells[1:]] == [2, 5, 10]
    assert "join.notifications" not in data.cells[0].figures
    (each,) = [each for each in data.exponents if each.metric == "join.notifications"]
    assert (each.axis, each.n) == (GROUP_SIZE, 6)
    assert each.exponent == pytest.approx(1.2, abs=0.05)


def test_rounds_without_a_size_have_names_of_their_own() -> None:
    changes = [change_of("subscribe", 1, moved=2), change_of("subscribe", 2, moved=5)]
    data = data_of(plan_of("scenario=subscription-change", "design=eager"), lambda _: result_of({}, changes))
    figures = data.cells[0].figures
    assert (figures["subscribe-1.moved"].median, figures["subscribe-2.moved"].median) == (2, 5)


def test_metrics_shown_are_the_wanted_ones_or_the_usual_ones_that_are_not_zero() -> None:
    def shown(*wanted: str) -> list[str]:
        return data_of(plan_of("scenario=join", "design=eager", metrics=wanted), joined).shown

    assert shown() == ["converge_ms"]
    assert shown("lost", "kill.moved") == ["lost"]


@pytest.mark.parametrize(("value", "number"), [("12", 12), ("0.5", 0.5), ("range", "range"), (3, 3), (None, None)])
def test_settings_become_numbers_where_they_are(value: Any, number: Any) -> None:
    assert as_number(value) == number


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("converge", "Did you mean 'converge_ms'"),
        ("join.notification", "Did you mean 'join.notifications'"),
        ("join.lost", "Did you mean 'join.rounds'"),
        ("x", "Use one of converge_ms"),
        (".moved", "unknown metric '.moved'"),
    ],
)
def test_unknown_metric_is_refused(name: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        metrics_named([name])
    assert message in str(refused.value)


def test_known_metrics_are_of_runs_and_of_changes() -> None:
    assert metrics_named(["converge_ms", "join.zk_reads", "converge_ms", "application_errors"]) == (
        "converge_ms",
        "join.zk_reads",
        "application_errors",
    )


def test_tables_have_their_schemas_and_every_figure(tmp_path: Path) -> None:
    data = data_of(plan_of("scenario=join", "members=2,4", "rebalance.max.retries=3", seeds=2), joined)
    write_sweep_tables(tmp_path, data)
    cells, exponents = (pq.read_table(tmp_path / "tables" / f"{name}.parquet") for name in ("cells", "exponents"))
    assert cells.schema.equals(CELLS_SCHEMA)
    assert exponents.schema.equals(EXPONENTS_SCHEMA)
    rows = cells.to_pylist()
    assert len(rows) == sum(len(cell.figures) for cell in data.cells)
    (row,) = [
        row
        for row in rows
        if (row["cell"], row["metric"]) == ("join/zookeeper/members-2_rebalance.max.retries-3", "converge_ms")
    ]
    assert (row["n"], row["median"], row["low"], row["high"], row["unit"]) == (2, 201.5, 201, 202, "ms")
    assert msgspec.json.decode(row["axes"]) == {"members": 2, "rebalance.max.retries": 3}
    assert len(exponents) == len(data.exponents)
    assert exponents.to_pylist()[0]["axes"] == '{"rebalance.max.retries":3}'
