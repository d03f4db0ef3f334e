"""The costs of a rolling restart, and the remarks derived from them."""

from __future__ import annotations

from typing import Any

from comparison.pipeline.analysis import compose
from comparison.report.summaries.restarts import costs, remarks, table
from kernel.designs import DESIGN_NAMES
from tests.support.runs.results import change, every_design, restarted, run


def shown(*runs: Any) -> list:
    return costs(compose(list(runs)).runs)


def test_costs_are_the_sums_over_all_restarts() -> None:
    found = {cost.design: cost.cells() for cost in costs(every_design().runs)}
    assert found["eager"] == ["10", "108", "46", "13.90", "0", "1,800"]
    assert found["cooperative"] == ["15", "10", "23", "17.60", "0", "2,600"]
    assert tuple(found) == DESIGN_NAMES


def test_cost_unknown_for_one_restart_is_unknown_for_all() -> None:
    restarts = [change("restart"), change("restart", round=2, converge_ms=None, moved=None, stalled_s=None)]
    runs = [run("rolling-restart", "eager", changes=restarts)]
    (cost,) = costs(runs)
    assert (cost.moved, cost.slowest_ms, cost.stalled_s) == (None, None, 0.1)
    found = table(runs)
    assert found is not None
    assert found.title == "cost of restarting 2 members one after the other"


def test_other_scenarios_have_no_restart_costs() -> None:
    assert shown(run("join", "eager"), run("protocol-migration", "cooperative", changes=[change("restart")])) == []


def test_remarks_compare_common_claims_with_the_figures() -> None:
    shown = remarks(costs(every_design().runs))
    assert shown[0] == (
        "static: 0 stops instead of 108, 0 moves instead of 46, but no less unowned time: 13 partition-s, eager 13.90"
    )
    assert shown[1].startswith(
        "cooperative: 10 stops instead of 108, 23 moves instead of 46, at the price of more rebalances"
    )
    assert shown[1].endswith(
        "more rebalances (15 instead of 10) and more unowned time (17.60 partition-s, eager 13.90)"
    )
    assert shown[2].startswith(
        "delayed: 0 stops instead of 108, 0 moves instead of 46, at the price of more rebalances"
    )
    assert shown[3].startswith("consumer: 10 stops instead of 108, 22 moves instead of 46, with no more rebalances")
    assert shown[4].startswith("zookeeper: less unowned time")


def test_remarks_contradict_a_claim_when_the_figures_do() -> None:
    quick = {"static": 2.0, "cooperative": 5.0}
    runs = [
        run(
            "rolling-restart",
            design,
            changes=[change("restart", rounds=1, unowned_partition_s=quick.get(design, 10.0))],
        )
        for design in ("eager", "static", "cooperative")
    ]
    static, cooperative = remarks(shown(*runs))
    assert "and less unowned time: 2 partition-s, eager 10" in static
    assert "with no more rebalances (1 instead of 1) and no more unowned time" in cooperative


def test_there_are_no_remarks_without_eager() -> None:
    assert remarks(shown(restarted("static"), restarted("cooperative"))) == []
