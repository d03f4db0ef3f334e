"""How the cost of a join grows: drawn on two logarithmic axes, said in words, and as a table."""

from __future__ import annotations

from comparison.pipeline.analysis import compose
from comparison.report.sections.growth import grown
from tests.support.runs.results import every_design, herd, joins


def test_each_figure_has_a_line_a_design_with_the_model_dashed_over_it() -> None:
    found = grown("herd", herd())
    assert found is not None
    operations, notifications = found.panels
    assert operations.title == "ZooKeeper operations and group requests of one join"
    assert str(operations.picture).count('class="model"') == 2
    assert [
        name for name in ("zookeeper", "eager") if f">{name}</text>" in str(operations.picture)
    ] == operations.designs
    assert str(notifications.picture).count('class="model"') == 1
    assert ">N: members after the join</text>" in str(operations.picture)


def test_exponents_have_their_interval_and_figures_that_are_0_are_named() -> None:
    found = grown("herd", herd())
    assert found is not None
    operations, notifications = found.panels
    assert operations.fits == [
        "zookeeper: 4.0 times per doubling of N (N^2.00; 95%: 2.00 to 2.00; 4 points)",
        "eager: 2.0 times per doubling of N (N^1.00; 95%: 1.00 to 1.00; 4 points)",
    ]
    assert notifications.fits == ["zookeeper: 2.3 times per doubling of N (N^1.18; 95%: 1.00 to 1.36; 4 points)"]
    assert notifications.remarks == ["No notifications in eager: 0 has no logarithm."]
    assert found.remark.startswith("An interval of 4 points is wide")


def test_table_has_every_size_with_the_model_beside_it() -> None:
    found = grown("herd", herd())
    assert found is not None
    rows = dict(found.panels[0].rows)
    assert list(rows) == ["3", "6", "11", "21"]
    assert rows["21"] == [("441", ["", "model: 441"]), ("42", ["", "model: 42"])]
    assert dict(found.panels[1].rows)["3"] == [("2", ["", "model: 2"]), ("0", ["", "no prediction"])]


def test_repeats_have_a_range_and_more_points() -> None:
    found = grown("herd", compose([joins(seed=1, path="a"), joins(seed=2, path="b", more=4)]))
    assert found is not None
    assert found.panels[0].fits[0].endswith("8 points of 2 runs)")
    assert dict(found.panels[0].rows)["3"] == [("11", ["9-13", "model: 9"])]
    assert found.remark == ""


def test_two_sizes_have_no_interval() -> None:
    found = grown("herd", compose([joins(sizes=(3, 6))]))
    assert found is not None
    assert found.panels[0].fits == ["zookeeper: 4.0 times per doubling of N (N^2.00; 2 points: no interval)"]
    assert found.remark.startswith("2 points have no interval")


def test_design_that_was_counted_at_one_size_less_has_a_dash_there() -> None:
    found = grown("herd", compose([joins(), joins("eager", sizes=(3, 6, 11))]))
    assert found is not None
    assert dict(found.panels[0].rows)["21"][1] == ("-", ["not counted"])


def test_scenario_without_several_sizes_does_not_grow() -> None:
    assert grown("rolling-restart", every_design()) is None
