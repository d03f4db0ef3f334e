"""Topic patterns: which topics they match; Java's expressions are tested in `tests/kernel/test_java_regex.py`.

The first three are Kafka 0.8.2's TopicFilterTest, under its names.
"""

from __future__ import annotations

import pytest

from kernel.errors import UserError
from zkconsumer.znodes.filters import BLACK_LIST, WHITE_LIST, TopicFilter, cleaned, matching
from zkconsumer.znodes.payloads import registration_payload

OFFSETS = "__consumer_offsets"


def allowed(topic_filter: TopicFilter, topic: str, *, exclude_internal: bool) -> bool:
    return bool(matching(topic_filter.kind, topic_filter.pattern, [topic], exclude_internal=exclude_internal))


def test_whitelists():
    two = TopicFilter.white("white1,white2")
    assert two == TopicFilter(WHITE_LIST, "white1|white2")
    for exclude in (True, False):
        assert allowed(two, "white2", exclude_internal=exclude)
        assert not allowed(two, "black1", exclude_internal=exclude)
    everything = TopicFilter.white(".+")
    assert allowed(everything, "alltopics", exclude_internal=True)
    assert not allowed(everything, OFFSETS, exclude_internal=True)
    assert allowed(everything, OFFSETS, exclude_internal=False)
    prefix = TopicFilter.white("white_listed-topic.+")
    assert allowed(prefix, "white_listed-topic1", exclude_internal=True)
    assert not allowed(prefix, "black1", exclude_internal=True)
    lookahead = TopicFilter.white("test-(?!bad\\b)[\\w]+")
    assert allowed(lookahead, "test-good", exclude_internal=True)
    assert not allowed(lookahead, "test-bad", exclude_internal=True)


def test_blacklists():
    one = TopicFilter.black("black1")
    assert one == TopicFilter(BLACK_LIST, "black1")
    for exclude in (True, False):
        assert allowed(one, "white2", exclude_internal=exclude)
        assert not allowed(one, "black1", exclude_internal=exclude)
    assert not allowed(one, OFFSETS, exclude_internal=True)
    assert allowed(one, OFFSETS, exclude_internal=False)


@pytest.mark.parametrize(
    ("pattern", "key"),
    [
        ('-"-', '-\\"-'),
        ("-\\-", "-\\\\-"),
        ("-/-", "-\\/-"),
        ("-\\b-", "-\\\\b-"),
        ("-\\f-", "-\\\\f-"),
        ("-\\n-", "-\\\\n-"),
        ("-\\r-", "-\\\\r-"),
        ("-\\t-", "-\\\\t-"),
        ("-\\u0000-", "-\\\\u0000-"),
        ("-\\u001f-", "-\\\\u001f-"),
        ("-\\u007f-", "-\\\\u007f-"),
        ("-\\u009f-", "-\\\\u009f-"),
        # Not in Kafka's test: the escaped characters, and one that 0.8.2.2 was seen to write unescaped.
        ("-\x07\b\f\n\r\t-", "-\\u0007\\b\\f\\n\\r\\t-"),
        ("-\x7f\x9f\xa0-", "-\\u007f\\u009f\xa0-"),
        ('al\\w+/?"?é?', 'al\\\\w+\\/?\\"?é?'),
    ],
)
def test_wildcard_topic_count_get_topic_count_map_escape_json(pattern, key):
    payload = registration_payload({pattern: 1}, 5, WHITE_LIST)
    written = f'{{"version":1,"subscription":{{"{key}":1}},"pattern":"white_list","timestamp":"5"}}'
    assert payload.decode() == written


@pytest.mark.parametrize(
    ("raw", "pattern"),
    [
        ('alpha,"beta" ,de.*', 'alpha|"beta"|de.*'),  # recorded from 0.8.2.2: quotes inside stay
        (' "t.*" ', "t.*"),
        ("'a,b'", "a|b"),
        ("\t t \x00", "t"),
        ("\xa0t", "\xa0t"),
        ("", ""),
    ],
)
def test_a_pattern_is_cleaned_up_as_the_original_does(raw, pattern):
    assert cleaned(raw) == pattern
    assert TopicFilter.white(raw).pattern == pattern


def test_whole_name_must_match_and_topics_are_sorted():
    topics = ["tt", "t1", "at", "t"]
    assert matching(WHITE_LIST, "t.?", topics, exclude_internal=True) == ("t", "t1", "tt")
    assert matching(BLACK_LIST, "t.?", topics, exclude_internal=True) == ("at",)
    assert matching(WHITE_LIST, "", topics, exclude_internal=True) == ()


def test_invalid_filter_is_refused_and_named():
    with pytest.raises(UserError, match=r"a\(b is an invalid regex"):
        TopicFilter.white("a(b")


def test_error_of_a_repetition_with_a_comma_explains_the_comma():
    with pytest.raises(UserError, match="a comma in a topic pattern means"):
        TopicFilter.white("t{1,2}")
