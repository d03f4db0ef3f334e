"""The group's records over time, as letters and as a picture."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from comparison.pipeline.analysis import compose
from comparison.pipeline.result import Delivery, Run, as_mapping
from comparison.report.throughput import chart, describe_waits, sparkline
from tests.support.results import change, run, slowed

SVG = "{http://www.w3.org/2000/svg}"


def mapped(*runs: Run) -> list[dict]:
    return as_mapping(compose(list(runs)))["runs"]


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


def picture(*runs: Run) -> ElementTree.Element:
    drawn = chart(mapped(*runs))
    assert drawn is not None
    return ElementTree.fromstring(drawn)


def test_picture_has_a_lane_for_each_design_and_says_where_nothing_was_delivered() -> None:
    drawn = picture(slowed("eager"), slowed("cooperative"), run("slow-member", "static"))
    texts = [text.text for text in drawn.iter(f"{SVG}text")]
    assert {"eager", "cooperative"} <= set(texts)
    assert "static" not in texts  # no known deliveries
    assert "4.0 s" in texts
    titles = [title.text for title in drawn.iter(f"{SVG}title")]
    assert titles.count("nothing delivered for 4.0 s") == 1
    assert titles.count("slow") == 4  # a band and a line in each lane


def test_picture_stays_within_its_frame() -> None:
    late = change("cut", members=None, from_ms=5_000.0, healed_ms=90_000.0)
    delivery = Delivery(from_ms=0.0, bin_ms=100.0, records=[5] * 100)
    drawn = picture(run("pause", "eager", changes=[late], delivery=delivery), slowed("eager"))
    _, _, width, height = map(float, drawn.attrib["viewBox"].split())
    for rect in drawn.iter(f"{SVG}rect"):
        x, y, w, h = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + w <= width
        assert 0 <= y <= y + h <= height


def test_no_picture_without_deliveries() -> None:
    assert chart(mapped(run("join", "eager"))) is None
