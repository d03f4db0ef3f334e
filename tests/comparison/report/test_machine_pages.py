"""The page of the state machines and its figures: as the tables that run say, complete, and nothing overlaps."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from coordinator.groups.classic import states as classic_states
from coordinator.groups.consumer import states as consumer_states
from coordinator.groups.consumer.states import ConsumerGroupState, ConsumerMemberState
from coordinator.groups.consumer_records import RegexRecord
from coordinator.groups.server import states as server_states
from coordinator.membership.classic.table import TABLE as CLASSIC_TABLE
from coordinator.membership.consumer.table import TABLE as CONSUMER_TABLE
from coordinator.membership.server.table import TABLE as SERVER_TABLE
from docs.generators import consumer_requests
from docs.generators.machine_layout import Arrow, Box, Course, Node, Point, conflicts, laid_out
from docs.generators.machine_map import laid
from docs.generators.machine_page import PAGE, files
from docs.generators.machine_picture import picture, words
from docs.generators.machines import BETWEEN, CONSUMER_MOVES, machines
from docs.generators.pages import FIGURES
from docs.generators.rebalance_table import ORIGINAL
from docs.generators.requests_by_state import CLASSIC_SHOWN, NO_GROUP, SERVER_SHOWN, classic, server
from tests.support.groups.consumer import World
from tests.support.groups.error_table import REQUESTS
from tests.support.rebalance import world as rebalance_world
from tests.support.rebalance.conversations import FILES, play
from zkconsumer.rebalance.attempt import following
from zkconsumer.rebalance.effects import StepFailed
from zkconsumer.rebalance.machine import step
from zkconsumer.rebalance.state import Rebalance, RebalanceState
from zkconsumer.rebalance.table import table

MACHINES = {machine.name: machine for machine in machines()}
SVG = "{http://www.w3.org/2000/svg}"
#: The request of a row, by how its name begins.
APIS = {
    "join": "JoinGroup",
    "sync": "SyncGroup",
    "heartbeat": "Heartbeat",
    "leave": "LeaveGroup",
    "commit": "OffsetCommit",
    "txn commit": "TxnOffsetCommit",
    "delete group": "DeleteGroups",
    "delete offset": "OffsetDelete",
}


def test_figures_are_those_of_the_tables():
    drawn = {path for pattern in ("machine-*.svg", "map-*.svg") for path in FIGURES.glob(pattern)}
    assert {path for path in files() if path != PAGE} == drawn


# -- the figures are complete ------------------------------------------------------------------------------------------


def moves_of_group(transitions):
    found = {
        (state.value, to.value, trigger.value) for state, row in transitions.items() for trigger, to in row.items()
    }
    return {state.value for state in transitions}, found


def moves_of_member(rows):
    found = {
        (state.name, to.name, f"{event.__name__}: {cell.when[to]}" if len(cell.leads_to) > 1 else event.__name__)
        for state, row in rows.items()
        for event, cell in row.items()
        for to in cell.leads_to
    }
    return {state.name for state in rows}, found


def moves_of_attempt():
    rows = table(ORIGINAL)
    found = {(state.name, to.name, "") for state, step in rows.items() for to in step.jumps}
    found |= {(state.name, following(rows, state).name, "") for state, step in rows.items() if step.goes_on}
    found |= {(state.name, "GIVING_UP", "") for state in rows}
    found |= {(state.name, to.name, reason) for state, moves in BETWEEN.items() for to, reason in moves}
    return {state.name for state in (*rows, *BETWEEN)}, found


EXPECTED = {
    "classic-group": moves_of_group(classic_states.TRANSITIONS),
    "server-group": moves_of_group(server_states.TRANSITIONS),
    "consumer-group": (
        {state.value for state in ConsumerGroupState},
        {(state.value, to.value, reason) for state, moves in CONSUMER_MOVES.items() for to, reason in moves},
    ),
    "consumer-reconciliation": (
        {state.name for state in ConsumerMemberState},
        {
            (state.name, to.name, finding.value)
            for state, row in consumer_states.TRANSITIONS.items()
            for finding, to in row.items()
        },
    ),
    "consumer-member": moves_of_member(CONSUMER_TABLE),
    "classic-member": moves_of_member(CLASSIC_TABLE),
    "server-member": moves_of_member(SERVER_TABLE),
    "zookeeper-rebalance": moves_of_attempt(),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_map_has_every_state_and_every_move_and_nothing_on_anything_else(name):
    """An arrow stands for its reasons; those that are said once are counted."""
    states, moves = EXPECTED[name]
    map_ = laid(MACHINES[name])
    assert set(map_.nodes) == states
    told = Counter(move for each in map_.drawn for move in each.moves)
    assert max(told.values()) == 1
    assert {move[:2] for move in told} == {move[:2] for move in moves if move[0] != move[1]}
    assert {move for move in moves if move[2] and move[0] != move[1]} <= set(told)
    assert map_.conflicts() == []
    for each in map_.drawn:
        says = " ".join(each.lines)
        more = re.search(r" \(\+(\d+)\)$", says)
        reasons = {reason.partition(": ")[0] for *_, reason in each.moves} if not each.arrow.start else each.moves
        named = len(says[: more.start() if more else None].split(", ")) if not each.arrow.start else 1
        assert len(reasons) == named + int(more[1] if more else 0), says


def test_a_label_on_something_else_is_a_conflict():
    nodes = {"A": Node(60, 60, 30, 20), "B": Node(260, 60, 30, 20), "C": Node(160, 60, 30, 20)}
    arrow, size = Arrow("A", "B", 60, 16), Box(0, 0, 320, 120)
    straight = Course(Point(90, 60), Point(160, 60), Point(230, 60), Box(130, 52, 190, 68), (Point(160, 60),), 0)
    assert conflicts(nodes, [arrow], [straight], size) == [
        "the label of A → B on a state, or outside",
        "A → B through C",
    ]
    (around,) = laid_out(nodes, [arrow], size)
    assert conflicts(nodes, [arrow], [around], size) == []
    both = conflicts(nodes, [arrow] * 2, [around] * 2, size)
    assert both.count("A → B through the label of A → B") == 2
    assert both.count("the labels of A → B and of A → B on each other") == 2


def drawn(name):
    return ElementTree.fromstring(picture(MACHINES[name]))


@pytest.mark.parametrize("name", EXPECTED)
def test_figure_has_every_state_once_and_every_move(name):
    states, moves = EXPECTED[name]
    root = drawn(name)
    assert Counter(e.text for e in root.iter(f"{SVG}text") if e.get("class") == "name on") == Counter(states)
    shown = {tuple(e.get("data-move").split()) for e in root.iter() if e.get("data-move")}
    assert shown == {move[:2] for move in moves}


@pytest.mark.parametrize("name", EXPECTED)
def test_figure_says_every_reason_in_its_own_card(name):
    """The texts of a card are those from its name up to the next card's name."""
    _, moves = EXPECTED[name]
    cards: dict[str, str] = {}
    state = ""
    bus = MACHINES[name].bus
    for element in drawn(name).iter(f"{SVG}text"):
        if element.get("class") == "name on":
            state = element.text
        cards[state] = f"{cards.get(state, '')} {element.text}"
    for from_state, to, reason in moves:
        if (reason, to) != bus:
            assert reason in cards[from_state], (from_state, to, reason)
    assert any(bus[0] in text for text in cards.values())


