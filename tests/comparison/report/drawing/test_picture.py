"""A picture is one file of its own: well-formed, with its styles, and room for its names."""

from __future__ import annotations

from xml.etree import ElementTree

from comparison.report.drawing.picture import WIDTH, picture
from comparison.report.drawing.scale import Scale
from comparison.report.view.model import Holding, Phase
from tests.comparison.report.drawing.test_lanes import SPLIT, lane, view

SVG = "{http://www.w3.org/2000/svg}"


def texts(shown: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(shown).iter(f"{SVG}text")]


def test_picture_is_whole_by_itself() -> None:
    shown = picture(view(SPLIT), Scale(0, 0, 10_000), "a <title>")
    assert "var(" not in shown
    assert "@media" not in shown
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
