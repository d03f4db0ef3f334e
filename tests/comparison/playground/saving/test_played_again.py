"""A game that was saved, and its scenario run in every design: the same changes at the same moments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from comparison.own_scenarios import why_not_judged
from comparison.playground import commands as c
from comparison.playground.commands import MemberAction as Action
from comparison.playground.saving.saved import Played, saved
from comparison.playground.saving.steps import Act
from comparison.playground.simulated.exchange import Asked, Finish, Give, GoOn
from comparison.scenarios.plan.scenario_file import parse_scenario
from kernel.designs import DESIGN_NAMES
from tests.comparison.playground.simulated.test_world_process import LIMITS, MS, PARAMETERS, asked
from tests.support.runs.simulations import Simulations


def act(action: Action, member: str, delay_ms: int = 0) -> c.ActOnMember:
    return c.ActOnMember(action=action, member=member, delay_ms=delay_ms)


#: What is played, by its second: every command that has steps.
PLAYED: Sequence[tuple[float, c.GroupCommand]] = (
    (3, c.AddMembers(count=2)),
    (5, act(Action.CUT, "m2")),
    (6.25, c.AddPartitions(count=2)),
    (13, act(Action.HEAL, "m2")),
    (14, act(Action.KILL, "m3")),
    (15, c.SetRate(per_second=5)),
    (20.5, act(Action.START, "m3")),
    (24, act(Action.FREEZE, "m1")),
    (31, act(Action.CONTINUE, "m1")),
    (33, act(Action.SLOW, "m4", 100)),
    (34, act(Action.SLOW, "m4")),
    (35, act(Action.LEAVE, "m4")),
    (38, act(Action.START, "m4")),
    (40, act(Action.FREEZE, "m4")),
    (41, act(Action.KILL, "m4")),
)
LAST_S = 45
SCRIPT: list[Asked] = [
    *(line for at_s, each in PLAYED for line in (GoOn(until_ns=round(at_s * 1000) * MS), Give(command=each))),
    *(GoOn(until_ns=LAST_S * 1000 * MS), Finish(), GoOn(until_ns=200_000 * MS)),
]
#: A change is made within so many virtual milliseconds of the same moment: a process that leaves needs its time, and so
#: does an answer of a broker that makes partitions.
TOLERANCE_MS = 60
_FAULTS = {"freeze": "freeze", "cut": "cut", "slow": "slow", "slow-record": "slow"}


def changes(trace: Path) -> Iterator[tuple[float, str, str]]:
    """(ms, what, who) of every change that was made, until the end of what was played."""
    for line in trace.read_text().splitlines():
        event: Mapping[str, Any] = json.loads(line)
        target = str(event.get("target", ""))
        place = target.partition("->")[0].partition(".")[0]
        detail = event.get("detail") or {}
        said = ""
        match event.get("kind"):
            case "fault_started" if event["fault"] in _FAULTS:
                said = f"{_FAULTS[event['fault']]} begins"
            case "fault_ended" if event["fault"] in _FAULTS:
                said = f"{_FAULTS[event['fault']]} ends"
            case "fault_started" if event["fault"] == "join":
                said = f"{detail['count']} join"
            case "change_started" if event["change"] in ("grow", "join") and len(detail.get("targets", ())) > 1:
                said, place = f"{len(detail['targets'])} join", detail["targets"][0]
            case "process_started" if "." in target:
                said = "is started again"
            case "process_ended" if event["how"] in ("kill", "leave") and place.startswith("m"):
                said = f"ends by {event['how']}"
            case "topic_wanted" if event["wanted"] > PARAMETERS.partitions:
                said, place = "partitions", str(event["wanted"])
        if said:
            yield event["ns"] / MS, said, place


def since_the_first(trace: Path) -> list[tuple[float, str, str]]:
    found = list(changes(trace))
    # What a run heals at its end comes half a second later.
    within = [each for each in found if each[0] - found[0][0] < (LAST_S - PLAYED[0][0] - 0.5) * 1000]
    # A fault of a process that is killed ends with it: which is told first says nothing.
    order = sorted(within, key=lambda each: (round((each[0] - found[0][0]) / 100), each[1:]))
    return [(at_ms - found[0][0], what, who) for at_ms, what, who in order]


@pytest.mark.parametrize("design", DESIGN_NAMES)
def test_a_saved_game_makes_the_same_changes_at_the_same_moments(design: str, tmp_path: Path) -> None:
    replies = asked(tmp_path / "game", design, SCRIPT)
    assert replies[-1].ended == ""
    assert not any(reply.refusal for reply in replies)
    acts = [Act(round(at_s * 1000), command) for at_s, command in PLAYED]
    played = Played(
        name="a-game", provenance={}, parameters=PARAMETERS, limits=LIMITS, is_simulated=True,
        begun_ms=1500, now_ms=LAST_S * 1000, acts={design: acts},
    )  # fmt: skip
    (file,) = saved(played)
    assert (file.steps, file.left_out) == (len(PLAYED), 0)
    scenario = parse_scenario(file.text, file.name, why_not_judged)

    with closing(Simulations({scenario.name: scenario})) as simulations:
        again = simulations.run(tmp_path / "again", scenario.name, design)

    assert again.outcome.outcome == "complete", again.outcome.error
    one = since_the_first(tmp_path / f"game/playground/{design}/trace/runner.jsonl")
    other = since_the_first(tmp_path / "again/trace/runner.jsonl")
    assert [each[1:] for each in one] == [each[1:] for each in other]
    assert len(one) >= len(PLAYED) - 2, "all but the rates, which no trace has"
    assert max(abs(each[0] - same[0]) for each, same in zip(one, other, strict=True)) <= TOLERANCE_MS
