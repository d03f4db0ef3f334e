"""The guided tours: what they send is valid, and what they name exists."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from comparison.playground import commands, messages
from comparison.playground.web.files import page_files
from kernel.designs import DESIGN_NAMES, DESIGNS

PARTS = {"glance", "counters", "lanes", "members", "coordinator", "znodes", "steps", "feed"}


class Seen(msgspec.Struct, forbid_unknown_fields=True):
    design: str
    condition: str = msgspec.field(name="is")
    say: str
    added: int | str = 0
    later: int = 0
    ms: int = 0
    counters: list[str] = []


class Step(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    say: str
    look: str
    part: str
    label: str = ""
    do: list[commands.AnyCommand] = []
    seen: list[Seen] = []


class Tour(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    title: str
    about: str
    designs: list[str]
    steps: list[Step]


TOURS = msgspec.json.decode(page_files()["tours.json"].content, type=list[Tour])
CONDITIONS = re.findall(r'^  "([\w ]+)": \(', page_files()["conditions.js"].content.decode(), re.MULTILINE)


def test_there_are_six_tours():
    ids = [tour.id for tour in TOURS]
    assert ids == ["herd", "split-brain", "zombie-commit", "stop-the-world", "static-restart", "cooperative"]


@pytest.mark.parametrize("tour", TOURS, ids=[tour.id for tour in TOURS])
def test_everything_that_a_tour_names_exists(tour):
    assert set(tour.designs) <= set(DESIGN_NAMES)
    assert 2 <= len(tour.steps) <= 5
    for step in tour.steps:
        assert step.part in PARTS
        assert bool(step.do) == bool(step.label) == bool(step.seen)
        for command in step.do:
            assert not command.designs
            if isinstance(command, commands.ActOnMember):
                assert command.member == "{m}"
        for each in step.seen:
            assert each.design in tour.designs
            assert each.condition in CONDITIONS
            assert set(each.counters) <= set(messages.Counters.__struct_fields__)
            assert "generation" not in each.condition or DESIGNS[each.design].coordinator


def test_every_condition_is_one_that_a_tour_waits_for():
    assert set(CONDITIONS) == {each.condition for tour in TOURS for step in tour.steps for each in step.seen}


def test_every_tour_acts_on_members_in_states_in_which_they_are():
    """As if each command had its effect at once."""
    after = {"cut": "cut", "heal": "running", "freeze": "frozen", "continue": "running", "leave": "ended"}
    for tour in TOURS:
        state = "running"
        for command in (each for step in tour.steps for each in step.do if isinstance(each, commands.ActOnMember)):
            assert state == {"heal": "cut", "continue": "frozen", "start": "ended"}.get(command.action, "running")
            state = after.get(command.action, "running")


def test_parts_that_are_pointed_at_exist():
    package = Path(commands.__file__).parent / "web"
    sources = "".join(path.read_text() for path in package.glob("*.js"))
    assert all(f'"data-part": "{part}"' in sources for part in PARTS)
