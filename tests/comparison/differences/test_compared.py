"""Two results compared, by what has to hold of any two: nothing differs from itself, and both directions agree."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comparison.differences.bounds import bounds_of
from comparison.differences.compared import Difference, Side, compared
from comparison.differences.figures import Differs, by_chance, difference
from comparison.differences.places import Place
from comparison.pipeline.analysis import compose
from comparison.results.outcomes import Kind, VerdictOutcome
from comparison.results.result import Spread
from comparison.results.run import Run, Verdict
from tests.support.properties import examples
from tests.support.runs.results import run

EXPECTED, UNKNOWN, NOT_EXPECTED = VerdictOutcome.EXPECTED, VerdictOutcome.UNKNOWN, VerdictOutcome.NOT_EXPECTED
#: A draw of each run, an exact count, a total, and one of which more is not worse.
NAMES = ("converge_ms", "stopped", "lost", "heartbeats")
JOIN = Place("join", "eager")


def repeats(name: str, values: list[float | None], **others: Any) -> list[Run]:
    """Runs that differ in their seed and this figure."""
    return [
        run("join", "eager", path=f"/{seed}", seed=seed, **{name: value}, **others)
        for seed, value in enumerate(values, 1)
    ]


def side(name: str, runs: list[Run], **command: Any) -> Side:
    moved = [msgspec.structs.replace(each, path=f"/{name}{each.path}") for each in runs]
    return Side(name, f"/{name}", compose(moved), [command], {})


def differing(before: list[Run], after: list[Run], *bounds: str) -> Difference:
    return compared(side("before", before), side("after", after), bounds_of(bounds))


def test_a_command_that_several_folders_of_a_side_have_is_shown_once() -> None:
    runs, commands = repeats("stopped", [1.0]), [{"command": ["run", "join"]}, {}, {"command": ["run", "join"]}]
    before, after = (side(name, runs) for name in ("before", "after"))
    found = compared(before._replace(commands=[*commands, {"command": ["compare"]}]), after, bounds_of(()))
    assert found.before.commands == [["run", "join"], ["compare"]]


values = st.lists(st.one_of(st.none(), st.integers(0, 50).map(float)), min_size=1, max_size=6)
sides = st.tuples(st.sampled_from(NAMES), values, values)


@settings(max_examples=examples(60))
@given(st.sampled_from(NAMES), values)
def test_nothing_differs_from_itself(name: str, figures: list[float | None]) -> None:
    runs = repeats(name, figures)
    found = differing(runs, runs, "0%")
    assert found.circumstances == []
    assert found.worse == []
    assert {each.differs for pair in found.pairs for each in pair.figures} == {Differs.NO}
    assert all(pair.verdicts == [] for pair in found.pairs)


@settings(max_examples=examples(60))
@given(sides)
def test_the_other_way_round_the_same_differs_the_other_way(sides: tuple[str, list[float], list[float]]) -> None:
    name, first, second = sides
    there, back = (
        differing(repeats(name, first), repeats(name, second)),
        differing(repeats(name, second), repeats(name, first)),
    )
    for one, other in zip(there.pairs[0].figures, back.pairs[0].figures, strict=True):
        assert (one.figure, one.before, one.after, one.differs) == (
            other.figure,
            other.after,
            other.before,
            other.differs,
        )
        assert not (one.rises and other.rises)
    assert [(each.what, each.before, each.after) for each in there.circumstances] == [
        (each.what, each.after, each.before) for each in back.circumstances
    ]


@settings(max_examples=examples(60))
@given(sides, st.lists(st.integers(0, 300), min_size=2, max_size=2).map(sorted), st.sampled_from(["", "%"]))
def test_what_a_bound_lets_pass_a_wider_one_lets_pass(
    sides: tuple[str, list[float], list[float]], widths: list[int], unit: str
) -> None:
    name, first, second = sides
    narrow, wide = (differing(repeats(name, first), repeats(name, second), f"{name}={width}{unit}") for width in widths)
    assert {each.what for each in wide.worse} <= {each.what for each in narrow.worse}
    assert {each.what for each in wide.unknown} <= {each.what for each in narrow.unknown}


def spread(*numbers: float) -> Spread | None:
    return Spread.of(numbers)


@pytest.mark.parametrize(
    ("name", "before", "after", "differs"),
    [
        ("converge_ms", spread(1, 2, 3), spread(4, 5, 6), Differs.YES),
        ("converge_ms", spread(1, 2, 4), spread(4, 5, 6), Differs.NO),
        ("converge_ms", spread(1, 2), spread(4, 5, 6), Differs.MAYBE),
        ("converge_ms", spread(1), spread(1), Differs.NO),
        ("stopped", spread(12), spread(13), Differs.YES),
        ("lost", spread(0), spread(1), Differs.MAYBE),
        ("lost", spread(0, 0, 0), spread(1, 1, 2), Differs.YES),
        ("lost", spread(0), spread(), Differs.UNKNOWN),
    ],
)
def test_a_figure_differs_where_its_ranges_have_nothing_in_common(
    name: str, before: Spread | None, after: Spread | None, differs: Differs
) -> None:
    assert difference(name, before, after).differs is differs


def test_how_often_chance_parts_two_ranges_is_counted_by_orders() -> None:
    assert [by_chance(n, n) for n in (1, 2, 3, 5)] == [1, 3, 10, 126]


def verdicts(*outcomes: VerdictOutcome) -> list[Run]:
    check = {"check": "counts", "kind": Kind.MODEL, "reason": ""}
    return [
        run("join", "eager", path=f"/{seed}", seed=seed, verdicts=[Verdict(**check, outcome=outcome)])
        for seed, outcome in enumerate(outcomes, 1)
    ]


@pytest.mark.parametrize(
    ("before", "after", "worse", "unknown"),
    [
        ([EXPECTED], [NOT_EXPECTED], 1, 0),
        ([EXPECTED, EXPECTED], [EXPECTED, NOT_EXPECTED], 1, 0),
        ([UNKNOWN], [NOT_EXPECTED], 1, 0),
        ([EXPECTED], [UNKNOWN], 0, 1),
        ([NOT_EXPECTED], [EXPECTED], 0, 0),
        ([NOT_EXPECTED], [UNKNOWN], 0, 0),
    ],
)
def test_verdicts_that_became_worse_count(
    before: list[VerdictOutcome], after: list[VerdictOutcome], worse: int, unknown: int
) -> None:
    found = differing(verdicts(*before), verdicts(*after), "20%")
    assert (len(found.worse), len(found.unknown)) == (worse, unknown)
    assert len(found.pairs[0].verdicts) == 1


def test_a_promise_that_is_broken_counts_by_a_single_run() -> None:
    found = differing(repeats("lost", [0.0]), repeats("lost", [3.0]), "20%")
    assert [each.what for each in found.worse] == ["every record is delivered"]
    assert (found.pairs[0].promises[0].before, found.pairs[0].promises[0].after) == ("kept", "broken")
    assert differing(repeats("lost", [3.0]), repeats("lost", [0.0]), "20%").worse == []


def test_a_fault_of_history_that_is_not_seen_any_more_is_not_worse() -> None:
    seen, gone = (
        [run("join", verdicts=[Verdict(check="two owners", kind=Kind.HISTORY, outcome=outcome, reason="")])]
        for outcome in (EXPECTED, NOT_EXPECTED)
    )
    found = differing(seen, gone, "20%")
    assert found.worse == []
    assert [each.check for each in found.pairs[0].verdicts] == ["two owners"]


def test_the_bound_of_all_figures_leaves_out_those_of_which_more_is_not_worse() -> None:
    before, after = repeats("heartbeats", [1.0] * 3), repeats("heartbeats", [9.0] * 3)
    assert differing(before, after, "0%").worse == []
    assert [each.what for each in differing(before, after, "0%", "heartbeats=1").worse] == ["heartbeats"]


def test_a_rise_that_may_be_chance_and_what_was_not_run_or_measured_cannot_be_known() -> None:
    found = differing(repeats("converge_ms", [100.0]), repeats("converge_ms", [900.0]), "20%")
    assert (found.worse, [each.what for each in found.unknown]) == ([], ["converge_ms"])
    found = differing(repeats("stopped", [0.0]), repeats("stopped", [None]), "stopped=0")
    assert [each.why for each in found.unknown] == ["was not measured after"]
    both = [*repeats("lost", [0.0]), run("crash", "eager", path="/crash")]
    found = differing(both, repeats("lost", [0.0]), "20%")
    assert [(each.place, each.why) for each in found.unknown] == [(Place("crash", "eager"), "was not run after")]
    assert differing(repeats("lost", [0.0]), both, "20%").unknown == []


def test_circumstances_are_told_with_where_they_differ() -> None:
    def of(session_ms: str, version: str, *, simulated: bool) -> Side:
        settings = {"parameters": {"member_settings": {"session.timeout.ms": session_ms}, "simulated": simulated}}
        plain = {"parameters": {"member_settings": {"session.timeout.ms": "1"}, "simulated": simulated}}
        runs = [run("join", "eager", **settings), run("join", "zookeeper", **plain)]
        return side(version, runs, versions={"rebalance-lab": version}, machine={"cores": 2})

    found = compared(of("3000", "0.1", simulated=True), of("6000", "0.2", simulated=False))
    told = {each.what: (each.before, each.after, each.where) for each in found.circumstances}
    assert told == {
        "clock": ("virtual", "real", []),
        "session.timeout.ms": ("3000", "6000", [JOIN]),
        "rebalance-lab": ("0.1", "0.2", []),
    }
    assert any("simulated" in text for text in found.doubts)
    assert any("may differ by chance" in text for text in found.doubts)
