"""`docs/simulation.md` beside its records: complete, and each difference explained."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from comparison.results.outcomes import VerdictOutcome
from docs.generators.original_records import SCENARIOS as OF_ORIGINALS
from docs.generators.simulation_page import (
    EXPLANATIONS,
    PAGE,
    Difference,
    apart,
    beside,
    differences,
    originals,
    pairs,
)
from docs.generators.simulation_records import (
    DESIGNS,
    LINKS,
    SCENARIOS,
    CaseRecord,
    OriginalRecord,
    Records,
    case_records,
    read_records,
)
from tests.support.runs.cells import CELLS
from tests.support.runs.results import change, counted, run


def test_each_case_is_recorded_live_and_simulated_with_the_same_seeds() -> None:
    recorded = list(pairs(read_records()))

    assert {(live.scenario, live.design) for live, _ in recorded} == {
        (scenario, design) for scenario in SCENARIOS for design in DESIGNS
    }
    for live, simulated in recorded:
        assert live.seeds == simulated.seeds
        assert {*live.verdicts, *simulated.verdicts} == {VerdictOutcome.EXPECTED}


def test_each_difference_is_explained_and_nothing_else_is() -> None:
    assert set(differences(read_records())) == {Difference(*each) for each in EXPLANATIONS}


def test_changes_of_the_originals_cost_what_live_and_simulated_ones_do() -> None:
    records = read_records()

    assert {(each.scenario, each.design) for each in records.originals} == {
        (scenario, design) for scenario in OF_ORIGINALS for design in DESIGNS
    }
    assert apart(records) == []


def test_the_whole_catalogue_was_simulated_as_expected() -> None:
    verdicts = read_records().verdicts

    assert {(name, design) for name, by_design in verdicts.items() for design in by_design} == set(CELLS)
    assert {verdict for by_design in verdicts.values() for verdict in by_design.values()} == {VerdictOutcome.EXPECTED}


def test_the_page_names_the_links_of_its_runs() -> None:
    assert f"--link {LINKS}" in PAGE.read_text(encoding="utf-8")


CASE = CaseRecord(
    scenario="herd",
    design="eager",
    seeds=[1, 2],
    verdicts=["as expected"] * 2,
    counts={"JoinGroup": [3, 3], "moved": [4, 6]},
    predicted={"JoinGroup": [3, 3]},
    settled_ms=[2900, 3100],
)


@pytest.mark.parametrize(
    ("simulated", "figures"),
    [
        (CASE, []),
        (replace(CASE, counts={"JoinGroup": [3, 3], "moved": [6, 6]}, settled_ms=[3000, 5000]), []),
        (replace(CASE, counts={"JoinGroup": [3, 4], "moved": [4, 4]}), ["JoinGroup"]),
        (replace(CASE, counts={"JoinGroup": [3, 3], "moved": [7, 8], "reads": [1, 1]}), ["moved", "reads"]),
        (replace(CASE, settled_ms=[3101, 3200]), ["settled"]),
    ],
)
def test_counts_differ_where_live_ones_repeat_and_ranges_where_they_do_not_meet(
    simulated: CaseRecord, figures: list[str]
) -> None:
    assert [each.figure for each in differences(Records(live=[CASE], simulated=[simulated]))] == figures


def test_a_row_has_what_is_common_once_and_ranges_side_by_side() -> None:
    table = beside(Records(live=[CASE], simulated=[replace(CASE, counts={"JoinGroup": [3, 3], "moved": [5, 5]})]))

    assert table.splitlines()[-1] == (
        "| `herd` | `eager` | JoinGroup 3 (=) | moved – / 4–6 / 5 | – / 2.90–3.10 / 2.90–3.10 |"
    )


def test_originals_stand_beside_the_others_with_what_was_counted_of_them() -> None:
    live = replace(CASE, counts={**CASE.counts, "rebalances": [1, 1]})
    counts = {"JoinGroup": [3, 3], "moved": [5, 7]}
    original = OriginalRecord(scenario="herd", design="eager", of="Kafka", counts=counts, settled_ms=[2500, 2600])
    records = Records(live=[live], simulated=[live], originals=[original])

    assert beside(records).splitlines()[-1] == (
        "| `herd` | `eager` | JoinGroup 3 (=), rebalances 1 | moved 5–7 / 4–6 / 4–6 "
        "| 2.50–2.60 / 2.90–3.10 / 2.90–3.10 |"
    )
    assert originals(records) == "- `eager`: Kafka"
    assert apart(records) == []
    other = replace(original, counts={"JoinGroup": [4, 4]})
    assert apart(replace(records, originals=[other])) == [Difference("herd", "eager", "JoinGroup")]


def test_a_record_adds_up_the_changes_of_each_run() -> None:
    changes = [
        change("join", counted=[counted("JoinGroup", 6, 6)]),
        change("leave", counted=[counted("JoinGroup", 3, 3)]),
    ]

    (case,) = case_records(
        [run("join", "eager", changes=changes, seed=2), run("join", "eager", changes=changes, seed=1)]
    )

    assert case.seeds == [1, 2]
    assert case.counts["JoinGroup"] == [9, 9]
