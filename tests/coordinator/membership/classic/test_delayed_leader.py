"""The leader of a `delayed` group: article 002's three rounds with partitions as units, and invariants of any group."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.membership.classic.delayed_leader import DelayedLeader, RoundInput
from kernel.assignors.connect import Circumstances, Memory, assign_incrementally
from kernel.assignors.connect_units import Unit
from kernel.assignors.subscription import MemberSubscription
from kernel.values import TopicPartition
from tests.support.properties import examples

FIVE_MINUTES = 300_000


def partitions(text):
    """'P0 P3' are partitions of topic t; others are written in full: 'u-0'."""
    named = [name.replace("P", "t-").rsplit("-", 1) for name in text.split()]
    return {TopicPartition(topic, int(number)) for topic, number in named}


def shown(owned):
    return " ".join(str(tp).replace("t-", "P") for tp in sorted(owned))


@dataclass
class Group:
    """Well-behaved members and a leader; `now` is the time of its clock."""

    owned: dict[str, set[TopicPartition]]
    sizes: dict[str, int] = field(default_factory=lambda: {"t": 4})
    topics: dict[str, tuple[str, ...]] = field(default_factory=dict)  #: of members that do not subscribe to t alone
    max_delay_ms: int = FIVE_MINUTES
    now_ms: int = 1_000_000
    generation: int = 0
    leader: DelayedLeader = field(default_factory=DelayedLeader)

    def topics_of(self, member):
        return self.topics.get(member, ("t",))

    def decided(self):
        return self.leader.decide(
            RoundInput(
                now_ms=self.now_ms,
                max_delay_ms=self.max_delay_ms,
                generation=self.generation + 1,
                sizes=self.sizes,
                subscriptions={
                    member: MemberSubscription(
                        topics=self.topics_of(member), owned=tuple(sorted(owned)), generation=self.generation
                    )
                    for member, owned in self.owned.items()
                },
            )
        )

    def round(self, at_ms=None):
        """One completed round, `at_ms` after the start: the delay, and which members stopped what."""
        self.now_ms = self.now_ms if at_ms is None else 1_000_000 + at_ms
        leader, decision = self.decided()
        self.generation += 1
        self.leader = leader.completed(self.generation)
        assert decision.assignments.keys() == self.owned.keys()
        stopped = {m: had - decision.assignments[m] for m, had in self.owned.items() if had - decision.assignments[m]}
        self.owned = {member: set(has) for member, has in decision.assignments.items()}
        return decision.delay_ms, {member: shown(gone) for member, gone in stopped.items()}

    def shown(self):
        return {member: shown(owned) for member, owned in self.owned.items()}


def seed_002(**changes):
    """C1{P0,P3} C2{P1} C3{P2}, as assigned by C1 in the last round."""
    group = Group({"C1": partitions("P0 P3"), "C2": partitions("P1"), "C3": partitions("P2")}, **changes)
    assert group.round() == (0, {})
    return group


def test_article_002_member_that_returns_gets_its_partition_back_after_the_delay():
    group = seed_002()
    del group.owned["C2"]
    assert group.round(0) == (300_000, {})
    assert group.shown() == {"C1": "P0 P3", "C3": "P2"}
    group.owned["C2"] = set()
    assert group.round(60_000) == (240_000, {})
    assert group.shown() == {"C1": "P0 P3", "C2": "", "C3": "P2"}
    assert group.round(300_000) == (0, {})
    assert group.shown() == {"C1": "P0 P3", "C2": "P1", "C3": "P2"}


def test_partition_of_a_member_that_stays_away_goes_to_the_least_loaded_member():
    group = seed_002()
    del group.owned["C2"]
    assert group.round(0) == (300_000, {})
    assert group.round(300_000) == (0, {})
    assert group.shown() == {"C1": "P0 P3", "C3": "P1 P2"}


def test_surplus_of_lost_partitions_goes_to_others_in_the_round_that_ends_the_delay():
    """A member that came meanwhile gets all of them, and Connect takes back what is above its share: it has not begun
    with that, so it has nothing to stop, and nobody would rejoin."""
    of_four = {f"C{n}": partitions(f"P{n} P{n + 4}") for n in range(4)}
    group = Group(of_four, sizes={"t": 8}, max_delay_ms=10_000)
    assert group.round() == (0, {})
    del group.owned["C2"], group.owned["C3"]
    group.owned["C4"] = set()
    assert group.round() == (10_000, {})
    assert group.round(at_ms=10_000) == (0, {})
    assert group.shown() == {"C0": "P0 P2 P4", "C1": "P1 P5", "C4": "P3 P6 P7"}
    assert group.round() == (0, {})


def test_member_that_returns_still_delivering_its_partition_ends_the_delay():
    group = seed_002()
    had = group.owned.pop("C2")
    assert group.round(0) == (300_000, {})
    group.owned["C2"] = had
    assert group.round(60_000) == (0, {})
    assert group.shown() == {"C1": "P0 P3", "C2": "P1", "C3": "P2"}


def test_without_a_delay_lost_partitions_are_assigned_at_once():
    group = seed_002(max_delay_ms=0)
    del group.owned["C2"]
    assert group.round(0) == (0, {})
    assert group.shown() == {"C1": "P0 P3", "C3": "P1 P2"}


def test_member_that_joins_gets_its_share_in_the_second_round():
    group = Group({"C1": partitions("P0 P1 P2 P3")})
    assert group.round(0) == (0, {})
    group.owned["C2"] = set()
    assert group.round(0) == (0, {"C1": "P0 P1"})
    assert group.shown() == {"C1": "P2 P3", "C2": ""}
    assert group.round(0) == (0, {})
    assert group.shown() == {"C1": "P2 P3", "C2": "P0 P1"}


def test_new_leader_treats_lost_partitions_as_new():
    group = seed_002()
    del group.owned["C2"]
    assert group.round(0) == (300_000, {})
    group.leader = DelayedLeader().completed(group.generation)
    assert group.round(1000) == (0, {})
    assert group.shown() == {"C1": "P0 P3", "C3": "P1 P2"}


def test_leader_that_missed_a_round_has_no_memory_of_lost_partitions():
    """C3 led a round in between: C1 remembers another generation than the one that it completed last."""
    group = seed_002()
    group.generation += 1
    group.leader = group.leader.completed(group.generation)
    del group.owned["C2"]
    assert group.round(0) == (0, {})
    assert group.shown() == {"C1": "P0 P3", "C3": "P1 P2"}


def test_assignment_that_was_not_synced_is_dropped():
    group = seed_002()
    del group.owned["C2"]
    group.leader, decision = group.decided()
    assert decision.delay_ms == FIVE_MINUTES
    group.generation += 1
    assert group.round(10) == (0, {})
    assert group.shown() == {"C1": "P0 P3", "C3": "P1 P2"}


def test_partition_that_is_added_is_assigned_at_once_while_lost_ones_wait():
    group = seed_002()
    del group.owned["C2"]
    assert group.round(0) == (300_000, {})
    group.sizes["t"] = 5
    assert group.round(100_000) == (200_000, {})
    assert group.shown() == {"C1": "P0 P3", "C3": "P2 P4"}


def test_partitions_of_a_deleted_topic_are_revoked_without_a_delay():
    group = seed_002()
    group.sizes, group.topics = {"u": 1}, dict.fromkeys(group.owned, ("t", "u"))
    delay_ms, stopped = group.round(0)
    assert (delay_ms, stopped) == (0, {"C1": "P0 P3", "C2": "P1", "C3": "P2"})
    assert sorted(group.shown().values()) == ["", "", "u-0"]


def test_partition_that_two_members_claim_is_stopped_by_both_and_started_by_one():
    group = seed_002()
    group.owned["C3"] |= partitions("P0")
    assert group.round(0) == (0, {"C1": "P0", "C3": "P0"})
    assert group.round(0) == (0, {})
    assert sorted(" ".join(group.shown().values()).split()) == ["P0", "P1", "P2", "P3"]


def test_topic_is_balanced_among_its_subscribers_only():
    group = Group(
        {"a": set(), "b": set(), "c": set()},
        sizes={"t": 2, "u": 4},
        topics={"a": ("t",), "b": ("t", "u"), "c": ("u", "missing")},
    )
    group.round(0)
    assert {member: len(owned) for member, owned in group.owned.items()} == {"a": 1, "b": 3, "c": 2}
    assert all(tp.topic in group.topics_of(member) for member, owned in group.owned.items() for tp in owned)


def test_unsubscribed_topic_causes_no_delay():
    group = Group(
        {"a": partitions("P0 P1"), "b": partitions("P2 P3"), "c": set()},
        sizes={"t": 4, "u": 1},
        topics={"a": ("t", "u"), "b": ("t", "u"), "c": ("u",)},
    )
    group.round(0)
    group.topics["b"] = ("u",)
    group.owned["b"] -= partitions("P2 P3")
    assert group.round(10)[0] == 0
    assert group.owned["a"] >= partitions("P0 P1 P2 P3")


def test_partition_claimed_by_a_former_subscriber_waits_until_it_is_revoked():
    group = Group({"a": partitions("P0 P1"), "b": partitions("P2 P3")})
    group.round(0)
    group.topics["b"] = ()
    assert group.round(0) == (0, {"b": "P2 P3"})
    assert group.shown() == {"a": "P0 P1", "b": ""}
    assert group.round(0) == (0, {})
    assert group.shown() == {"a": "P0 P1 P2 P3", "b": ""}


def test_new_topic_does_not_affect_the_memory_of_others():
    """C2's P1 waits for it although the group's subscription has changed meanwhile."""
    group = seed_002()
    del group.owned["C2"]
    assert group.round(0) == (300_000, {})
    group.sizes["u"], group.topics = 1, dict.fromkeys(group.owned, ("t", "u"))
    assert group.round(1000) == (299_000, {})
    assert group.shown() == {"C1": "P0 P3", "C3": "P2 u-0"}
    group.topics = {"C1": ("t",), "C3": ("t", "u")}
    assert group.round(2000) == (298_000, {})
    assert group.round(300_000) == (0, {})
    assert "P1" in " ".join(group.shown().values()).split()


def test_member_without_topics_gets_nothing_and_is_named():
    group = Group({"a": set(), "b": set()}, topics={"b": ()})
    assert group.round(0) == (0, {})
    assert group.shown() == {"a": "P0 P1 P2 P3", "b": ""}


names = st.sampled_from(["w0", "w1", "w2", "w3"])
lives = st.lists(
    st.one_of(
        st.tuples(st.just("join"), names),
        st.tuples(st.just("leave"), names),
        st.tuples(st.just("return"), names),
        st.tuples(st.just("replace"), names),
        st.tuples(st.just("wait"), st.sampled_from((1, 40, 5_000, 10_000))),
        st.tuples(st.just("partitions"), st.integers(0, 9)),
        st.tuples(st.just("subscribe"), st.tuples(names, st.sets(st.sampled_from("tu")))),
        st.tuples(st.just("leader"), st.none()),
    ),
    max_size=20,
)


def happen(group, gone, kind, detail):
    match kind:
        case "join":
            group.owned.setdefault(detail, set())
        case "leave" if detail in group.owned and len(group.owned) > 1:
            gone[detail] = group.owned.pop(detail)
        case "return" if detail in gone:
            group.owned[detail] = gone.pop(detail)
        case "replace" if detail in group.owned and len(group.owned) > 1:
            del group.owned[detail]  # by a process that nobody knows
            group.owned[f"{detail}'"] = set()
        case "wait":
            group.now_ms += detail
        case "partitions":
            group.sizes["t"] = detail
        case "subscribe":
            group.topics[detail[0]] = tuple(sorted(detail[1]))
        case "leader":
            group.leader = DelayedLeader()


@settings(max_examples=examples(150))
@given(st.sampled_from((0, 1, 10_000)), lives)
def test_group_left_alone_owns_every_partition_once(max_delay_ms, life):
    group, gone = Group({"w0": set()}, sizes={"t": 4, "u": 2}, max_delay_ms=max_delay_ms), {}
    for kind, detail in life:
        happen(group, gone, kind, detail)
        claimed = [tp for owned in group.owned.values() for tp in owned]
        before = {member: set(owned) for member, owned in group.owned.items()}
        delay_ms, _ = group.round()
        assert 0 <= delay_ms <= max_delay_ms
        new = [tp for member, owned in group.owned.items() for tp in owned - before[member]]
        assert len(new) == len(set(new))
        assert not set(new) & set(claimed), "assigned before its owner has given it up"
        assert all(tp.topic in group.topics_of(member) for member, owned in group.owned.items() for tp in owned)
        if not max_delay_ms:
            assert delay_ms == 0
    for _ in range(14):
        if group.round(group.now_ms - 1_000_000 + max_delay_ms) == (0, {}):
            break
    every = [tp for owned in group.owned.values() for tp in owned]
    wanted = {topic for member in group.owned for topic in group.topics_of(member)}
    assert sorted(every) == sorted(TopicPartition(t, n) for t in wanted for n in range(group.sizes[t]))


@given(st.sampled_from((1, 40, 10_000)), lives)
def test_nothing_that_has_an_owner_moves_while_a_delay_runs(max_delay_ms, life):
    """All have one subscription and one leader. Only partitions that were just taken away are assigned meanwhile."""
    group, gone = Group({"w0": set()}, max_delay_ms=max_delay_ms), {}
    for kind, detail in life:
        if kind not in ("join", "leave", "return", "wait"):
            continue
        had = {tp for owned in group.owned.values() for tp in owned}
        happen(group, gone, kind, detail)
        claimed = [tp for owned in group.owned.values() for tp in owned]
        delay_ms, stopped = group.round()
        if delay_ms and len(claimed) == len(set(claimed)):
            assert not stopped
            lost = had - set(claimed)
            assert not lost & {tp for owned in group.owned.values() for tp in owned}


@given(st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=4), st.integers(1, 3), st.sampled_from((0, 10_000)))
def test_equal_subscriptions_are_assigned_like_connects_tasks(owned_tasks, first_topic, max_delay_ms):
    """Six partitions of two topics, in order, are assigned as Connect's assignor assigns six tasks."""
    every = [
        TopicPartition(topic, n) for topic, size in (("t", first_topic), ("u", 6 - first_topic)) for n in range(size)
    ]
    members = {f"w{k}": {every[task] for task in tasks} for k, tasks in enumerate(owned_tasks)}
    group = Group(
        members,
        sizes={"t": first_topic, "u": 6 - first_topic},
        topics=dict.fromkeys(members, ("t", "u")),
        max_delay_ms=max_delay_ms,
    )
    _, decision = group.decided()
    _, decided = assign_incrementally(
        Memory(),
        Circumstances(
            now_ms=group.now_ms,
            max_delay_ms=max_delay_ms,
            completed_generation=-1,
            generation=1,
            configured=frozenset(Unit("c", n) for n in range(6)),
            running={f"w{k}": [Unit("c", n) for n in sorted(tasks)] for k, tasks in enumerate(owned_tasks)},
        ),
    )
    assert decision.delay_ms == decided.delay_ms
    for k, tasks in enumerate(owned_tasks):
        units = {Unit("c", n) for n in tasks} - set(decided.revoked[f"w{k}"]) | set(decided.assigned[f"w{k}"])
        assert decision.assignments[f"w{k}"] == {every[unit.task] for unit in units}


