"""The group's records over time, as letters."""

from __future__ import annotations

import pytest

from comparison.pipeline.analysis import compose
from comparison.report.summaries.throughput import describe_waits, sparkline
from comparison.results.run import Delivery, Run
from tests.support.runs.results import change, run, slowed


def mapped(*runs: Run) -> list[Run]:
    return compose(list(runs)).runs


def test_letters_show_where_nothing_was_delivered() -> None:
    (eager,) = mapped(slowed("eager"))
    assert sparkline(eager, 80) == ("▄" * 20 + "_" * 40 + "▄" * 20, 100.0)
    line, each_ms = sparkline(eager, 16) or ("", 0)
    assert (line, each_ms) == ("▄▄▄▄________▄▄▄▄", 500.0)


def test_burst_after_a_stall_does_not_flatten_the_rest() -> None:
    slow = change("slow", members=None, from_ms=200.0)
    delivery = Delivery(from_ms=0.0, bin_ms=100.0, records=[7, 7, 20, 20, 0, 2_000, 20, 21, 1])
    (eager,) = mapped(run("slow-member", "eager", changes=[slow], delivery=delivery))
    assert sparkline(eager, 80) == ("▄▄_█▄▅▁", 100.0)


@pytest.mark.parametrize(
    "given",
    [
        {"changes": [change("slow", members=None)]},
        {"delivery": Delivery(from_ms=0.0, bin_ms=100.0, records=[1])},
        {
            "changes": [change("slow", members=None, from_ms=900.0)],
            "delivery": Delivery(from_ms=0.0, bin_ms=100.0, records=[1]),
        },
    ],
)
def test_nothing_is_drawn_without_deliveries(given: dict) -> None:
    (eager,) = mapped(run("slow-member", "eager", **given))
    assert sparkline(eager, 80) is None


def test_words_say_who_waited_for_whom() -> None:
    eager, zookeeper, quiet = mapped(slowed("eager"), slowed("zookeeper"), run("slow-member", "eager"))
    assert describe_waits(eager) == "m2 is slow; 3 members waited 5.0 s for m2; nothing delivered for 4.80 s"
    assert describe_waits(zookeeper) == "m2 is slow; no member waited; nothing delivered for 0 s"
    assert describe_waits(quiet) == "no member was slowed down; nothing delivered for 0 s"
