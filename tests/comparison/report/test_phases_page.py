"""The page of the four phases: as the recorded conversations say, in the order that the machines allow."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from coordinator.groups.classic.states import TRANSITIONS as CLASSIC_STATES
from coordinator.groups.server.states import TRANSITIONS as SERVER_STATES
from docs.generators.machines import CONSUMER_MOVES
from docs.generators.phase_picture import picture, rows_of
from docs.generators.phases import (
    COMMAND,
    COORDINATOR,
    FIND,
    HEARTBEAT,
    JOIN,
    LEADER,
    NEW,
    OTHER,
    PHASES,
    SYNC,
    WORK,
    conversations,
    record,
)
from docs.generators.phases_page import DRAWN, PAGE, sent
from kernel.designs import CLASSIC, CONSUMER, COORDINATED, DESIGN_NAMES, SERVER, ZOOKEEPER

RECORDED = conversations()
SVG = "{http://www.w3.org/2000/svg}"


def test_phases_page_has_the_command_that_records():
    assert COMMAND in PAGE.read_text(encoding="utf-8")


def phases_of(design: str, who: str) -> list[int]:
    """The phases that somebody went through, in order."""
    went = [each.phase for each in RECORDED[design] if each.who == who and each.kind != "note" and each.phase]
    return [phase for place, phase in enumerate(went) if not place or went[place - 1] != phase]


@pytest.mark.parametrize("design", CLASSIC)
def test_a_member_that_joins_a_classic_group_goes_through_four_phases(design):
    assert phases_of(design, NEW)[:4] == [FIND, JOIN, SYNC, WORK]
    assert phases_of(design, NEW)[-1] == WORK
    rounds = phases_of(design, NEW).count(JOIN)
    assert rounds == (2 if design in ("cooperative", "delayed") else 1)


@pytest.mark.parametrize("design", CLASSIC)
def test_the_leader_is_sent_back_to_phase_two_by_its_heartbeat(design):
    went = phases_of(design, LEADER)
    assert went[:4] == [WORK, JOIN, SYNC, WORK]
    told = next(each.ms for each in RECORDED[design] if each.who == LEADER and each.detail == "REBALANCE_IN_PROGRESS")
    joined = next(each.ms for each in RECORDED[design] if each.who == LEADER and each.what == "JoinGroup")
    assert told < joined


def test_server_members_register_before_they_search_and_zookeeper_members_search_for_nobody():
    assert phases_of(SERVER, NEW) == [JOIN, FIND, SYNC, WORK]
    assert phases_of(ZOOKEEPER, NEW) == [JOIN, SYNC, WORK]
    assert sent(RECORDED[ZOOKEEPER], FIND) == "–"
    assert not any(each.kind == "request" for each in RECORDED[ZOOKEEPER])


def test_members_of_the_consumer_design_send_one_request_in_three_phases_and_no_other_member_joins_again():
    went = phases_of(CONSUMER, NEW)
    assert went == [FIND, JOIN, SYNC, WORK]
    assert phases_of(CONSUMER, OTHER) == [WORK]
    by_phase = {each.phase for each in RECORDED[CONSUMER] if each.what == HEARTBEAT}
    assert by_phase == {JOIN, SYNC, WORK}
    gives_up = next(each.ms for each in RECORDED[CONSUMER] if each.who == OTHER and each.what.startswith("stops"))
    gets = next(each.ms for each in RECORDED[CONSUMER] if each.who == NEW and each.what.startswith("may deliver"))
    assert gives_up < gets


def test_every_design_is_recorded_and_a_heartbeat_is_drawn_before_what_it_moves():
    assert tuple(RECORDED) == DESIGN_NAMES
    rows = rows_of(RECORDED[CONSUMER])
    for number, row in enumerate(rows):
        if row.kind == "state" and rows[number - 1].kind != "state":
            assert rows[number - 1].said == HEARTBEAT


@pytest.mark.parametrize("design", COORDINATED)
def test_recorded_states_follow_each_other_as_the_table_allows(design):
    states = [each.what for each in RECORDED[design] if each.who == COORDINATOR]
    if design == CONSUMER:
        allowed = {(state.value, to.value) for state, moves in CONSUMER_MOVES.items() for to, _ in moves}
    else:
        table = SERVER_STATES if design == SERVER else CLASSIC_STATES
        allowed = {(state.value, to.value) for state, row in table.items() for to in row.values()}
        assert states[0] == "PreparingRebalance"
    assert states[-1] == "Stable"
    assert set(pairwise(states)) <= allowed


@pytest.mark.parametrize("design", DESIGN_NAMES)
def test_figure_of_a_conversation_has_every_row_of_it(design):
    texts = [each.text for each in ElementTree.fromstring(picture(design, RECORDED[design])).iter(f"{SVG}text")]
    for row in rows_of(RECORDED[design]):
        assert row.said in texts
        assert not row.below or row.below in texts
    drawn = {each.what for each in RECORDED[design] if each.kind != "operation"}
    assert all(any(what in text for text in texts) for what in drawn)
    assert all(any(text == f"{phase} {name}" for text in texts) for phase, name in PHASES.items())


def test_drawn_designs_have_a_table_with_every_row():
    page = PAGE.read_text(encoding="utf-8")
    for design in DRAWN:
        table = page.partition(f"](diagrams/figures/phases-{design}.svg)")[2].partition("\n<!-- end -->")[0]
        steps = [line for line in table.splitlines() if line.startswith("| ")][2:]
        times = (re.search(r" x (\d+) \|", line) for line in steps)
        assert sum(int(each[1]) if each else 1 for each in times) == len(RECORDED[design])


def test_a_run_is_recorded_from_its_traces(tmp_path):
    """Times are since the member began; what follows its first commit and belongs to its end is left out."""

    def write(design: str, process: str, *events: dict[str, object]) -> None:
        folder = tmp_path / "join" / design / "trace"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [{"header": {}}, *({"cause": "", "stream": 0, **event} for event in events)]
        (folder / f"{process}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")

    def asked(ms: int, api: str, error: str = "") -> dict[str, object]:
        return {"ns": ms * 1_000_000, "kind": "request_answered", "api": api, "error": error}

    for design in DESIGN_NAMES:
        write(
            design,
            "m5",
            {"ns": 1_000_000_000, "kind": "rebalance_started"},
            asked(1_010, "FindCoordinator"),
            asked(1_020, "Fetch"),
            asked(1_030, "OffsetCommit"),
            asked(1_200, "LeaveGroup"),
        )
        moved = {"kind": "group_changed", "state": "Stable", "generation": 2, "reason": "assignment stored"}
        write(design, "broker-1", {"ns": 1_025_000_000, **moved}, {"ns": 1_040_000_000, **moved})
    assert record(tmp_path)["eager"] == [
        [10.0, NEW, "request", "FindCoordinator", "", FIND],
        [25.0, COORDINATOR, "state", "Stable", "generation 2: assignment stored", 0],
        [30.0, NEW, "request", "OffsetCommit", "", WORK],
    ]
