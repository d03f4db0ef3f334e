"""When topics make a member rejoin: those that match its pattern, and those that the leader assigned."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.membership.subscription import TopicsSeen, by_name, by_pattern
from coordinator.membership.topic_changes import (
    Rejoin,
    Resubscribe,
    WatchedTopics,
    names_wanted,
    topic_reaction,
    wait_ms,
)

T = frozenset({"t"})
BY_NAME = by_name({"t": 1})
BY_PATTERN = by_pattern("t.*", 1, exclude_internal=True)


def seen(**sizes: int) -> TopicsSeen:
    return TopicsSeen(sizes)


@pytest.mark.parametrize(
    ("assigned_sizes", "now", "changed"),
    [
        ({"t": 4}, {"t": 4}, ()),
        ({"t": 4}, {"t": 4, "others": 9}, ()),
        ({"t": 4}, {"t": 6}, ("t",)),
        ({"t": 4}, {"t": 2}, ("t",)),  # deleted and created again, smaller
        ({"t": 4}, {}, ("t",)),
        ({"t": 0}, {}, ()),
        ({"t": 0}, {"t": 1}, ("t",)),  # did not exist when partitions were assigned
        ({"t": 4, "of-a-follower": 2, "z": 1}, {"t": 4, "of-a-follower": 3}, ("of-a-follower", "z")),
    ],
)
def test_leader_rejoins_when_a_topic_has_other_partitions_than_it_assigned(assigned_sizes, now, changed):
    reaction = topic_reaction(WatchedTopics(0, T, assigned_sizes), BY_NAME, seen(**now))
    assert reaction == (Rejoin(changed) if changed else None)


def test_follower_leaves_a_topic_that_grows_to_the_leader():
    assert topic_reaction(WatchedTopics(0, T), BY_NAME, seen(t=4)) is None
    assert topic_reaction(WatchedTopics(0, T), BY_NAME, seen(t=40)) is None
    assert topic_reaction(WatchedTopics(0, T), BY_NAME, seen()) is None
    assert topic_reaction(WatchedTopics(0, T), BY_PATTERN, seen(t=40)) is None


@pytest.mark.parametrize("assigned_sizes", [None, {"t": 4}])
def test_member_with_a_pattern_rejoins_when_it_matches_other_topics(assigned_sizes):
    watched = WatchedTopics(0, T, assigned_sizes)
    assert topic_reaction(watched, BY_PATTERN, seen(t=4, other=1)) is None
    assert topic_reaction(watched, BY_PATTERN, seen(t=4, t2=1)) == Resubscribe(frozenset({"t", "t2"}))
    assert topic_reaction(watched, BY_PATTERN, seen(other=1)) == Resubscribe(frozenset())


def test_change_of_a_members_own_topics_includes_what_the_leader_sees():
    assert topic_reaction(WatchedTopics(0, T, {"t": 4}), BY_PATTERN, seen(t=5, t2=1)) == Resubscribe(
        frozenset({"t", "t2"})
    )


_sizes = st.dictionaries(st.sampled_from(["t", "t1", "t2", "other"]), st.integers(1, 3))


@given(before=_sizes, now=_sizes, leads=st.booleans(), patterned=st.booleans())
def test_handled_change_of_topics_is_not_reported_again(before, now, leads, patterned):
    subscription = BY_PATTERN if patterned else BY_NAME
    topics = subscription.topics_of(0, TopicsSeen(before))
    watched = WatchedTopics(0, topics, TopicsSeen(before).of(topics | {"other"}) if leads else None)
    reaction = topic_reaction(watched, subscription, TopicsSeen(now))
    if before == now:
        assert reaction is None
    if reaction is not None:
        after = subscription.topics_of(0, TopicsSeen(now))
        memory = TopicsSeen(now).of(after | {"other"}) if leads else None
        assert topic_reaction(WatchedTopics(0, after, memory), subscription, TopicsSeen(now)) is None


def test_leader_looks_up_the_groups_topics_and_a_follower_its_own():
    assert names_wanted(BY_NAME, [None]) == {"t"}
    assert names_wanted(BY_NAME, [None, {"t": 1, "other": 0}]) == {"t", "other"}
    assert names_wanted(BY_PATTERN, [{"t": 1}]) is None


def test_metadata_is_refreshed_when_old_and_soon_while_a_topic_is_missing():
    def wait(failed_refreshes: int, missing: bool = True, backoff_ms: int = 100, max_age_ms: int = 300_000) -> int:
        return wait_ms(missing=missing, failed_refreshes=failed_refreshes, max_age_ms=max_age_ms, backoff_ms=backoff_ms)

    assert wait(0, missing=False) == 300_000
    assert [wait(n) for n in (0, 1, 2, 3, 4, 5, 1000)] == [100, 200, 400, 800, 1000, 1000, 1000]
    assert wait(9, max_age_ms=500) == 500
    assert wait(9, backoff_ms=5_000) == 5_000
    assert wait(0, backoff_ms=0) == 0
