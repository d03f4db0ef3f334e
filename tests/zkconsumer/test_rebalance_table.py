"""The table itself: complete, in the specification's order, and documented."""

from __future__ import annotations

import re
from pathlib import Path

import zkconsumer.state
from kernel.trace.events import PHASES
from zkconsumer.effects import Performed
from zkconsumer.rebalance import STEPS, is_busy, step
from zkconsumer.state import Rebalance, Rules, State

BETWEEN = {State.IDLE, State.GIVING_UP, State.BACKING_OFF, State.CLOSING, State.CLOSING_SESSION, State.CLOSED}


def test_every_state_is_a_row_of_the_table_or_lies_between_attempts():
    assert set(State) == set(STEPS) | BETWEEN
    assert not set(STEPS) & BETWEEN


def test_rows_are_in_the_order_of_the_specification_and_name_a_phase_of_the_trace():
    numbers = [int(re.match(r"R(\d+)", row.number).group(1)) for row in STEPS.values()]
    assert numbers == sorted(numbers)
    phases = [row.phase for row in STEPS.values()]
    assert set(phases) <= set(PHASES)
    assert [PHASES.index(phase) for phase in phases] == sorted(PHASES.index(phase) for phase in phases)


def test_every_state_says_what_it_waits_for_and_which_states_come_next():
    source = Path(zkconsumer.state.__file__).read_text(encoding="utf-8")
    for state in State:
        documented = re.search(rf"^    {state.name} = auto\(\)  #: (.+)$", source, re.MULTILINE)
        assert documented, f"{state.name} has no line that says what it is"
        if state in STEPS:
            assert documented.group(1).startswith(f"{STEPS[state].number}"), state
            named = set(re.findall(r"\b[A-Z_]{4,}\b", documented.group(1)))
            assert named <= set(State.__members__), named


def test_a_closed_member_wants_nothing_more():
    closed = Rebalance(rules=Rules(group="g", consumer_id="g_c"), state=State.CLOSED)
    assert not is_busy(closed)
    assert step(closed, Performed()) == (closed, ())
