"""Java's regular expressions have Java's meaning here; `tests/originals` asks Java itself."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.errors import UserError
from kernel.java_regex import compiled


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
def test_java_expression_has_javas_meaning(pattern, takes, leaves):
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
        compiled(pattern)


@given(st.text(st.sampled_from("ab1.*+?|()[]{}\\^$-&QEpwdx<>=!:iu#~"), max_size=12))
def test_any_text_is_accepted_or_refused(text):
    try:
        regex = compiled(text)
    except UserError:
        return
    assert regex.fullmatch("b1") is None or regex.fullmatch("b1").span() == (0, 2)


@given(st.text(min_size=1))
def test_quoted_text_matches_only_itself(text):
    quoted = "".join(f"\\Q{part}\\E\\\\E" for part in text.split("\\E"))[: -len("\\\\E")]
    assert compiled(quoted).fullmatch(text)
    assert not compiled(quoted).fullmatch(text + "x")
