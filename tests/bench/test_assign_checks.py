"""The checks of the assignor bench find bad answers; otherwise its figures would be worthless."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bench import assign_cases
from bench.assign import (
    KAFKA_STICKY,
    KAFKA_UNIFORM,
    TARGET,
    WIRE,
    CheckFailed,
    Figure,
    Options,
    Subject,
    check,
    check_same_sets,
)
from bench.assign_cases import FRESH, JOIN, LEAVE, NOBODY, STEPS, UNIFORM, Answer, Case, Shape, read_answer, read_group
from bench.assign_checks import looked_at, moves_least, moves_least_of_equal
from bench.assign_hosts import Limit, call_python
from bench.assign_report import goals
from coordinator.protocol.consumer_protocol import decode_subscription, encode_assignment
from kernel.assignors.sticky import assign_sticky
from kernel.assignors.sticky_data import decode_sticky
from kernel.values import TopicPartition


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two topics of three partitions, three members and a newcomer."""
    monkeypatch.setattr(assign_cases, "SHAPES", {"tiny": Shape(2, 3, 3), "small": Shape(7, 5, 4)})


def given(owner: list[int]) -> Answer:
    found = np.array(owner)
    ids = np.flatnonzero(found >= 0)
    return Answer(ids, found[ids])


def nothing() -> NDArray[np.int32]:
    return np.full(6, NOBODY, np.int32)


def test_an_even_answer_has_no_faults() -> None:
    found = looked_at(Case("tiny", "uniform"), FRESH, nothing(), given([0, 1, 2, 0, 1, 2]), may_withhold=False)
    assert (found.faults, found.unfair, found.loads, found.moved) == ((), "", "2-2", 0)


def test_unassigned_partition_is_a_fault_unless_it_moves() -> None:
    case, before = Case("tiny", "uniform"), np.array([0, 1, 2, 0, 1, NOBODY], np.int32)
    answer = given([0, 1, 2, 0, NOBODY, 2])
    assert "given to nobody" in looked_at(case, JOIN, before, answer, may_withhold=False).faults[0]
    found = looked_at(case, JOIN, before, answer, may_withhold=True)
    assert (found.faults, found.withheld, found.moved) == ((), 1, 1)
    lost = looked_at(case, JOIN, before, given([0, 1, 2, 0, 1, NOBODY]), may_withhold=True)
    assert "given to nobody" in lost.faults[0]


def test_partition_assigned_twice_is_a_fault() -> None:
    twice = Answer(np.array([0, 1, 2, 3, 4, 5, 5]), np.array([0, 1, 2, 0, 1, 2, 0]))
    assert "given twice" in looked_at(Case("tiny", "uniform"), FRESH, nothing(), twice, may_withhold=False).faults[0]


def test_a_member_that_has_left_or_does_not_subscribe_gets_nothing() -> None:
    uniform = looked_at(Case("tiny", "uniform"), LEAVE, nothing(), given([0, 1, 2, 0, 1, 2]), may_withhold=False)
    assert "not there" in uniform.faults[0]
    one = looked_at(Case("tiny", "one"), FRESH, nothing(), given([0, 1, 2, 0, 1, 2]), may_withhold=False)
    assert "do not subscribe" in one.faults[0]  # member 1 has the first topic only


def test_assignment_is_unfair_if_a_partition_could_still_move() -> None:
    case = Case("tiny", "uniform")
    assert "could go" in looked_at(case, FRESH, nothing(), given([0, 0, 0, 1, 1, 2]), may_withhold=False).unfair
    narrow = looked_at(Case("tiny", "one"), FRESH, nothing(), given([1, 1, 1, 0, 2, 2]), may_withhold=False)
    assert "could go" in narrow.unfair
    # The second topic is not for member 1: that it has less is nobody's fault.
    fair = looked_at(Case("tiny", "one"), FRESH, nothing(), given([1, 1, 0, 2, 2, 0]), may_withhold=False)
    assert (fair.unfair, fair.faults) == ("", ())


def test_fewest_moves_of_equal_subscriptions_are_the_partitions_above_the_balance() -> None:
    case = Case("tiny", "uniform")
    before = np.array([0, 0, 0, 1, 1, 2], np.int32)
    assert moves_least_of_equal(case, FRESH, before) == 1
    assert moves_least_of_equal(case, JOIN, before) == 1  # shares of 2, 2, 1, 1
    assert moves_least_of_equal(case, JOIN, np.array([0, 0, 1, 1, 2, 2], np.int32)) == 1


def test_bound_for_different_subscriptions_treats_the_newcomer_separately() -> None:
    case = Case("tiny", "one")  # member 1 has the first topic only
    assert moves_least(case, JOIN, np.array([1, 1, 0, 0, 2, 2], np.int32)) == 1
    assert moves_least(case, LEAVE, np.array([NOBODY, 0, 0, 2, 2, NOBODY], np.int32)) == 0