def sources_of(said, others):
    """The states that a cell names; `–` is none."""
    if said == "all others":
        return others
    if said.startswith("all but "):
        return others - set(said.removeprefix("all but ").split(", "))
    return set() if said == "–" else set(said.split(", "))


@pytest.mark.parametrize("name", EXPECTED)
def test_table_and_words_beside_a_figure_have_every_move(name):
    states, moves = EXPECTED[name]
    page = PAGE.read_text(encoding="utf-8")
    table = page.partition(f"machine-{name}.svg)")[2].strip().partition("\n\n")[0]
    rows, to, above = set(), "", ""
    for line in table.splitlines()[2:]:
        first, sources, when = (cell.strip() for cell in line.strip("|").split("|"))
        if first:
            above, to = to, first.split("**")[1]
        for said in when.replace("`", "").split("; "):
            for reason in [said] if ": " in said else said.split(", "):
                rows |= {(state, to, reason) for state in sources_of(sources or above, states - {to})}
    to_others = {move for move in moves if move[0] != move[1]}
    assert {row[:2] for row in rows} == {move[:2] for move in to_others}
    assert {move for move in to_others if move[2] and ("," not in move[2] or ": " in move[2])} <= rows
    said = words(MACHINES[name])
    assert all(f"to {to}" in said for _, to, _ in moves)
    assert f"<title>{MACHINES[name].title}</title>" in picture(MACHINES[name])


# -- requests ----------------------------------------------------------------------------------------------------------


def test_every_request_of_the_error_table_is_on_the_page_in_every_state():
    assert list(classic().rows) == list(REQUESTS)
    states = {NO_GROUP, *(state.value for state in classic_states.GroupState)}
    assert all(set(row) == states for answers in (classic(), server()) for row in answers.rows.values())
    of_consumers = consumer_requests.answers()
    assert all(list(row) == list(consumer_requests.STATES) for row in of_consumers.rows.values())
    page = PAGE.read_text(encoding="utf-8")
    tables = (classic(), server(), of_consumers)
    named = [name for line in page.splitlines() for name in line.partition(" | ")[0].removeprefix("| ").split("; ")]
    assert {request for answers in tables for request in answers.rows} <= set(named)


