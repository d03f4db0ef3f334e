"""Figures of live runs in the docs: as recorded, complete, and where the models predict them, as these say."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING

import pytest

from comparison.pipeline.figures.group_model import GroupSetting, predict
from comparison.results.outcomes import VerdictOutcome
from docs.generators.pages import DOCS
from docs.generators.result_records import COMMANDS, REPEATS, CaseRecord, case_records, read_records
from docs.generators.results_page import TABLES, Column, reads_of_a_join, shown
from kernel.designs import COORDINATED, DESIGN_NAMES
from tests.support.runs.results import change, counted, run

if TYPE_CHECKING:
    from comparison.results.run import Run

README = DOCS.parent / "README.md"
PARTITIONS, MEMBERS = 12, 4
RECORDS = read_records()


def median(command: str, scenario: str, design: str, figure: str) -> float:
    spread = RECORDS[command].case(scenario, design).spread(figure)
    assert spread is not None, (scenario, design, figure)
    return spread.median


def highest(command: str, scenario: str, design: str, figure: str) -> float:
    spread = RECORDS[command].case(scenario, design).spread(figure)
    assert spread is not None, (scenario, design, figure)
    return spread.high


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_was_repeated_and_went_as_expected(name: str) -> None:
    record = RECORDS[name]
    assert record.command.split() == ["rebalance-lab", *COMMANDS[name]]
    for case in record.cases:
        assert case.seeds == [*range(1, REPEATS + 1)]
        assert set(case.verdicts) == {VerdictOutcome.EXPECTED}, (case.scenario, case.design)


def test_tables_have_a_row_for_each_scenario_and_design_and_a_figure_in_every_cell() -> None:
    for _, command, scenarios, columns in TABLES.values():
        for scenario in scenarios:
            cases = [RECORDS[command].case(scenario, design) for design in DESIGN_NAMES]
            for column in columns:
                cells = [shown(case, column) for case in cases]
                assert any(cells), (scenario, column.heading)
                assert all(cells) or column.heading.startswith(("JoinGroup", "reads", "longest wait"))


@pytest.mark.parametrize("name", ["join", "leave", "crash"])
@pytest.mark.parametrize("design", COORDINATED)
def test_costs_of_a_change_equal_the_models(design: str, name: str) -> None:
    members, released = (MEMBERS + 1, None) if name == "join" else (MEMBERS - 1, PARTITIONS // MEMBERS)
    predicted = predict(design, name, GroupSetting(members=members, partitions=PARTITIONS, released=released))
    assert {"generations", "stopped"} <= set(predicted)
    case = RECORDS["changes"].case(name, design)
    for what, prediction in predicted.items():
        figure = "rounds" if what == "generations" else what
        if f"{name}: {figure}" in case.figures:
            assert set(case.figures[f"{name}: {figure}"]) == {prediction.count}, what


def test_costs_of_a_rolling_restart_equal_librdkafkas_on_kafka() -> None:
    """`make bench` and `tests/originals` compare the same counts with the real ones."""

    def values(design: str, figure: str) -> list[float | None]:
        return RECORDS["rolling-restart"].case("rolling-restart", design).figures[f"restart: {figure}"]

    for design, counts in (("eager", (10, 108, 46)), ("static", (0, 0, 0))):
        assert [set(values(design, figure)) for figure in ("rounds", "stopped", "moved")] == [{each} for each in counts]
    for design in ("cooperative", "consumer"):
        assert set(values(design, "stopped")) == {10}
        assert set(values(design, "moved")) <= {*range(20, 26)}  # 22 and 23 with librdkafka; by random ids
    assert min(filter(None, values("cooperative", "rounds"))) >= 15  # one more for each late SyncGroup
    assert set(values("consumer", "rounds")) == {10}


def test_time_without_an_owner_in_a_rolling_restart_is_as_the_page_says() -> None:
    """Of designs that are called longer or shorter the ranges have nothing in common."""
    unowned = {
        design: RECORDS["rolling-restart"].case("rolling-restart", design).spread("restart: unowned_partition_s")
        for design in ("eager", "cooperative", "delayed", "consumer")
    }
    eager, cooperative, delayed, consumer = (each for each in unowned.values() if each is not None)
    assert max(eager.high, consumer.high) < cooperative.low
    assert cooperative.high < delayed.low


def test_only_members_that_stop_everything_stall() -> None:
    stalled = {design: highest("slow-member", "slow-member", design, "stalled_s") for design in DESIGN_NAMES}
    assert {design for design, seconds in stalled.items() if seconds > 1} == {"eager", "static"}


def test_no_coordinator_accepts_a_stale_commit_or_loses_its_group() -> None:
    for scenario in ("pause", "split-brain"):
        for design in COORDINATED:
            figures = RECORDS["faults"].case(scenario, design).figures
            for figure in ("stale_writes", "old_accepted", "moved_back"):
                assert set(figures[figure]) == {0}, (scenario, design, figure)
            pairs = zip(figures["fenced"], figures["refused"], strict=True)
            assert all(fenced and fenced <= (refused or 0) for fenced, refused in pairs), (scenario, design)
    for design in DESIGN_NAMES:
        case = RECORDS["faults"].case("coordinator-failover", design)
        assert {*case.figures["failover: rounds"], *case.figures["moved_back"]} == {0}


def test_figures_of_the_readme_are_medians_of_the_records() -> None:
    """And each has its unit beside it."""
    text = " ".join(README.read_text(encoding="utf-8").split())
    found = text[text.index("## What was found") : text.index("## Where to go")]

    def restarts(design: str, figure: str) -> str:
        return f"{median('rolling-restart', 'rolling-restart', design, f'restart: {figure}'):.{int('_s' in figure)}f}"

    def fault(figure: str, digits: int = 0) -> str:
        return f"{median('faults', 'split-brain', 'zookeeper', figure):.{digits}f}"

    (day,) = {record.date for record in RECORDS.values()}
    figures = (
        f"runs of {date.fromisoformat(day):%-d %B %Y}",
        f"{reads_of_a_join(21)} reads of ZooKeeper",
        f"up to {highest('compare', 'herd', 'zookeeper', 'join to 21: zk_reads'):.0f}",
        f"{fault('two_delivering_partition_s', 1)} partition-seconds",
        f"{fault('stale_writes')} of its offset writes",
        f"{fault('moved_back')} committed offsets",
        f"{restarts('eager', 'stopped')} interruptions",
        f"{restarts('cooperative', 'stopped')} in `cooperative`",
        f"{restarts('eager', 'unowned_partition_s')} partition-seconds in `eager`",
        f"{restarts('cooperative', 'unowned_partition_s')} in `cooperative`",
        f"{median('slow-member', 'slow-member', 'eager', 'stalled_s'):.1f} s",
        f"any of {sum(len(case.seeds) for record in RECORDS.values() for case in record.cases)} runs",
        "27 weaknesses",
    )
    assert [each for each in figures if each not in found] == []
    number = re.compile(r"(?<![\w.-])\d[\d.,]*\d(?![\w-])|(?<![\w.-])\d(?![\w.-])")
    assert {*number.findall(found)} == {*number.findall(" ".join(figures))}


# -- the figures by themselves -----------------------------------------------------------------------------------------


def test_changes_of_one_name_are_added_up_and_the_slowest_says_when_they_settled() -> None:
    restarts = [
        change("restart", round=1, stopped=9, converge_ms=1500.0, requests={"JoinGroup": 2}),
        change("restart", round=2, stopped=12, converge_ms=2500.0, requests={"JoinGroup": 3}),
    ]
    (case,) = case_records([run("rolling-restart", "eager", changes=restarts)])
    assert case.figures["restart: stopped"] == [21]
    assert case.figures["restart: JoinGroup"] == [5]
    assert case.figures["restart: converge_ms"] == [2500.0]


def test_joins_of_a_herd_are_told_apart_by_the_size_of_the_group() -> None:
    changes = [change("join", members=3, zk_reads=82), change("join", members=6, zk_reads=157)]
    (case,) = case_records([run("herd", "zookeeper", changes=changes)])
    assert (case.figures["join to 3: zk_reads"], case.figures["join to 6: zk_reads"]) == ([82], [157])


def test_a_cell_has_the_median_and_the_range_if_there_is_one() -> None:
    figures = {"a_ms": [1500.0, 900.0, 2100.0], "b": [3.0, 3.0, 3.0], "c": [0.0, 0.0, 0.0], "d": [None, None, None]}
    case = CaseRecord(scenario="join", design="eager", seeds=[1, 2, 3], verdicts=[], figures=figures)
    assert shown(case, Column("", ("a_ms",), 1000, 1)) == "1.5 (0.9–2.1)"
    assert [shown(case, Column("", (each,))) for each in "bcd"] == ["3", "0", ""]
    assert shown(case, Column("", ("b", "c", "b"))) == "3 + 3"


def test_runs_are_recorded_by_seed_with_what_the_coordinator_reads() -> None:
    def made(seed: int, reads: int) -> Run:
        exact = [counted("coordinator reads", reads, reads)]
        return run("join", "server", changes=[change("join", counted=exact)], seed=seed)

    (case,) = case_records([made(2, 4), made(1, 3)])
    assert case.seeds == [1, 2]
    assert case.figures["join: coordinator reads"] == [3, 4]
