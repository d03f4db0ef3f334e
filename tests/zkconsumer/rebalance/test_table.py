"""The table itself: complete, in the specification's order, and documented."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import zkconsumer.rebalance.state
from docs.generators.rebalance_table import OPTIONS as OPTION_CONFIGS
from kernel.trace.events import PHASES
from tests.support.rebalance.conversations import FILES, play
from zkconsumer.rebalance import attempt
from zkconsumer.rebalance.attempt import following
from zkconsumer.rebalance.config import RebalanceConfig
from zkconsumer.rebalance.effects import Performed
from zkconsumer.rebalance.machine import is_busy, step
from zkconsumer.rebalance.state import Rebalance, RebalanceState
from zkconsumer.rebalance.steps import Jump
from zkconsumer.rebalance.table import table

ORIGINAL = RebalanceConfig(group="g", consumer_id="g_c")
BETWEEN_ATTEMPTS = {
    RebalanceState.IDLE,
    RebalanceState.GIVING_UP,
    RebalanceState.BACKING_OFF,
    RebalanceState.LOOKING,
    RebalanceState.PAUSING,
    RebalanceState.RESUMING,
    RebalanceState.CLOSING,
    RebalanceState.CLOSING_SESSION,
    RebalanceState.CLOSED,
}

#: Each option that changes the table: the rows that it adds, removes, and replaces.
OPTIONS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"strategy": "roundrobin-0.8.2"}, "", "", ""),
    ({"release": "1.1"}, "LISTING_MEMBERS READING_GROUP_TOPICS CHECKING_ROOT", "READING_TOPICS", ""),
    ({"strategy": "roundrobin-1.1"}, "LISTING_MEMBERS READING_GROUP_TOPICS", "READING_TOPICS", ""),
    ({"listener_in_attempt": True}, "NOTIFYING_REVOKED NOTIFYING_ASSIGNED", "", "STARTING"),
    ({"sync_before_reads": True}, "SYNCING SYNCING_AGAIN", "", ""),
    ({"checked_release": True}, "RELEASING_CHECKED ROLLING_BACK_CHECKED", "", "RELEASING ROLLING_BACK"),
    ({"checked_claim": True}, "", "", "CHECKING_CLAIM"),
    ({"skip_unreadable_members": True}, "", "", "READING_MEMBERS DECIDING"),
    ({"fence_epochs": True}, "BUMPING_EPOCH MAKING_EPOCH", "", ""),
    ({"offsets_from": frozenset({"kafka"})}, "READING_KAFKA_OFFSETS", "READING_OFFSETS", ""),
    ({"offsets_from": frozenset({"kafka", "zookeeper"})}, "READING_KAFKA_OFFSETS", "", ""),
    ({"claim_before_offsets": True}, "", "", "READING_OFFSETS CHECKING_SHUTDOWN"),
    ({"stop_on_disconnect": True, "retry_when_free": True, "quiet_ms": 9, "retry_while_closing": False}, "", "", ""),
]
#: Options that change decisions, but not the table.
UNCHANGING = {"stop_on_disconnect", "retry_when_free", "quiet_ms", "retry_while_closing"}
EVERYTHING = [ORIGINAL, *(replace(ORIGINAL, **options) for options, *_ in OPTIONS)]


def rows_by_state():
    return {state: row for config in EVERYTHING for state, row in table(config).items()}


def test_every_state_is_in_a_table_or_between_attempts():
    assert set(RebalanceState) == set(rows_by_state()) | BETWEEN_ATTEMPTS
    assert not set(rows_by_state()) & BETWEEN_ATTEMPTS


def numbers(config):
    return [int(re.match(r"R(\d+)", row.number).group(1)) for row in table(config).values()]


@pytest.mark.parametrize("config", EVERYTHING)
def test_rows_are_in_the_order_of_the_specification_and_name_a_phase_of_the_trace(config):
    in_order = numbers(config) == sorted(numbers(config))
    assert in_order is not config.claim_before_offsets
    phases = [row.phase for row in table(config).values()]
    assert set(phases) <= set(PHASES)
    assert [PHASES.index(phase) for phase in phases] == sorted(PHASES.index(phase) for phase in phases)


@pytest.mark.parametrize(("options", "put_in", "left_out", "replaced"), OPTIONS)
def test_an_option_changes_only_its_own_rows(options, put_in, left_out, replaced):
    original, changed = table(ORIGINAL), table(replace(ORIGINAL, **options))
    assert {state.name for state in changed if state not in original} == set(put_in.split())
    assert {state.name for state in original if state not in changed} == set(left_out.split())
    different = {state.name for state in original if state in changed and original[state] != changed[state]}
    if options in ({"strategy": "roundrobin-1.1"}, {"release": "1.1"}):
        assert different == {"READING_MEMBERS"}
        assert changed[RebalanceState.READING_MEMBERS].leave is original[RebalanceState.READING_MEMBERS].leave
    else:
        assert different == set(replaced.split())


def test_claiming_before_the_offsets_only_reorders_rows():
    changed = list(table(replace(ORIGINAL, claim_before_offsets=True)))
    assert (
        changed.index(RebalanceState.CLAIMING)
        < changed.index(RebalanceState.READING_OFFSETS)
        < changed.index(RebalanceState.STARTING)
    )
    assert set(changed) == set(table(ORIGINAL))


def test_table_without_options_is_the_originals():
    assert [f"{row.number} {row.requests}".strip() for row in table(ORIGINAL).values()] == [
        "R1 getChildren /brokers/ids",
        "R1 getData x B",
        "R2 getData ids/me",
        "R2 getChildren /brokers/topics, with a pattern",
        "R3 getChildren /brokers/ids",
        "R3 getData x B",
        "R3a exists, getChildren /brokers/ids, when there is no broker",
        "R4 setData for each changed offset",
        "R5 delete x k",
        "R6 getData ids/me",
        "R6 getChildren /brokers/topics, with a pattern",
        "R6 getData topics/t x T, getChildren ids",
        "R6 getData ids/x x N, each pattern's getChildren /brokers/topics after it, getChildren ids",
        "R7",
        "R8 getData offsets/t/p x k'",
        "R9",
        "R11 create owners/t/p, one after the other",
        "R11 getData owners/t/p of a conflict",
        "R11",
        "R11 delete x claimed, after a conflict",
        "R12",
        "R12",
        "R12",
    ]


def documented_states():
    """{state: its comment}: on the same line, or on the lines above."""
    source = Path(zkconsumer.rebalance.state.__file__).read_text(encoding="utf-8")
    found = {}
    for above, name, behind in re.findall(
        r"((?:^    #: .+\n)*)^    ([A-Z_]+) = auto\(\)(?:  #: (.+))?$", source, re.MULTILINE
    ):
        found[RebalanceState[name]] = " ".join(re.findall(r"#: (.+)", above)) or behind
    return found


def everything_combined():
    """Every combination of the options that change the table."""
    variants = [{}, *({name: value} for options, *_ in OPTIONS for name, value in options.items())]
    by_name = {}
    for variant in variants:
        for name, value in variant.items():
            by_name.setdefault(name, [getattr(ORIGINAL, name)]).append(value)
    changing = {name: values for name, values in by_name.items() if name not in UNCHANGING}
    for chosen in product(*changing.values()):
        yield table(replace(ORIGINAL, **dict(zip(changing, chosen, strict=True))))


def successors(steps, state):
    row = steps[state]
    return {*row.jumps, *([following(steps, state)] if row.goes_on else [])}


def test_every_state_says_what_it_waits_for():
    documented = documented_states()
    assert set(documented) == set(RebalanceState)
    for state, text in documented.items():
        assert text, f"{state.name} has no documentation"
        named = set(re.findall(r"\b[A-Z_]{4,}\b", text))
        assert named <= set(RebalanceState.__members__), named


def test_every_step_documents_exactly_the_states_that_can_follow_it():
    documented, follow = documented_states(), {}
    for steps in everything_combined():
        for state, row in steps.items():
            follow.setdefault(state, set()).update(successors(steps, state))
            assert documented[state].startswith(row.number), state
    assert set(follow) == set(RebalanceState) - BETWEEN_ATTEMPTS
    for state, states in follow.items():
        assert set(re.findall(r"\b[A-Z_]{4,}\b", documented[state])) == {each.name for each in states}, state


# -- code and table --------------------------------------------------------------------------------------------------


def jumps_in(exit_function):
    """The states that a function, with those of its module that it calls, can jump to according to its source."""
    module = ast.parse(Path(inspect.getfile(exit_function)).read_text(encoding="utf-8"))
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    waiting, seen, jumps = [exit_function.__name__], set(), set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in functions:
            continue
        seen.add(name)
        for call in ast.walk(functions[name]):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                waiting.append(call.func.id)
                if call.func.id == "Jump":
                    target = call.args[1]
                    assert isinstance(target, ast.Attribute), f"{name} computes the state that it jumps to"
                    jumps.add(RebalanceState[target.attr])
    return jumps


@pytest.mark.parametrize("config", EVERYTHING)
def test_a_step_states_the_jumps_that_its_exit_can_make_and_no_others(config):
    for state, row in table(config).items():
        assert jumps_in(row.leave) == set(row.jumps), state
        returned = set(row.leave.__annotations__["return"].split(" | "))
        assert ("Jump" in returned) == bool(row.jumps), state
        assert ("Rebalance" in returned) == row.goes_on, state
        assert returned <= {"Rebalance", "Jump", "NoReturn"}, state


def test_the_conversations_take_every_jump_that_a_table_states(monkeypatch):
    """`attempt` refuses jumps that are not stated; this is the other direction."""
    taken = set()
    go_on = attempt._next_state

    def recorded(steps, left, exited):
        if isinstance(exited, Jump):
            taken.add((left, exited.to))
        return go_on(steps, left, exited)

    monkeypatch.setattr(attempt, "_next_state", recorded)
    for script in FILES:
        play(script.read_text(encoding="utf-8"))
    assert taken == {(state, to) for config in EVERYTHING for state, row in table(config).items() for to in row.jumps}


@pytest.mark.parametrize(
    ("jumps", "goes_on", "exited", "message"),
    [
        ((), True, Jump(Rebalance(config=ORIGINAL), RebalanceState.CLAIMING), "does not state"),
        ((RebalanceState.CLAIMING,), False, Rebalance(config=ORIGINAL), "states that nothing follows"),
    ],
)
def test_transition_outside_the_table_is_an_internal_error(jumps, goes_on, exited, message):
    row = replace(table(ORIGINAL)[RebalanceState.DECIDING], jumps=jumps, goes_on=goes_on)
    with pytest.raises(AssertionError, match=message):
        attempt._next_state({RebalanceState.DECIDING: row}, RebalanceState.DECIDING, exited)


# -- the page --------------------------------------------------------------------------------------------------------


def test_the_page_names_every_option_that_changes_the_table():
    shown = [table(config) for config in OPTION_CONFIGS.values()]
    changing = [options for options, *changes in OPTIONS if any(changes) or "claim_before_offsets" in options]
    dual_commit = {"offsets_from": frozenset({"kafka", "zookeeper"})}
    assert [options for options in changing if table(replace(ORIGINAL, **options)) not in shown] == [dual_commit]


def test_closed_member_has_no_effects():
    closed = Rebalance(config=RebalanceConfig(group="g", consumer_id="g_c"), state=RebalanceState.CLOSED)
    assert not is_busy(closed)
    assert step(closed, Performed()) == (closed, ())
