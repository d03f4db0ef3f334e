"""The table itself: complete, in the specification's order, and documented."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import zkconsumer.rebalance.state
from kernel.trace.events import PHASES
from zkconsumer.rebalance.effects import Performed
from zkconsumer.rebalance.machine import is_busy, step
from zkconsumer.rebalance.state import Rebalance, Rules, State
from zkconsumer.rebalance.table import table

ORIGINAL = Rules(group="g", consumer_id="g_c")
BETWEEN = {
    State.IDLE,
    State.GIVING_UP,
    State.BACKING_OFF,
    State.LOOKING,
    State.PAUSING,
    State.RESUMING,
    State.CLOSING,
    State.CLOSING_SESSION,
    State.CLOSED,
}

#: Each option that changes the table: what it puts in, what it leaves out, and the rows that it enters or leaves anew.
OPTIONS = [
    ({"strategy": "roundrobin-0.8.2"}, "", "", ""),
    ({"strategy": "roundrobin-1.1"}, "LISTING_MEMBERS READING_GROUP_TOPICS", "READING_TOPICS", ""),
    ({"listener_in_attempt": True}, "TELLING_REVOKED TELLING_ASSIGNED", "", "STARTING"),
    ({"sync_before_reads": True}, "SYNCING SYNCING_AGAIN", "", ""),
    ({"checked_release": True}, "RELEASING_CHECKED ROLLING_BACK_CHECKED", "", "RELEASING ROLLING_BACK"),
    ({"checked_claim": True}, "", "", "CHECKING_CLAIM"),
    ({"skip_unreadable_members": True}, "", "", "READING_MEMBERS DECIDING"),
    ({"fence_epochs": True}, "BUMPING_EPOCH MAKING_EPOCH", "", ""),
    ({"offsets_from": frozenset({"kafka"})}, "READING_KAFKA_OFFSETS", "READING_OFFSETS", ""),
    ({"offsets_from": frozenset({"kafka", "zookeeper"})}, "READING_KAFKA_OFFSETS", "", ""),
    ({"claim_before_offsets": True}, "", "", "READING_OFFSETS HEEDING_SHUTDOWN"),
    ({"stop_on_disconnect": True, "retry_when_free": True, "quiet_ms": 9, "retry_while_closing": False}, "", "", ""),
]
EVERYTHING = [ORIGINAL, *(replace(ORIGINAL, **options) for options, *_ in OPTIONS)]


def rows_by_state():
    return {state: row for rules in EVERYTHING for state, row in table(rules).items()}


def test_every_state_is_a_row_of_some_table_or_lies_between_attempts():
    assert set(State) == set(rows_by_state()) | BETWEEN
    assert not set(rows_by_state()) & BETWEEN


def numbers(rules):
    return [int(re.match(r"R(\d+)", row.number).group(1)) for row in table(rules).values()]


@pytest.mark.parametrize("rules", EVERYTHING)
def test_rows_are_in_the_order_of_the_specification_and_name_a_phase_of_the_trace(rules):
    in_order = numbers(rules) == sorted(numbers(rules))
    assert in_order is not rules.claim_before_offsets
    phases = [row.phase for row in table(rules).values()]
    assert set(phases) <= set(PHASES)
    assert [PHASES.index(phase) for phase in phases] == sorted(PHASES.index(phase) for phase in phases)


@pytest.mark.parametrize(("options", "put_in", "left_out", "replaced"), OPTIONS)
def test_an_option_changes_only_its_own_rows(options, put_in, left_out, replaced):
    original, changed = table(ORIGINAL), table(replace(ORIGINAL, **options))
    assert {state.name for state in changed if state not in original} == set(put_in.split())
    assert {state.name for state in original if state not in changed} == set(left_out.split())
    different = {state.name for state in original if state in changed and original[state] != changed[state]}
    if options == {"strategy": "roundrobin-1.1"}:
        assert different == {"READING_MEMBERS"}
        assert changed[State.READING_MEMBERS].leave is original[State.READING_MEMBERS].leave
    else:
        assert different == set(replaced.split())


def test_claiming_before_the_offsets_is_another_order_of_the_same_rows():
    changed = list(table(replace(ORIGINAL, claim_before_offsets=True)))
    assert changed.index(State.CLAIMING) < changed.index(State.READING_OFFSETS) < changed.index(State.STARTING)
    assert set(changed) == set(table(ORIGINAL))


def test_the_original_is_what_no_option_gives():
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
        "R6 getData ids/x x N, each pattern's getChildren /brokers/topics behind it, getChildren ids",
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


def test_every_state_says_what_it_waits_for_and_which_states_come_next():
    source = Path(zkconsumer.rebalance.state.__file__).read_text(encoding="utf-8")
    for state in State:
        documented = re.search(rf"^    {state.name} = auto\(\)  #: (.+)$", source, re.MULTILINE)
        assert documented, f"{state.name} has no line that says what it is"
        if state in rows_by_state():
            assert documented.group(1).startswith(f"{rows_by_state()[state].number}"), state
            named = set(re.findall(r"\b[A-Z_]{4,}\b", documented.group(1)))
            assert named <= set(State.__members__), named


def test_a_closed_member_wants_nothing_more():
    closed = Rebalance(rules=Rules(group="g", consumer_id="g_c"), state=State.CLOSED)
    assert not is_busy(closed)
    assert step(closed, Performed()) == (closed, ())
