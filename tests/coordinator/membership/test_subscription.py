"""Subscriptions by name and by pattern, and the part of each stream."""

from __future__ import annotations

import pytest

from coordinator.membership.subscription import TopicsSeen, by_name, by_pattern
from kernel.errors import UserError

SEEN = TopicsSeen(
    {"orders": 3, "orders-eu": 1, "invoices": 2, "__consumer_offsets": 50}, frozenset({"__consumer_offsets"})
)


def test_stream_subscribes_to_topics_with_more_streams_than_its_number():
    wanted = by_name({"a": 1, "b": 3})
    assert [wanted.topics_of(n, SEEN) for n in range(4)] == [{"a", "b"}, {"b"}, {"b"}, frozenset()]
    assert wanted.streams == 3
    assert wanted.names == {"a", "b"}


def test_topics_by_name_are_subscribed_to_whether_they_exist_or_not():
    assert by_name({"nowhere": 1}).topics_of(0, SEEN) == {"nowhere"}


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("orders.*", {"orders", "orders-eu"}),
        ("orders", {"orders"}),
        ("rders", set()),
        (".*", {"orders", "orders-eu", "invoices"}),
        ("nothing-of-this.*", set()),
        (r"\Qorders-\E\p{Lower}+", {"orders-eu"}),
        ("(?!orders).*", {"invoices"}),
        ("(?i)INVOICES", {"invoices"}),
    ],
)
def test_pattern_matches_whole_names_by_javas_rules_except_internal_topics(pattern, matched):
    wanted = by_pattern(pattern, 2, exclude_internal=True)
    assert wanted.topics_of(0, SEEN) == wanted.topics_of(1, SEEN) == matched
    assert wanted.topics_of(2, SEEN) == frozenset()
    assert wanted.names is None


def test_pattern_matches_internal_topics_if_they_are_not_excluded():
    assert "__consumer_offsets" in by_pattern("__.*", 1, exclude_internal=False).topics_of(0, SEEN)
    assert not by_pattern("__.*", 1, exclude_internal=True).topics_of(0, SEEN)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: by_name({}), "at least one topic"),
        (lambda: by_name({"t": 0}), "'t' needs at least one stream"),
        (lambda: by_name({"": 1}), "the name is empty"),
        (lambda: by_name({"a b": 1}), "may hold only ASCII"),
        (lambda: by_pattern("", 1, exclude_internal=True), "topic pattern is empty"),
        (lambda: by_pattern("t.*", 0, exclude_internal=True), r"'t\.\*' needs at least one stream"),
        (lambda: by_pattern("a(b", 1, exclude_internal=True), r"a\(b is an invalid regex"),
        (lambda: by_pattern("[a-z&&[^x]]", 1, exclude_internal=True), "nested or intersected character classes"),
    ],
)
def test_invalid_subscription_is_refused_with_the_reason(make, complaint):
    with pytest.raises(UserError, match=complaint):
        make()
