"""A picture is one file of its own: well-formed, with its styles, and room for its names."""

from __future__ import annotations

from xml.etree import ElementTree

from comparison.report.drawing.palette import styles
from comparison.report.drawing.panel import Panel
from comparison.report.drawing.picture import WIDTH, chart_picture, picture
from comparison.report.drawing.records import delivered
from comparison.report.drawing.scale import Scale, scales
from comparison.report.view.model import Holding, Interval, Phase
from tests.comparison.report.drawing.test_lanes import SPLIT, lane, view

SVG = "{http://www.w3.org/2000/svg}"


def texts(shown: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(shown).iter(f"{SVG}text")]


def test_picture_is_whole_by_itself() -> None:
    shown = picture(view(SPLIT), Scale(0, 0, 10_000), "a <title>")
    assert "var(" not in shown
    light, media, dark = shown.partition("@media (prefers-color-scheme: dark) {")
    assert media
    assert ".paper { fill: #ffffff; }" in light
    assert ".paper { fill: #16181b; }" in dark
    assert "a <title>" in texts(shown)
    assert "two deliver: m1 + m2" in texts(shown)


def test_long_names_of_partitions_are_not_cut() -> None:
    name = "a-topic-with-a-rather-long-name-17"
    shown = picture(view(lane(name, named=(Holding(0, 9_000, "m1"),))), Scale(0, 0, 10_000), "x")
    assert name in texts(shown)
    gutter = float(ElementTree.fromstring(shown).find(f"{SVG}svg").attrib["width"])
    assert 6 * len(name) < gutter < WIDTH / 2


def test_legend_of_many_members_takes_several_lines() -> None:
    members = tuple(f"member-{number}" for number in range(24))
    run = view(SPLIT, members=members, places={each: each for each in members}, phases=(Phase(0, 9, "m1", "join"),))
    root = ElementTree.fromstring(picture(run, Scale(0, 0, 10_000), "x"))
    places = {each.text: (float(each.attrib["x"]), float(each.attrib["y"])) for each in root.findall(f"{SVG}text")}
    assert len({places[member] for member in members}) == 24
    assert max(x for x, _ in places.values()) < WIDTH - 60
    assert places["join"][1] > places[members[-1]][1]


def test_chart_is_whole_as_a_file_too() -> None:
    run = view(
        SPLIT,
        design="<eager>",
        course=tuple(
            Interval(100 * n, 100 * n + 100, delivered=9 if n < 20 else 0, duplicates=0, undelivered=1, lag=1)
            for n in range(40)
        ),
    )
    (scale,) = scales([run])
    chart = delivered([Panel(run, scale, styles([run]), 1_000)])
    assert chart is not None
    shown = chart_picture(chart, scale.length_ms)
    assert "var(" not in shown
    assert {"Records over time", "<eager>", "0 to 90", "nothing for 2.0 s", "while a fault lasts"} <= set(texts(shown))
