"""How long an uninvolved client waited, before each change and during it: drawn, and as a table."""

from __future__ import annotations

import re

from comparison.pipeline.analysis import compose
from comparison.report.sections.bystanders import waited as shown
from comparison.results.run import Bystander
from tests.support.runs.results import every_design, herd, run, waited


def panels(*bystanders: Bystander) -> list:
    return shown(compose([run("herd", bystanders=list(bystanders))]).runs)


def test_each_operation_has_a_pair_of_each_change_of_each_design() -> None:
    get, set_ = shown(herd().runs)
    assert (get.op, set_.op) == ("get", "set")
    picture = str(get.picture)
    hints = re.findall(r"<circle[^>]*><title>([^<]*)</title>", picture)
    assert len(hints) == 2 * 4 * 2
    assert hints[0] == "zookeeper, N=3, before: median 0.50 ms, p99 5 ms"
    assert "zookeeper, N=21, during: median 6.50 ms, p99 65 ms" in hints
    assert picture.index(">zookeeper</text>") < picture.index(">eager</text>")


def test_longer_waits_are_drawn_higher() -> None:
    picture = str(shown(herd().runs)[0].picture)
    ys = {hint: float(y) for y, hint in re.findall(r'cy="([\d.]+)"[^>]*><title>([^<]*), \w+: median', picture)}
    assert ys["zookeeper, N=21"] < ys["zookeeper, N=3"] < ys["eager, N=3"]


def test_table_says_the_same_with_the_numbers_of_answers() -> None:
    get = shown(herd().runs)[0]
    assert len({len(row) for row in (get.headings, *get.rows)}) == 1
    assert get.rows[0] == [
        "join to 3", "zookeeper", "0.50", "5", "10", "50", "2", "20", "40", "50", "2"
    ]  # fmt: skip
    assert get.remark == "With fewer than 100 answers (16 of 16 stages) the 99th percentile is the maximum."


def test_changes_without_a_stage_before_them_are_left_out() -> None:
    assert panels(waited(stage="during")) == []
    (get,) = panels(waited(), waited(stage="during", change="grow", round=2))
    assert [row[:2] for row in get.rows] == [["join to 3", "zookeeper"]]
    assert get.rows[0][6:10] == ["-", "-", "-", "-"]


def test_operations_that_were_never_answered_have_a_table_and_no_picture() -> None:
    (get,) = panels(waited(None, answered=0, failed=3), waited(None, answered=0, failed=4, stage="during"))
    assert get.picture is None
    assert get.rows[0][2:] == ["-", "-", "-", "0", "-", "-", "-", "0", "7"]


def test_other_scenarios_have_no_bystander() -> None:
    assert shown(every_design().runs) == []