def test_a_figure_names_a_request_of_every_api_once_in_every_state():
    apis = {next(api for begins, api in APIS.items() if request.startswith(begins)) for request in CLASSIC_SHOWN}
    assert apis == set(APIS.values())
    for answers, machine in ((classic(), MACHINES["classic-group"]), (server(), MACHINES["server-group"])):
        for state in machine.states:
            said = [name for _, names in answers.by_answer(state.name) for name in names.split(", ")]
            assert Counter(said) == Counter(answers.shown.values())
            assert state.facts == answers.by_answer(state.name)
    assert set(SERVER_SHOWN) <= set(server().rows)


def test_answers_are_in_words_and_name_the_next_state():
    rows = classic().rows
    assert rows["sync leader"]["CompletingRebalance"] == "answered → Stable"
    assert rows["join new, v3"]["Stable"] == "waits → PreparingRebalance"
    assert rows["heartbeat"]["PreparingRebalance"] == "REBALANCE_IN_PROGRESS"
    assert rows["leave of all"]["Empty"] == "UNKNOWN_MEMBER_ID"
    assert consumer_requests.answers().rows["heartbeat that leaves"]["Stable"] == "answered → Assigning"
    assert server().rows["AwaitCommand of a member that runs its generation"]["PreparingRebalance"] == "STOP"
    assert server().rows["CommitOwned of another member's partition"]["Stable"] == "PARTITION_NOT_ASSIGNED"


# -- what has no table -------------------------------------------------------------------------------------------------


def test_moves_between_attempts_are_those_of_the_conversations(monkeypatch):
    """Only members without options count; what passes through IDLE within one step is two moves."""
    taken = set()

    def recorded(machine, event):
        after, effects = step(machine, event)
        named = replace(ORIGINAL, group=machine.config.group, consumer_id=machine.config.consumer_id)
        if (
            replace(named, max_retries=machine.config.max_retries, backoff_ms=machine.config.backoff_ms)
            == machine.config
        ):
            taken.add((machine.state, after.state))
        return after, effects

    monkeypatch.setattr(rebalance_world, "step", recorded)
    for script in FILES:
        play(script.read_text(encoding="utf-8"))
    giving_up = Rebalance(config=ORIGINAL, state=RebalanceState.GIVING_UP)
    recorded(giving_up, StepFailed("the session was closed"))
    idle = RebalanceState.IDLE
    said = {(state, to) for state, moves in BETWEEN.items() for to, _ in moves}
    through_idle = {(state, to) for state, first in said if first is idle for from_, to in said if from_ is idle}
    observed = {(state, to) for state, to in taken if state in BETWEEN and state is not to}
    assert observed <= said | through_idle
    assert said <= observed


def settle(world, *members):
    """Each member says what it has, twice."""
    for member in members * 2:
        present = world.group.members[member]
        world.ask(member, present.epoch, owned=present.assigned, instance_id=present.instance_id)


def found(world):
    """The regular expression of b matches another topic now."""
    world.sizes["far"] = 1
    matched = {"f.*": RegexRecord(("foo", "far"), 1, 0)}
    world.step(lambda turn: world.groups.matched("g", matched, turn))


#: Each moves a group to its next state; `static` is the instance id of a member.
WALK = (
    lambda world: world.join("a", "foo"),
    lambda world: world.join("b", "foo"),
    lambda world: world.leave("b"),
    lambda world: world.beat("a"),
    lambda world: world.join("b", "foo"),
    lambda world: settle(world, "a", "b"),
    lambda world: world.leave("b"),
    lambda world: world.join("b", topic_regex="f.*"),
    lambda world: settle(world, "a", "b"),
    found,
    lambda world: world.beat("a"),
    lambda world: world.leave("b"),
    lambda world: world.leave("a"),
    lambda world: world.step(lambda turn: world.groups.delete("g", None, turn)),
    lambda world: world.join("a", "foo"),
    lambda world: world.leave("a"),
    lambda world: world.join("s", "foo", instance_id="static"),
    lambda world: world.ask("s", -2, instance_id="static"),
    lambda world: world.advance(world.settings.session_timeout_ms),
)


def test_moves_of_a_consumer_group_are_those_that_it_makes():
    world = World({"foo": 6})
    seen = ["Dead"]
    for happens in WALK:
        happens(world)
        group = world.groups.find("g")
        seen.append("Dead" if group is None else group.state.value)
    said = {(state.value, to.value) for state, moves in CONSUMER_MOVES.items() for to, _ in moves}
    assert set(pairwise(seen)) == said


# -- as a reader sees them ---------------------------------------------------------------------------------------------


def test_a_figure_changes_its_colours_with_the_theme():
    text = picture(MACHINES["classic-group"])
    light, dark = text.split("@media (prefers-color-scheme: dark)")
    named = [set(re.findall(r"\.([a-z]+) \{", part)) for part in (light, dark)]
    assert {"paper", "card", "faint", "good", "bad", "ink"} <= named[0] & named[1]
