"""The page's files: all are there, and agree with what they repeat."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from comparison.playground.live.lanes import style_of
from comparison.playground.web.files import TYPES, machines, page_files
from comparison.report.drawing.palette import COLOURS
from coordinator.groups.classic.states import GroupState
from coordinator.groups.consumer.states import ConsumerGroupState
from kernel.designs import COORDINATED, DESIGNS


def text(name):
    return page_files()[name].content.decode()


def test_everything_that_the_page_names_is_served():
    files = page_files()
    named = set(re.findall(r'(?:src|href)="([\w.]+)"', text("")))
    for name in files:
        if name.endswith(".js"):
            named |= set(re.findall(r'from "\./([\w.]+)"', text(name)))
            named |= set(re.findall(r'fetch\("([\w.]+\.json)"\)', text(name)))
    assert named <= files.keys()
    assert {"page.js", "page.css", "lanes.css", "tours.json", "machines.json", "model.js", "painter.js"} <= named


def test_every_file_is_in_the_wheel():
    given = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text())
    patterns = given["tool"]["setuptools"]["package-data"]["*"]
    assert {f"*{suffix}" for suffix in TYPES} <= set(patterns)


def test_nothing_in_the_files_names_another_host():
    svg = "http://www.w3.org/2000/svg"
    for name in page_files():
        assert "//" not in re.sub(r"^\s*//.*$|  // .*$", "", text(name).replace(svg, ""), flags=re.M), name


def test_members_look_as_in_the_report():
    for number, colour in enumerate(COLOURS):
        assert f'<pattern id="k{number}t1"' in text("")
        assert f".k{number} {{ fill: {colour}; }}" in text("lanes.css")
    assert style_of("m9") == f"k{8 % len(COLOURS)} t1"


def test_every_coordinated_design_has_the_moves_of_its_table():
    found = machines()
    assert tuple(found) == COORDINATED
    for design, moves in found.items():
        states = {state.value for state in (ConsumerGroupState if DESIGNS[design].reconciles else GroupState)}
        assert {each for from_, to, _ in moves for each in (from_, to)} == states
    eager = {(from_, to): reasons for from_, to, reasons in found["eager"]}
    assert eager["PreparingRebalance", "CompletingRebalance"] == ["join completed"]


def test_every_move_but_those_to_the_end_has_a_line():
    drawn = set(re.findall(r'"(\w+ \w+)": "M', text("machine.js")))
    moves = {f"{from_} {to}" for each in machines().values() for from_, to, _ in each if to != "Dead"}
    assert drawn == moves
