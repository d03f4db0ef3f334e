"""A group and its changes, with every strategy: examples, and figures beside a model that counts one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comparison.assigning.group import Group, Plan, Restart, changed
from comparison.assigning.notation import parse_members, parse_step, parse_topics, with_subscriptions
from comparison.assigning.rehearsal import rehearse
from comparison.assigning.strategies import THREADS, is_incremental, owners_of
from kernel.values import TopicPartition

AMONG_MEMBERS = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "random")
EVERY = (*AMONG_MEMBERS, *THREADS)


def plan(strategies, members, topics, *steps, subscribe=()):
    sizes = parse_topics(topics)
    group = first = with_subscriptions(Group(sizes, parse_members(members, list(sizes))), subscribe)
    parsed = []
    for text in steps:
        verb, what = text.split(" ", 1)
        step, group = parse_step(verb, what, group)
        parsed.append(step)
    return Plan(first, tuple(parsed), tuple(strategies.split(",")))


def only(strategy, *given, **more):
    (found,) = rehearse(plan(strategy, *given, **more))
    assert not found.failed
    return found.moments


def shown(owned):
    return {owner: " ".join(map(str, sorted(tps))) for owner, tps in owned.items()}


def test_sticky_keeps_everything_when_a_member_leaves_and_roundrobin_does_not():
    first = ("C0,C1,C2", "t0=2,t1=2,t2=2,t3=2", "leave C1")
    start, after = only("sticky", *first)
    assert shown(start.owned) == {"C0": "t0-0 t1-1 t3-0", "C1": "t0-1 t2-0 t3-1", "C2": "t1-0 t2-1"}
    assert shown(after.owned) == {"C0": "t0-0 t0-1 t1-1 t3-0", "C2": "t1-0 t2-0 t2-1 t3-1"}
    figures = after.figures
    assert (figures.moved, figures.forced, figures.minimum, figures.unnecessary, figures.stopped) == (3, 3, 3, 0, 5)
    _, after = only("roundrobin", *first)
    figures = after.figures
    assert (figures.moved, figures.forced, figures.minimum, figures.unnecessary, figures.stopped) == (5, 3, 3, 2, 5)


def test_cooperative_members_give_up_in_one_round_what_others_get_in_the_next():
    start, after = only("cooperative-sticky", "C0,C1", "t=6", "join C2")
    assert len(start.rounds) == 1
    first, second = after.rounds
    assert (shown(first.revoked), first.given) == ({"C0": "t-4", "C1": "t-5"}, {})
    assert (second.revoked, shown(second.given)) == ({}, {"C2": "t-4 t-5"})
    assert (after.figures.moved, after.figures.stopped) == (2, 2)


def test_cooperative_member_is_rid_of_an_unsubscribed_topic_in_the_first_round():
    _, after = only("cooperative-sticky", "C0,C1", "t=2,u=1", "subscribe C0=t")
    assert len(after.rounds) == 1
    assert (shown(after.rounds[0].revoked), shown(after.rounds[0].given)) == ({"C0": "u-0"}, {"C1": "u-0"})
    assert (after.figures.moved, after.figures.forced, after.figures.stopped) == (1, 1, 1)


def test_new_member_ids_move_everything_in_roundrobin_and_instance_ids_prevent_it():
    _, after = only("roundrobin", "C0,C1,C2", "t0=3,t1=3", "restart C0=C5,C1=C3,C2=C4")
    assert shown(after.owned) == {"C5": "t0-2 t1-2", "C3": "t0-0 t1-0", "C4": "t0-1 t1-1"}
    assert (after.was, after.figures.moved) == ({"C5": "C0", "C3": "C1", "C4": "C2"}, 6)
    _, after = only("roundrobin", "C0@I0,C1@I1,C2@I2", "t0=3,t1=3", "restart C0=C5,C1=C3,C2=C4")
    assert shown(after.owned) == {"C5": "t0-0 t1-0", "C3": "t0-1 t1-1", "C4": "t0-2 t1-2"}
    assert (after.figures.moved, after.rounds) == (0, ())


def test_static_member_that_returns_too_late_gets_its_place_again():
    """After its session: a leave and a join. The order is that of instance ids, so roundrobin is what it was."""
    start, _, after = only("roundrobin", "C0@I0,C1@I1,C2@I2", "t0=3,t1=3", "leave C1", "join C9@I1")
    assert sorted(shown(after.owned).values()) == sorted(shown(start.owned).values())
    assert shown(after.owned)["C9"] == shown(start.owned)["C1"]


def test_threads_share_a_topic_by_the_formula():
    """R0: 5/4 = 1 partition each, and the remainder of 1 for the first thread."""
    (start,) = only("thread-range", "C1:2,C2:2", "p=5")
    assert shown(start.owned) == {"C1-0": "p-0 p-1", "C1-1": "p-2", "C2-0": "p-3", "C2-1": "p-4"}


def test_threads_know_no_static_membership():
    _, after = only("thread-range", "C0@I0,C1@I1", "t=4", "restart C0=C5")
    assert shown(after.owned) == {"C5-0": "t-2 t-3", "C1-0": "t-0 t-1"}
    assert after.was == {"C5-0": "C0-0"}
    assert (len(after.rounds), after.figures.moved) == (1, 4)


def test_change_that_the_group_does_not_see_causes_no_rebalance():
    _, after = only("random", "C0:t,C1:t", "t=4,u=0", "add-partitions u=3")
    assert (after.rounds, after.figures.moved, after.figures.stopped) == ((), 0, 0)
    assert [str(tp) for tp in after.unowned] == ["u-0", "u-1", "u-2"]


def test_partitions_that_nobody_had_are_new_not_moved():
    start, after = only("sticky", "C0,C1", "t=2", "add-partitions t=2")
    assert not start.new
    assert {str(tp) for tp in after.new} == {"t-2", "t-3"}
    assert (after.figures.moved, after.figures.minimum) == (0, 0)


def test_strategy_that_refuses_a_group_keeps_what_came_before():
    found = rehearse(plan("range,thread-roundrobin-0.8.2", "C0,C1", "t=2,u=2", "subscribe C0=t", "leave C0"))
    assert [(len(each.moments), bool(each.failed)) for each in found] == [(3, False), (1, True)]
    assert "needs the same topics" in found[1].failed


def test_empty_group_owns_nothing():
    *_, after = only("sticky", "C0", "t=2", "leave C0", "join C1", "leave C1")
    assert (after.owned, after.figures.fewest, after.figures.most) == ({}, 0, 0)


# -- against a model that counts one by one ---------------------------------------------------------------------------

NAMES, TOPICS = ("a", "b", "c", "d"), ("t", "u")
SUBSCRIPTIONS = st.lists(st.sampled_from(TOPICS), min_size=1, unique=True).map("+".join)


@st.composite
def plans(draw):
    sizes = {topic: draw(st.integers(1, 5)) for topic in TOPICS}
    there = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    first = group = Group(sizes, parse_members(",".join(f"{name}:{draw(SUBSCRIPTIONS)}" for name in there), TOPICS))
    steps = []
    for number in range(draw(st.integers(1, 4))):
        present = sorted(group.by_name)
        away = sorted(set(NAMES) - set(present))
        texts = [f"add-partitions {draw(st.sampled_from(TOPICS))}=2"]
        texts += [f"join {draw(st.sampled_from(away))}:{draw(SUBSCRIPTIONS)}"] if away else []
        if present:
            one = draw(st.sampled_from(present))
            texts += [f"leave {one}", f"subscribe {one}={draw(SUBSCRIPTIONS)}", f"restart {one}={'z' * (number + 1)}"]
        verb, what = draw(st.sampled_from(texts)).split(" ", 1)
        step, group = parse_step(verb, what, group)
        steps.append(step)
    return Plan(first, tuple(steps), (*AMONG_MEMBERS, "thread-range", "thread-roundrobin-1.1"))


def renamed(strategy, change, owned):
    if not isinstance(change, Restart):
        return owned
    new = {old + suffix: name + suffix for old, name in change.new_names.items() for suffix in ("", "-0")}
    return {new.get(owner, owner): tps for owner, tps in owned.items()}


@given(plans())
def test_figures_are_those_of_counting_one_by_one(drawn):
    for found in rehearse(drawn):
        strategy, group = found.strategy, drawn.group
        before: Mapping[str, Any] = {}
        assert not found.failed
        for place, moment in enumerate(found.moments):
            change = drawn.steps[place - 1].change if place else None
            returned = set(change.new_names.values()) if isinstance(change, Restart) else set()
            group = changed(group, change) if change else group
            before = renamed(strategy, change, before)
            _count(strategy, group, before, moment, returned)
            before = moment.owned


def _count(strategy, group, before, moment, returned):
    topics_of = owners_of(group, strategy)
    moved = forced = 0
    for topic, size in group.sizes.items():
        for number in range(size):
            tp = TopicPartition(topic, number)
            had = [owner for owner, tps in before.items() if tp in tps]
            has = [owner for owner, tps in moment.owned.items() for each in tps if each == tp]
            takers = [owner for owner, topics in topics_of.items() if topic in topics]
            assert len(has) == bool(takers)
            assert set(has) <= set(takers)
            assert (tp in moment.unowned) == (not has)
            if had and has and had != has:
                moved += 1
                forced += had[0] not in takers
    loads = [len(tps) for tps in moment.owned.values()] or [0]
    figures = moment.figures
    assert (figures.moved, figures.forced, len(moment.came_from)) == (moved, forced, moved)
    assert (figures.fewest, figures.most, figures.balance) == (min(loads), max(loads), max(loads) - min(loads))
    held = {owner: set(tps) for owner, tps in before.items() if owner in topics_of}
    back = {owner for owner in held if any(owner in (name, f"{name}-0") for name in returned)}
    if not is_incremental(strategy):
        stops = sum(len(tps) for owner, tps in held.items() if owner not in back)
        assert figures.stopped == (stops if moment.rounds else 0)
        return
    held = {owner: set() if owner in back and moment.rounds else tps for owner, tps in held.items()}
    for each in moment.rounds:
        for owner, tps in each.revoked.items():
            assert set(tps) <= held[owner]
            held[owner] -= set(tps)
        for owner, tps in each.given.items():
            assert not any(set(tps) & others for others in held.values()), "given while somebody has it"
            held.setdefault(owner, set()).update(tps)
    assert {o: tps for o, tps in held.items() if tps} == {o: set(tps) for o, tps in moment.owned.items() if tps}
    assert figures.stopped == sum(len(tps) for each in moment.rounds for tps in each.revoked.values())


@pytest.mark.parametrize("strategy", EVERY)
def test_rehearsal_is_the_same_every_time(strategy):
    given_plan = plan(strategy, "C0,C1,C2", "t=7,u=3", "leave C0", "join C9")
    assert rehearse(given_plan) == rehearse(given_plan)


@given(plans())
def test_sticky_strategies_promise_evenness_and_the_fewest_moves_of_equal_subscriptions(drawn):
    """What `docs/assignment.md` promises. A member that restarts has forgotten what it had."""
    for found in rehearse(replace(drawn, strategies=("sticky", "cooperative-sticky", "uniform"))):
        group = drawn.group
        for place, moment in enumerate(found.moments):
            group = changed(group, drawn.steps[place - 1].change) if place else group
            loads = {owner: len(tps) for owner, tps in moment.owned.items()}
            for owner, tps in moment.owned.items():
                takers = {m.name for m in group.members if {tp.topic for tp in tps} & set(m.topics)}
                assert all(loads[owner] <= loads[taker] + 1 for taker in takers), found.strategy
            alike = len({frozenset(m.topics) for m in group.members}) <= 1
            restarted = place and isinstance(drawn.steps[place - 1].change, Restart)
            if alike and not restarted:
                assert not moment.figures.unnecessary, found.strategy
