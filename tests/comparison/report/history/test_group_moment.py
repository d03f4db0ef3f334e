"""A run's groups at moments of a cut: in `zookeeper` the old owner goes on, in `eager` it is replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from comparison.group_readers.columns import GroupSeen, Keeper
from comparison.report.history.group_moment import BELIEVED, RunEvents
from kernel.trace.reader import read_trace
from kernel.values import TopicPartition
from tests.support.runs.seen_runs import OWN_IDS, UUID, write_cut
from tests.support.trace.traces import e, write_run

T = [TopicPartition("t", number) for number in range(2)]
M1, M2 = OWN_IDS.values()


def run_of(folder: Path) -> RunEvents:
    return RunEvents([read_trace(path) for path in sorted((folder / "trace").glob("*.jsonl"))])


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    write_cut(tmp_path)
    return tmp_path / "split-brain"


def owners(seen: GroupSeen) -> dict[TopicPartition, str]:
    return {row.partition: row.owner for row in seen.partitions}


def test_owners_in_zookeeper_are_those_of_its_log(cut: Path) -> None:
    run = run_of(cut / "zookeeper")
    (before,), (between,), (after,) = (run.at(moment_s) for moment_s in (3, 4.6, 9))
    assert before.keeper is Keeper.ZOOKEEPER
    assert owners(before) == {T[0]: f"{M1}-0", T[1]: f"{M2}-0"}
    assert owners(between) == {T[0]: "", T[1]: f"{M2}-0"}
    assert owners(after) == dict.fromkeys(T, f"{M2}-0")
    assert [row.current for row in before.partitions] == [8, None]
    assert [row.current for row in after.partitions] == [9, None]  # which the old owner moved back from 30
    assert (before.coordinator, before.generation) == ("", None)


def test_state_and_generation_are_the_coordinators(cut: Path) -> None:
    run = run_of(cut / "eager")
    m1, m2 = (f"{name}-{UUID}" for name in OWN_IDS)
    (before,), (between,), (after,) = (run.at(moment_s) for moment_s in (3, 4.65, 9))
    assert [(seen.state, seen.generation) for seen in (before, between, after)] == [
        ("Stable", 1),
        ("PreparingRebalance", 1),
        ("Stable", 2),
    ]
    assert before.keeper is Keeper.COORDINATOR
    assert before.coordinator == "broker-1"
    assert owners(before) == {T[0]: m1, T[1]: m2}
    assert owners(after) == {T[0]: m2, T[1]: m2}
    assert [(row.owner, row.client) for row in after.partitions] == [(m2, "m2"), (m2, "m2")]
    assert after.partitions[0].current == 30  # the refused commit changed nothing


def test_moment_shown_by_default_is_before_the_final_reads(cut: Path) -> None:
    run = run_of(cut / "eager")
    assert run.default_s() == pytest.approx(10, abs=1e-6)
    assert run.last_s == pytest.approx(10.5)


def test_brokers_of_a_zookeeper_run_say_nothing_of_its_group(cut: Path) -> None:
    """Killed before it has read ZooKeeper's log, a run has traces of brokers, but none of its authority."""
    traces = cut / "zookeeper" / "trace"
    kept = traces / "observer.jsonl"
    (traces / "broker-1.jsonl").write_text(kept.read_text().splitlines()[0].replace("observer", "broker") + "\n")
    kept.unlink()
    (seen,) = run_of(cut / "zookeeper").at(3)
    assert owners(seen) == {T[0]: f"{M1}-0", T[1]: f"{M2}-0"}
    assert seen.problem == BELIEVED


def test_run_without_an_authoritys_trace_is_what_its_members_believe(tmp_path: Path) -> None:
    events = [
        e(0, "m1", "member_started", group="g", member=M1),
        e(10, "m1", "partitions_assigned", t="t0 t1", member=M1, stream=0),
        e(500, "m1", "commit_answered", group="g", p=1, offset=4, outcome="accepted", member=M1),
        e(600, "m1", "partitions_revoked", t="t0 t1", member=M1, stream=0, all=[]),
        e(700, "m1", "member_closed", group="g", member=M1),
    ]
    run = run_of(write_run(tmp_path / "mine", events, scenario="by-hand"))
    assert run.default_s() == pytest.approx(0.6, abs=1e-6)  # before the last member leaves
    (seen,) = run.at(run.default_s())
    assert seen.problem == BELIEVED
    assert owners(seen) == dict.fromkeys(T, f"{M1}-0")
    assert [row.current for row in seen.partitions] == [None, 4]
    assert [(member.member, member.owned) for member in seen.members] == [(M1, tuple(T))]
    assert not run.at(run.last_s)[0].members


def test_nothing_is_known_before_the_first_member(cut: Path) -> None:
    assert run_of(cut / "zookeeper").at(0.1) == []