@pytest.mark.parametrize("kind", assign_cases.KINDS)
@pytest.mark.parametrize("in_user_data", [True, False])
def test_groups_are_encoded_and_answers_decoded_like_members(tmp_path: Path, kind: str, in_user_data: bool) -> None:
    case = Case("small", kind)
    before = np.random.default_rng(3).integers(-1, 4, case.shape.partitions).astype(np.int32)
    case.write(tmp_path / "group", JOIN, before, in_user_data=in_user_data)
    sizes, members = read_group(tmp_path / "group")
    subscriptions = {member: decode_subscription(data) for member, data in members.items()}
    assert sizes == dict.fromkeys(case.topics, 5)
    for number, member in enumerate(case.members):
        assert subscriptions[member].topics == tuple(np.array(case.topics)[case.subscribed[number]])
        assert subscriptions[member].generation == 1
        claimed = (
            decode_sticky(subscriptions[member].user_data).partitions if in_user_data else subscriptions[member].owned
        )
        owned = np.flatnonzero(before == number).tolist()
        assert [case.topics.index(tp.topic) * 5 + tp.partition for tp in claimed] == owned
    answer = assign_sticky(sizes, subscriptions)
    assign_cases.write_answer(tmp_path / "answer", {m: encode_assignment(tps) for m, tps in answer.items()})
    found = looked_at(case, JOIN, before, read_answer(case, tmp_path / "answer"), may_withhold=False)
    assert found.faults == ()
    owners = {
        TopicPartition(case.topics[n // 5], n % 5): case.members[who]
        for n, who in enumerate(found.owner)
        if who != NOBODY
    }
    assert owners == {tp: member for member, tps in answer.items() for tp in tps}


def test_a_bad_answer_fails_the_bench() -> None:
    case = Case("tiny", "uniform")
    figure = Figure(KAFKA_STICKY, case, FRESH)
    figure.findings = looked_at(case, FRESH, nothing(), given([0, 0, 0, 1, 1, 2]), may_withhold=False)
    with pytest.raises(CheckFailed, match=r"Kafka sticky.*unfair.*loads of 1-3"):
        check(figure)
    figure.findings = looked_at(case, FRESH, nothing(), given([0, 1, 2, 0, 1, 2]), may_withhold=False)
    check(figure)
    figure.moved_least = 1
    with pytest.raises(CheckFailed, match="0 partitions moved, 1 would do"):
        check(figure)


def test_different_sets_from_kafkas_fail_the_bench() -> None:
    case = Case("tiny", "uniform")
    mine, other = Figure(WIRE, case, FRESH), Figure(KAFKA_STICKY, case, FRESH)
    mine.findings = looked_at(case, FRESH, nothing(), given([0, 1, 2, 0, 1, 2]), may_withhold=False)
    other.findings = mine.findings
    check_same_sets([mine, other])
    other.findings = looked_at(case, FRESH, nothing(), given([1, 0, 2, 0, 1, 2]), may_withhold=False)
    with pytest.raises(CheckFailed, match="2 partitions go to others"):
        check_same_sets([mine, other])


def test_child_process_assigns_a_small_group(tmp_path: Path) -> None:
    case, group, answer = Case("small", "uniform"), tmp_path / "group", tmp_path / "answer"
    case.write(group, FRESH, np.full(case.shape.partitions, NOBODY, np.int32), in_user_data=True)
    request = {"subject": "wire", "strategy": "sticky", "exact_up_to": 0, "runs": [], "group": str(group)}
    call = call_python({**request, "answer": str(answer)}, Limit(60.0, by_cpu=False), tmp_path)
    assert (call.failed, call.over, len(call.runs)) == ("", False, 1), (tmp_path / "python.log").read_text()
    before = np.full(case.shape.partitions, NOBODY, np.int32)
    assert looked_at(case, FRESH, before, read_answer(case, answer), may_withhold=False).faults == ()


# -- the goals of the assignor bench, each with its line, and measured between the right subjects ----------------------

Found = dict[tuple[str, "Subject", str], Figure]
LINES = [f"uniform to Kafka's, {step}" for step in STEPS]


def measured(kind: str, cpu_s: dict[tuple[Subject, str], float]) -> Found:
    """Figures of one run each, whose wall-clock seconds are ten times the CPU seconds."""
    return {
        (kind, subject, step): Figure(subject, Case("1M", kind), step, {subject.form: [[10 * seconds, seconds]]})
        for (subject, step), seconds in cpu_s.items()
    }


def lines(kind: str, found: Found, options: Options | None = None) -> dict[str, tuple[float, float | None]]:
    return {name: (target, value) for name, target, value in goals(kind, found, options or Options())}


@pytest.mark.parametrize("kind", assign_cases.KINDS)
def test_uniform_has_a_goal_in_each_step_of_every_kind(kind: str) -> None:
    cpu_s = {(TARGET, FRESH): 0.1, (TARGET, LEAVE): 0.3, (TARGET, JOIN): 0.2}
    cpu_s |= {(KAFKA_UNIFORM, step): 0.2 for step in STEPS} | {(KAFKA_STICKY, step): 7.0 for step in STEPS}
    shown = lines(kind, measured(kind, cpu_s))
    assert [shown[line] for line in LINES] == [
        (1.0, pytest.approx(0.5)),
        (1.0, pytest.approx(1.5)),
        (1.0, pytest.approx(1.0)),
    ]


def test_goal_is_not_measured_without_kafkas_figure() -> None:
    shown = lines(UNIFORM, measured(UNIFORM, {(TARGET, FRESH): 0.1, (KAFKA_STICKY, FRESH): 0.2}))
    assert [shown[line] for line in LINES] == [(1.0, None)] * 3


def test_wire_is_still_held_beside_the_sticky_assignor() -> None:
    shown = lines(UNIFORM, measured(UNIFORM, {(WIRE, LEAVE): 0.2, (KAFKA_STICKY, LEAVE): 0.8, (TARGET, LEAVE): 0.4}))
    assert shown["wire to Kafka sticky's assign(), leave"] == (0.5, pytest.approx(0.25))
    assert shown["wire to Kafka sticky's assign(), join"] == (0.5, None)
