"""No topic pattern takes forever: RE2 matches most, and what only `re` can match is refused if that may be slow."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from contextlib import suppress

import pytest

from kernel.errors import UserError
from kernel.java_regex import compiled

#: Slow in `re`, but not in RE2.
LINEAR = [
    # repetitions inside a repetition
    "(a+)+b",
    "(a|a)*b" * 2,
    "(a|b|ab)*c",
    "(?:a*)*b",
    "(.*a){25}b",
    "(a?a?)*b",
    "([a-z]+-?)*x",
    "(?i:([a-z]+A)*x)",
    # repetitions in a row, also across groups and branches
    ".*a.*a.*a.*ab",
    "(.*a)(.*a)(.*a)(.*a)(.*a)(.*a)x",
    "(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)x",
    "(?:.*a){3}(?:.*a){3}(?:.*a){3}b",
    "(a*)b?(a*)b?(a*)b?(a*)b?(a*)b?(a*)b?x",
    "(?:.*a|b)(?:.*a|b)(?:.*a|b)(?:.*a|b)x",
    "(((.*a).*a).*a).*ab",
    ".*a.*a.*a[a-z]*",
    "(?i:a*A*a*A*a*A*b)",
    "é*é*é*é*é*x",
    "a?" * 30 + "a" * 30,
    "a{0,3}" * 15 + "b",
    "(?:ab|[ab]b)" * 30 + "c",
    # a repetition that matches nothing
    r"(?:\b){4000000000}",
]

#: RE2 cannot match these.
SLOW = [
    "((a{0,30}){0,30}){0,30}b",
    r"(a+)+\1",
    r"(?=(a|a)*b)(?:\b){4000000000}",
    "(?<!x)" + "(?:ab|[ab]b)" * 30 + "c",
    "(?<!x)" + "a?" * 30 + "a" * 30,
    "(?=.*a.*a.*a.*a.*ab).*",
    "(?!.*a.*a.*a.*a.*ab).*",
    "(?>.*a.*a.*a.*a.*ab)x",
    "(?:.*a.*a.*a.*ab)++x",
    r"(?=a)(?:\b){4000000000}",
    "(?=a)" + "(?:" * 60 + "a+" + "){1,2}" * 60,
]

FAST = {
    ".*": "orders",
    "[a-z]+": "orders",
    "orders-.*": "orders-eu",
    "topic[0-9]+": "topic12",
    "foo.*bar.*": "foo-bar-1",
    "(a|b)-.*": "a-1",
    "(a|b)+c": "abc",
    "(a|ab)*c": "aabc",
    "(foo|foobar)-.*": "foobar-1",
    "(orders|payments)-.*": "orders-1",
    "(?!(?:x)$).*": "xx",
    r"test-(?!bad\b)\w+": "test-good",
    "(?=.*eu)(?=.*prod).*": "prod-eu",
    ".*orders.*v[0-9]+.*": "x-orders-v12-y",
    ".*-.*-.*-.*": "a-b-c-d",
    ".*a.*a.*ab": "aaab",
    "(?:.*a){3}b": "aaab",
    "[a-z]+-[a-z]+-[a-z]+-[a-z]+-[0-9]+": "a-b-c-d-1",
    "[^-]*-[^-]*-[^-]*-[^-]*-[^-]*": "a-b-c-d-1",
    "(?:[a-z]+-){3}(?:[a-z]+-){3}[0-9]+": "a-b-c-d-e-f-1",
    "(?i:[a-z]+-){5}[0-9]+": "a-B-c-D-e-1",
    r"([a-z]+\.)*events": "a.bc.events",
    "(-[a-z]+)*": "-a-b",
    r"[a-z]+(\.[a-z]+)*\.events": "a.bc.events",
    r"[0-9]{1,3}(\.[0-9]{1,3}){3}": "10.0.0.1",
    "a*b*c*d*e*f*g*x": "abbgx",
    "[a-z]++[a-z-]*": "ab-c",
    "|".join(f"orders-{n}" for n in range(200)): "orders-150",
}

#: Most end in a character that few patterns accept, so that a match fails only after all ways are tried.
HOSTILE = [
    *(
        letters * (248 // len(letters)) + "!"
        for letters in ("a", "-", ".", "1", "ab", "a-", "a.", "aA", "orders", "1.")
    ),
    *("a" * 249, "a" * 124 + "b" * 124 + "!", "-" * 124 + "a" * 124 + "!", "-" * 186 + "1" * 62 + "!"),
]
#: Runs in a process, where a match that never ends can be stopped. The limit is CPU time, so that a busy machine does
#: not shorten it.
MATCHER = """
import json, resource, sys
from kernel.java_regex import compiled
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]), int(sys.argv[1])))
asked = json.load(sys.stdin)
for pattern in asked["patterns"]:
    print(pattern, flush=True)
    for name in asked["names"]:
        compiled(pattern).fullmatch(name)
"""
PIECES = [
    *("a", "b", "-", ".", "x", "[a-z]", "[ab]", "[^-]", ".*", "a*", "[a-z]+", "a?", "b?", "(", "(", "(?:", "|", ")"),
    *(")", "*", "+", "?", "*?", "++", "{2}", "{3}", "{0,3}", "{2,}", "(?=", "(?!", "(?i:", "(?>", "A", r"\b", "$"),
    r"\1",
]


def match_all(patterns: list[str], seconds: int) -> None:
    """Match every pattern with every hostile name within a limit of CPU seconds."""
    asked = json.dumps({"patterns": patterns, "names": HOSTILE})
    command = [sys.executable, "-c", MATCHER, str(seconds)]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False, timeout=20 * seconds)
    assert done.returncode == 0, f"stopped at {done.stdout.splitlines()[-1:]}: {done.stderr}"
    assert done.stdout.split("\n")[:-1] == patterns


def accepted(number: int, seed: int) -> list[str]:
    """Some random patterns that are accepted."""
    dice = random.Random(seed)
    found = []
    for _ in range(number):
        drawn = "".join(dice.choice(PIECES) for _ in range(dice.randint(2, 14)))
        drawn += ")" * (drawn.count("(") - drawn.count(")")) + dice.choice(["", "x", "*", "{3}x", "+b"])
        with suppress(UserError):
            compiled(drawn)
            found.append(drawn)
    return found


@pytest.mark.parametrize("pattern", SLOW)
def test_pattern_that_may_take_forever_is_refused_with_what_to_do(pattern):
    with pytest.raises(UserError, match=re.escape(pattern) + " may take forever to match: .*list the topics"):
        compiled(pattern)


@pytest.mark.parametrize(("pattern", "name"), FAST.items())
def test_pattern_that_splits_a_name_in_few_ways_is_accepted(pattern, name):
    assert compiled(pattern).fullmatch(name)


def test_deep_nesting_is_judged_at_once():
    assert compiled("(?:" * 60 + "a" + "-)?" * 60).fullmatch("a" + "-" * 60)
    assert compiled("(?!b)" + "(?:" * 60 + "a" + "-)?" * 20 + "-)" * 40)


def test_accepted_patterns_match_the_longest_hostile_names_in_little_time():
    match_all([*LINEAR, *FAST], 60)


def test_accepted_random_patterns_match_the_longest_hostile_names_in_little_time():
    patterns = accepted(1000, seed=1)
    assert len(patterns) > 100
    assert any(isinstance(compiled(each), re.Pattern) for each in patterns)
    match_all(patterns, 60)


@pytest.mark.long
def test_many_accepted_random_patterns_match_the_longest_hostile_names_in_little_time():
    for seed in range(2, 30):
        match_all(accepted(1000, seed), 120)
