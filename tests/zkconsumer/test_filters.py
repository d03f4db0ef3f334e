r"""Topic patterns: which topics they take, and that Java's expressions mean here what they mean there.

The first three are Kafka 0.8.2's TopicFilterTest under its own names.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.errors import UserError
from zkconsumer.filters import BLACK_LIST, WHITE_LIST, TopicFilter, cleaned, matching
from zkconsumer.java_regex import compiled
from zkconsumer.payloads import registration_payload

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
        # Beyond Kafka's own: the characters themselves, and one that 0.8.2.2 was seen to write as it is.
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


def test_the_whole_name_has_to_match_and_topics_come_sorted():
    topics = ["tt", "t1", "at", "t"]
    assert matching(WHITE_LIST, "t.?", topics, exclude_internal=True) == ("t", "t1", "tt")
    assert matching(BLACK_LIST, "t.?", topics, exclude_internal=True) == ("at",)
    assert matching(WHITE_LIST, "", topics, exclude_internal=True) == ()


@pytest.mark.parametrize(
    ("pattern", "takes", "leaves"),
    [
        (r"\Qa.b\E.*", ["a.bc"], ["axbc"]),
        (r"\Qa.b", ["a.b"], ["axb"]),
        (r"[\Q.-\E]+", [".-."], ["a"]),
        (r"(?<first>a|b)-\k<first>", ["a-a", "b-b"], ["a-b"]),
        (r"(a)(b)\1\2", ["abab"], ["abba"]),
        (r"(a)\10", ["aa0"], ["a0"]),
        ("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\\10", ["abcdefghijj"], ["abcdefghija0"]),
        (r"a(?i)b|c", ["aB", "ab", "C"], ["AB"]),
        (r"x(a(?i)b|c)d", ["xaBd", "xCd"], ["xABd", "xabD"]),
        (r"(?i)abc(?-i)d", ["ABCd"], ["abcD"]),
        (r"(?i:a)b", ["Ab"], ["AB"]),
        (r"(?iu)topic", ["TOPIC"], []),
        (r"\p{Lower}+\p{Digit}", ["ab1"], ["Ab1", "abc"]),
        (r"\pL\P{Alpha}", ["a1"], ["aa", "1a"]),
        (r"[\p{Upper}_]+", ["A_B"], ["a"]),
        (r"[^\P{Alpha}]+", ["ab"], ["a1"]),
        (r"[\w-.]+", ["a-b.c"], ["a b"]),
        (r"[a-]+", ["a-a"], ["b"]),
        (r"[]a]+", ["a]"], ["b"]),
        (r"[a||c~~-]+", ["a|c~-"], ["d"]),
        (r"a++b", ["aab"], ["b"]),
        (r"(?>a+)b", ["aab"], []),
        (r"a{2}b?", ["aab", "aa"], ["ab"]),
        (r"t]}", ["t]}"], []),
        (r"\Aa\z", ["a"], ["aa"]),
        (r"a\Z", ["a"], ["ab"]),
        (r"\x41\x{42}\u0043\0104\cE", ["ABCD\x05"], []),
        (r"a\.b\-c", ["a.b-c"], ["axb-c"]),
        (r"[\d&]+", ["1&2"], ["a"]),
        (r"a#b&c", ["a#b&c"], []),
        (r"(?=a)(?<=)ab(?<!c)", ["ab"], []),
    ],
)
def test_an_expression_of_java_means_what_it_means_there(pattern, takes, leaves):
    for topic in takes:
        assert compiled(pattern).fullmatch(topic), topic
    for topic in leaves:
        assert not compiled(pattern).fullmatch(topic), topic


@pytest.mark.parametrize(
    "pattern",
    [
        *("a(b", "a)b", "[a", "a\\", "*a", "a{", "a{b}", "a{1|2}", "(?P<n>a)", "(?#c)a", "(?(1)a|b)", "(?x)a"),
        *(r"\G", r"\R", r"\y", r"\E", r"\8", r"\k<x>", r"\x4", r"\p{IsGreek}", r"\p", "[a-z&&[^b]]", "[a[b]]", "[z-a]"),
        *(r"[a-\d]", "(?<=a+)b", "a{99999999999999999999}", "(" * 3000 + ")" * 3000, r"\x{110000}", "(?<n>", "(?"),
    ],
)
def test_an_expression_that_cannot_be_used_is_refused_and_named(pattern):
    with pytest.raises(UserError, match=re.escape(pattern[:20])):
        TopicFilter.white(pattern)


def test_a_repetition_with_a_comma_says_what_became_of_the_comma():
    with pytest.raises(UserError, match="a comma in a topic pattern means"):
        TopicFilter.white("t{1,2}")


@given(st.text(st.sampled_from("ab1.*+?|()[]{}\\^$-&QEpwdx<>=!:iu#~"), max_size=12))
def test_any_text_is_an_expression_or_refused(text):
    try:
        regex = compiled(text)
    except UserError:
        return
    assert regex.fullmatch("b1") is None or regex.fullmatch("b1").span() == (0, 2)


@given(st.text(min_size=1))
def test_a_quoted_text_matches_itself_alone(text):
    quoted = "".join(f"\\Q{part}\\E\\\\E" for part in text.split("\\E"))[: -len("\\\\E")]
    assert compiled(quoted).fullmatch(text)
    assert not compiled(quoted).fullmatch(text + "x")
