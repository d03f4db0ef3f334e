"""What the `consumer` design's assignors promise for any group."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.assignors.target.group import id_order
from kernel.assignors.target.registry import TARGET_ASSIGNORS
from tests.support.groups.targets import answer, runs

TOPICS = {f"t{n}": f"{n * 0x9E3779B97F4A7C15F39CC0605CEDC834 % 2**128:032x}" for n in range(1, 7)}


@st.composite
def steps(draw, alike):
    partitions = draw(st.dictionaries(st.sampled_from(sorted(TOPICS)), st.integers(0, 20), min_size=1))
    common = draw(st.lists(st.sampled_from(sorted(partitions)), min_size=1, unique=True))
    of_member = st.just(common) if alike else st.lists(st.sampled_from(sorted(partitions)), min_size=1, unique=True)
    ids = draw(st.lists(st.text("abcXYZ_-.09", min_size=1, max_size=5), min_size=1, max_size=14, unique=True))
    present = [(t, p) for t in sorted(partitions) for p in range(partitions[t])]
    holders = draw(st.lists(st.sampled_from([None, *ids]), min_size=len(present), max_size=len(present)))
    members = []
    for member in ids:
        owned = {at for at, holder in zip(present, holders, strict=True) if holder == member}
        members.append([member, draw(of_member), None, runs(owned), None])
    return {"partitions": partitions, "topic_ids": TOPICS, "members": members}


def topics_of(step):
    return {member: set(topics) for member, topics, *_ in step["members"]}


def assert_complete(step, found):
    """Every partition that somebody subscribes to has one owner, which subscribes to it."""
    subscribed = topics_of(step)
    partitions = sorted(at for owned in found.values() for at in owned)
    wanted = set().union(*subscribed.values())
    assert partitions == [(t, p) for t in sorted(wanted) for p in range(step["partitions"][t])]
    assert all(topic in subscribed[member] for member, owned in found.items() for topic, _ in owned)


def kept(step, found):
    return sum(len(found[m] & {(t, p) for t, ps in owned for p in ps}) for m, _, _, owned, _ in step["members"])


@given(steps(alike=True))
def test_uniform_balances_within_one_and_then_keeps_the_most(step):
    found = answer(step, "uniform")
    assert_complete(step, found)
    loads = [len(owned) for owned in found.values()]
    assert max(loads) - min(loads) <= 1
    quota, extras = divmod(sum(loads), len(loads))
    topics = topics_of(step)
    had = [sum(len(ps) for t, ps in owned if t in topics[m]) for m, _, _, owned, _ in step["members"]]
    assert kept(step, found) == sum(min(n, quota) for n in had) + min(extras, sum(n > quota for n in had))


@given(steps(alike=False))
def test_mixed_balances_each_topic_and_moves_nothing_the_second_time(step):
    found = answer(step, "uniform")
    assert_complete(step, found)
    again = {**step, "members": [[m, ts, i, runs(found[m]), g] for m, ts, i, _, g in step["members"]]}
    assert answer(again, "uniform") == found


@given(steps(alike=False))
def test_range_divides_every_topic_in_order_of_names(step):
    found = answer(step, "range")
    assert_complete(step, found)
    for topic, size in step["partitions"].items():
        takers = sorted(m for m, topics in topics_of(step).items() if topic in topics)
        dealt = [p for m in takers for t, p in sorted(found[m]) if t == topic]
        assert dealt == list(range(size if takers else 0))


def test_range_puts_static_members_first():
    members = [["a", ["t1"], None, [], None], ["z", ["t1"], "i2", [], None], ["b", ["t1"], "i1", [], None]]
    step = {"partitions": {"t1": 3}, "topic_ids": TOPICS, "members": members}
    assert answer(step, "range") == {"b": {("t1", 0)}, "z": {("t1", 1)}, "a": {("t1", 2)}}


@pytest.mark.parametrize(("theirs", "loads"), [(["t1", "t2"], [[2, 2], [2, 2]]), (["t2"], [[2, 2], [3, 1]])])
def test_assignors_are_found_by_name_and_uniform_is_the_default(theirs, loads):
    members = [["a", ["t1", "t2"], None, [], None], ["b", theirs, None, [], None]]
    step = {"partitions": {"t1": 2, "t2": 2}, "topic_ids": TOPICS, "members": members}
    assert list(TARGET_ASSIGNORS) == ["uniform", "range"]
    found = [answer(step, name) for name in TARGET_ASSIGNORS]
    assert [[len(target[member]) for member in ("a", "b")] for target in found] == loads


def test_uuids_are_compared_by_signed_halves():
    ids = [n.to_bytes(16) for n in (2**127, 2**128 - 1, 0, 2**63, 2**64)]
    assert sorted(ids, key=id_order) == [ids[0], ids[1], ids[3], ids[2], ids[4]]


# Answers of Kafka 4.1.1's UniformAssignor and RangeAssignor: chains of groups that live on from step to step.

with gzip.open(Path(__file__).parent / "recorded.jsonl.gz", "rt", encoding="utf-8") as lines:
    CHAINS = [json.loads(line) for line in lines]


@pytest.mark.parametrize("chain", [pytest.param(chain, id=chain["id"]) for chain in CHAINS])
def test_target_assignors_answer_as_kafkas_classes(chain):
    for step in chain["steps"]:
        expected = {member: {(t, p) for t, ps in runs for p in ps} for member, runs in step["expect"].items()}
        assert answer(step, chain["assignor"]) == expected


def test_recorded_targets_are_all_here():
    steps = [(chain["assignor"], step) for chain in CHAINS for step in chain["steps"]]
    assert [sum(name == wanted for name, _ in steps) for wanted in ("uniform", "range")] == COUNTS
    mixed = [step for _, step in steps if len({frozenset(topics) for _, topics, *_ in step["members"]}) > 1]
    assert len(mixed) > 100


COUNTS = [264, 101]
