"""Connect's incremental assignor: article 002's three rounds and their variants, and invariants of any cluster."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.assignors.connect import Circumstances, Memory, assign_incrementally, revocation_backoff
from kernel.assignors.connect_units import Unit, Workers, in_order
from tests.kernel.assignors.connect_units import configured_units

FIVE_MINUTES = 300_000


@dataclass
class Cluster:
    """Workers that follow their assignments, and the leader's memory."""

    running: dict[str, set[Unit]]
    connectors: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("P0", "P1", "P2", "P3"), 0))
    max_delay_ms: int = FIVE_MINUTES
    now_ms: int = 0
    generation: int = 0
    memory: Memory = field(default_factory=Memory)

    def round(self, now_ms=None):
        """One completed round: the decision, which the workers have carried out."""
        self.now_ms = self.now_ms if now_ms is None else now_ms
        self.memory, decided = assign_incrementally(
            self.memory,
            Circumstances(
                now_ms=self.now_ms,
                max_delay_ms=self.max_delay_ms,
                completed_generation=self.generation,
                generation=self.generation + 1,
                configured=configured_units(self.connectors),
                running={worker: in_order(units) for worker, units in self.running.items()},
            ),
        )
        self.generation += 1
        for worker in self.running:
            self.running[worker] -= set(decided.revoked[worker])
            self.running[worker] |= set(decided.assigned[worker])
        return decided

    def shown(self):
        return {worker: " ".join(map(str, in_order(units))) for worker, units in self.running.items()}


def moved(decided):
    return any(decided.assigned.values()) or any(decided.revoked.values())


def seed_002(**settings):
    """C1{P0,P3} C2{P1} C3{P2}, known to the leader."""
    units = {"C1": "P0 P3", "C2": "P1", "C3": "P2"}
    cluster = Cluster({worker: set(map(Unit, text.split())) for worker, text in units.items()}, **settings)
    decided = cluster.round()
    assert decided.delay_ms == 0
    assert not moved(decided)
    return cluster


def test_returning_worker_gets_its_unit_back_after_the_delay():
    cluster = seed_002()
    del cluster.running["C2"]
    gone = cluster.round(0)
    assert (gone.delay_ms, moved(gone)) == (300_000, False)
    cluster.running["C2"] = set()
    back = cluster.round(60_000)
    assert (back.delay_ms, moved(back)) == (240_000, False)
    assert cluster.memory.candidates == ("C2",)
    assert cluster.round(300_000).delay_ms == 0
    assert cluster.shown() == {"C1": "P0 P3", "C3": "P2", "C2": "P1"}


def test_unit_of_a_lost_worker_goes_to_the_least_loaded_one():
    cluster = seed_002()
    del cluster.running["C2"]
    assert cluster.round(0).delay_ms == 300_000
    assert cluster.round(300_000).delay_ms == 0
    assert cluster.shown() == {"C1": "P0 P3", "C3": "P1 P2"}


def test_worker_that_returns_still_running_its_unit_ends_the_delay():
    cluster = seed_002()
    running = cluster.running.pop("C2")
    cluster.round(0)
    cluster.running["C2"] = running
    back = cluster.round(60_000)
    assert (back.delay_ms, moved(back)) == (0, False)


def test_without_a_delay_a_lost_unit_is_assigned_at_once():
    """KAFKA-15693."""
    cluster = seed_002(max_delay_ms=0)
    del cluster.running["C2"]
    assert cluster.round(0).delay_ms == 0
    assert cluster.shown() == {"C1": "P0 P3", "C3": "P1 P2"}


def test_new_leader_treats_lost_units_as_new():
    cluster = seed_002()
    del cluster.running["C2"]
    cluster.round(0)
    cluster.memory = Memory()
    assert cluster.round(1000).delay_ms == 0
    assert cluster.shown() == {"C1": "P0 P3", "C3": "P1 P2"}


def test_incomplete_round_is_dropped():
    cluster = seed_002()
    del cluster.running["C2"]
    cluster.generation += 1
    assert cluster.round(0).delay_ms == 0
    assert cluster.shown() == {"C1": "P0 P3", "C3": "P1 P2"}


def test_workers_that_return_together_share_what_was_lost():
    """KAFKA-10413: one of them got everything."""
    cluster = seed_002()
    lost = {worker: cluster.running.pop(worker) for worker in ("C2", "C3")}
    assert cluster.round(0).delay_ms == FIVE_MINUTES
    cluster.running |= dict.fromkeys(lost, frozenset())
    assert not moved(cluster.round(60_000))
    cluster.round(FIVE_MINUTES)
    assert sorted(len(cluster.running[worker]) for worker in lost) == [1, 1]
    assert cluster.running["C2"] | cluster.running["C3"] == lost["C2"] | lost["C3"]


def test_units_lost_without_a_worker_are_assigned_at_once():
    """A message was lost, not a worker: KAFKA-9848."""
    cluster = seed_002()
    cluster.running["C2"] = set()
    assert cluster.round(0).delay_ms == 0
    assert cluster.shown() == {"C1": "P0 P3", "C2": "P1", "C3": "P2"}


