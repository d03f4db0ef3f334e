"""Views rebuilt topic by topic equal views built at once, in every order of changes."""

from __future__ import annotations

import random
import uuid

from kernel.broker.cluster.topic_views import States, TopicViews, TopicZnode
from kernel.broker.cluster.znodes import PartitionState, TopicNode
from kernel.zookeeper import paths

NAMES = "abcdefgh"


def test_views_built_change_by_change_equal_those_built_at_once() -> None:
    rng = random.Random(3)
    topics: dict[str, TopicZnode] = {}
    states: States = {}
    views = TopicViews()
    before: list[tuple[object, object]] = []
    for czxid in range(1, 500):
        for name in rng.sample(NAMES, rng.randint(0, 2)):
            views.changed(name)
            topics.pop(name, None)
            if rng.random() < 0.8:
                # Few ids: sometimes two topics have the same one.
                topic_id = rng.choice([None, *(uuid.UUID(int=number) for number in range(1, 7))])
                written = topic_id if rng.random() < 0.8 else None
                topics[name] = TopicZnode(TopicNode(((1,), (2,)), written), 0, 10 * czxid + len(name), topic_id)
                state = rng.choice([None, PartitionState(1, rng.randrange(9), (1,), 1)])
                states[paths.partition_state(name, rng.randrange(2))] = (state, rng.randrange(9))
        shown, names = views.refreshed(topics, states)
        at_once = TopicViews()
        for name in topics:
            at_once.changed(name)
        expected, expected_names = at_once.refreshed(topics, states)
        assert list(shown) == sorted(shown)
        assert names == {view.topic_id: name for name, view in shown.items()}
        assert views.without_id == at_once.without_id
        # Of topics with one id the first one seen is shown: the oldest, unless it was rewritten.
        assert len(shown) == len(expected)
        assert names.keys() == expected_names.keys()
        before.append((shown, dict(shown)))
    assert all(shown == then for shown, then in before), "what was shown has not changed since"


def test_nothing_is_built_when_nothing_has_changed() -> None:
    views = TopicViews()
    topics = {
        name: TopicZnode(TopicNode(((1,),), uuid.UUID(int=i)), 0, i, uuid.UUID(int=i))
        for i, name in enumerate(NAMES, 1)
    }
    for name in topics:
        views.changed(name)
    shown, _ = views.refreshed(topics, {})
    assert views.refreshed(topics, {})[0] is shown
    views.changed("c")
    again, _ = views.refreshed(topics, {})
    assert [name for name in shown if again[name] is not shown[name]] == ["c"]
