"""What the page of two results begins with, and of which scenarios it shows both sides beside each other."""

from __future__ import annotations

import pytest

from comparison.differences.bounds import bounds_of
from comparison.differences.compared import Difference, Side, compared
from comparison.pipeline.analysis import compose
from comparison.report.sections.differences import DRAWN_MAX, FEW, differences, drawn
from tests.support.runs.results import run


def two_results(count: int, differing: int, *bounds: str) -> Difference:
    """So many scenarios, of which the last ones stopped more partitions after than before."""

    def side(name: str, more: int) -> Side:
        runs = [
            run(f"s{number:03}", path=f"/{name}/{number}", stopped=12.0 + more * (number >= count - differing))
            for number in range(count)
        ]
        return Side(name, f"/{name}", compose(runs), [], {})

    return compared(side("old", 0), side("new", 1), bounds_of(bounds))


@pytest.mark.parametrize(
    ("count", "differing", "shown"),
    [(FEW, 1, FEW), (FEW + 1, 1, 1), (FEW + 1, 0, FEW), (DRAWN_MAX + 9, DRAWN_MAX + 4, DRAWN_MAX)],
)
def test_of_many_scenarios_those_that_differ_are_shown_beside_each_other(
    count: int, differing: int, shown: int
) -> None:
    found = two_results(count, differing)
    assert len(drawn(found)) == shown
    told = differences(found)
    assert len(told.pairs) == differing
    assert len(told.alike.split("; ")) == count - differing or not told.alike


@pytest.mark.parametrize(
    ("count", "differing", "title"),
    [
        (1, 0, "Old and new: nothing differs"),
        (1, 1, "Old and new: 1 figure differs in s000 in zookeeper: 1 worse"),
        (3, 3, "Old and new: 3 figures differ: 3 worse"),
        (3, 2, "Old and new: 2 figures differ, in 2 of 3 scenarios and designs: 2 worse"),
    ],
)
def test_title_counts_what_differs(count: int, differing: int, title: str) -> None:
    assert differences(two_results(count, differing)).title == title


@pytest.mark.parametrize(
    ("differing", "bounds", "class_", "conclusion"),
    [
        (2, ["5%"], "bad", "Worse than allowed: s001 in zookeeper: partitions stopped (stopped) +8.3% (12 to 13; 5% "),
        (2, ["stopped=1"], "good", "Nothing is worse than allowed (stopped=1)"),
        (0, ["bystander_get_during_p50_ms=0"], "doubt", "Cannot be known: s000 in zookeeper: bystander's get during"),
        (2, [], "good", ""),
    ],
)
def test_page_says_what_is_worse_than_allowed(differing: int, bounds: list[str], class_: str, conclusion: str) -> None:
    found = differences(two_results(3, differing, *bounds))
    assert found.conclusion.startswith(conclusion)
    assert bool(found.conclusion) is bool(bounds)
    assert found.class_ == class_
    assert [len(texts) for _, texts in found.judged] == ([] if class_ == "good" else [2] if class_ == "bad" else [3])