def test_worker_that_joins_gets_its_share_in_the_second_round():
    cluster = Cluster({"C1": set(map(Unit, ("P0", "P1", "P2", "P3")))})
    cluster.round()
    cluster.running["C2"] = set()
    first = cluster.round()
    assert first.revoked["C1"] == (Unit("P0"), Unit("P1"))
    assert not any(first.assigned.values())
    assert not any(cluster.round().revoked.values())
    assert cluster.shown() == {"C1": "P2 P3", "C2": "P0 P1"}


def test_unit_that_runs_twice_is_stopped_everywhere_and_started_once():
    cluster = seed_002()
    cluster.running["C3"].add(Unit("P0"))
    first = cluster.round()
    assert first.revoked["C1"] == first.revoked["C3"] == (Unit("P0"),)
    cluster.round()
    assert sorted(" ".join(cluster.shown().values()).split()) == ["P0", "P1", "P2", "P3"]


def test_unit_that_is_no_longer_configured_is_stopped():
    cluster = seed_002()
    del cluster.connectors["P3"]
    assert cluster.round().revoked["C1"] == (Unit("P3"),)


def test_revocations_in_successive_rounds_are_spread_out():
    """KAFKA-12495: the second round that wants to revoke waits 40 ms first."""
    cluster = Cluster({"C1": set(map(Unit, ("P0", "P1", "P2", "P3")))})
    cluster.round(0)
    cluster.running["C2"] = set()
    assert any(cluster.round(0).revoked.values())
    cluster.running |= {"C3": set(), "C4": set()}
    cluster.running["C1"] |= {Unit("P0"), Unit("P1")}
    again = cluster.round(0)
    assert (again.delay_ms, moved(again)) == (40, False)
    assert any(cluster.round(40).revoked.values())


@pytest.mark.parametrize(
    ("max_delay_ms", "expected"),
    [(300_000, [40, 1600, 64_000, 300_000, 300_000]), (10_000, [40, 1600, 10_000]), (1, [1, 1]), (0, [0, 0])],
)
def test_pause_between_revocations_grows_to_the_longest_delay(max_delay_ms, expected):
    assert [revocation_backoff(k, max_delay_ms) for k in range(1, len(expected) + 1)] == expected


def test_pause_is_truncated_like_kafkas_doubles():
    """40 ** log40(2000) is a little less than 2000; checked against ExponentialBackoff of 4.1.1."""
    assert revocation_backoff(9, 2000) == 1999


def test_units_are_written_and_ordered_as_connect_does():
    units = configured_units({"b": 11, "a": 1})
    assert " ".join(map(str, in_order(units))) == "a b a-0 " + " ".join(f"b-{n}" for n in range(11))


def test_filling_gives_each_least_loaded_worker_one_unit_per_pass():
    workers = Workers({"w1": [Unit("c", 0)], "w2": [], "w3": []})
    workers.fill([Unit("c", n) for n in range(1, 6)], tasks=True)
    assert {worker: [unit.task for unit in workers.of(worker)] for worker in ("w1", "w2", "w3")} == {
        "w1": [0, 5],
        "w2": [1, 3],
        "w3": [2, 4],
    }


events = st.one_of(
    st.tuples(st.just("join"), st.integers(0, 5)),
    st.tuples(st.just("leave"), st.integers(0, 5)),
    st.tuples(st.just("return"), st.integers(0, 5)),
    st.tuples(st.just("wait"), st.sampled_from((1, 40, 5_000, 10_000))),
    st.tuples(st.just("tasks"), st.integers(0, 7)),
    st.tuples(st.just("leader"), st.just(0)),
)


def happen(cluster, gone, kind, number):
    name = f"w{number}"
    if kind == "join":
        cluster.running.setdefault(name, set())
    elif kind == "leave" and len(cluster.running) > 1 and name in cluster.running:
        gone[name] = cluster.running.pop(name)
    elif kind == "return" and name in gone:
        cluster.running[name] = gone.pop(name)
    elif kind == "wait":
        cluster.now_ms += number
    elif kind == "tasks":
        cluster.connectors["c"] = number
    elif kind == "leader":
        cluster.memory = Memory()


@given(st.sampled_from((0, 1, 10_000)), st.lists(events, max_size=25))
def test_cluster_left_alone_runs_every_unit_once_and_evenly(max_delay_ms, life):
    cluster, gone = Cluster({"w0": set()}, {"c": 4, "d": 1}, max_delay_ms), {}
    for kind, number in life:
        happen(cluster, gone, kind, number)
        decided = cluster.round()
        assert 0 <= decided.delay_ms <= max_delay_ms
        given_out = [unit for units in decided.assigned.values() for unit in units]
        assert len(given_out) == len(set(given_out))
        assert set(given_out) <= configured_units(cluster.connectors)
    for _ in range(12):
        decided = cluster.round(cluster.now_ms + max_delay_ms)
        if not decided.delay_ms and not moved(decided):
            break
    every = [unit for units in cluster.running.values() for unit in units]
    assert sorted(map(str, every)) == sorted(map(str, configured_units(cluster.connectors)))
    for tasks in (False, True):
        loads = [sum((unit.task is not None) is tasks for unit in units) for units in cluster.running.values()]
        assert max(loads) - min(loads) <= 1