@pytest.mark.parametrize("size", [0, 3])
def test_leader_does_not_keep_deleted_partitions(size):
    group = Group({"a": partitions("P0 P3 P9"), "b": partitions("P1 u-0")}, sizes={"t": size})
    group.round(0)
    assert all(tp.topic == "t" and tp.partition < size for owned in group.owned.values() for tp in owned)


def calls_of_a_round(size: int, partitions: int) -> int:
    """How many Python functions another round calls in a group in which each member lacks another topic."""
    topics = [f"t{n:03d}" for n in range(size)]
    leader, owned, calls = DelayedLeader(), dict.fromkeys((f"m{n}" for n in range(size)), frozenset()), 0

    def round_input(generation: int) -> RoundInput:
        subscriptions = {
            member: MemberSubscription(
                topics=tuple(topics[:n] + topics[n + 1 :]),
                owned=tuple(sorted(owned[member])),
                generation=generation - 1,
            )
            for n, member in enumerate(owned)
        }
        sizes = dict.fromkeys(topics, partitions)
        return RoundInput(
            now_ms=0, max_delay_ms=FIVE_MINUTES, generation=generation, sizes=sizes, subscriptions=subscriptions
        )

    leader, decided = leader.decide(round_input(1))
    owned = dict(decided.assignments)
    again = round_input(2)

    def count(frame, event, arg):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        leader.completed(1).decide(again)
    finally:
        sys.setprofile(None)
    return calls


def test_round_with_different_subscriptions_looks_at_each_claim_once():
    """Not once for each distinct set of topics: there may be as many sets as topics."""
    few, many = (calls_of_a_round(size, partitions=8_000 // size) for size in (4, 40))  # 8,000 claims
    assert many < 3 * few
