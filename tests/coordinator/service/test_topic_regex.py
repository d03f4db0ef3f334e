"""Regular expressions for topics, beside what Kafka's re2j answered to the same ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coordinator.service.topic_regex import InvalidRegexError, compiled, problem

RECORDED = json.loads((Path(__file__).parent / "regex-answers.json").read_text(encoding="utf-8"))
#: Programs of more than 8 MiB, and repetitions that multiply to more than 1,000.
TOO_LARGE = {
    "(a{100}){11}": "invalid repeat count",
    "(a{1000}){1000}": "invalid repeat count",
    "((a{10}){10}){11}": "invalid repeat count",
    "((a{100}){100}){100}": "invalid repeat count",
    "(\\pL{500}){2}": "pattern too large",
    "(\\pL{1000})": "pattern too large",
}


def answer(pattern: str) -> str | list[int]:
    try:
        regex = compiled(pattern)
    except InvalidRegexError as error:
        return str(error)
    return [place for place, name in enumerate(RECORDED["names"]) if regex.fullmatch(name.encode()) is not None]


def test_expressions_match_and_are_refused_as_by_re2j() -> None:
    wrong = {
        pattern: (expected, found)
        for pattern, expected in RECORDED["answers"].items()
        if (found := answer(pattern)) != TOO_LARGE.get(pattern, expected)
    }
    assert not wrong
    assert len(RECORDED["answers"]) > 350
    assert TOO_LARGE.keys() < RECORDED["answers"].keys()


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("\\QC\\C\\E\\C", "invalid escape sequence"),  # the first \C is quoted
        ("\\QC\\C\\E", None),
        ("\\Q\\C\n", None),
        ("[(?<n>](?<n>a)", None),
        ("(?<n>a)[(?<n>]", None),
        ("[^](?P<n>a)[]](?P<n>b)", None),
        ("[[:alpha:](?<n>a)](?<n>b)(?<m>c)", None),
        ("[{999999999}]", None),
        ("[:alpha:](?<n>a)(?<n>b)", "duplicate capture group name"),
        ("a{1,999999999}", "invalid repeat count"),
        ("a{099999999999}", None),  # not a count
        ("\\p{^Kawi}", "invalid character class range"),
        ("[\\p{Kawi}]", "invalid character class range"),
        ("[\\é]", None),
        ("(?<=a)b", "invalid named capture"),
        ("\ud800", "invalid UTF-8"),
    ],
)
def test_what_only_re2j_refuses_is_found_where_it_stands(pattern: str, why: str | None) -> None:
    assert problem(pattern) == why


@pytest.mark.parametrize("pattern", ["\\pL" * 101, "(\\pL{0,300})"])
def test_expression_that_would_take_long_to_compile_is_refused(pattern: str) -> None:
    assert problem(pattern) == "pattern too large"


def test_thousands_of_names_are_an_expression_that_can_be_used() -> None:
    regex = compiled("|".join(f"topic-{number}" for number in range(3_000)))
    assert regex.fullmatch(b"topic-2999") is not None
    assert regex.fullmatch(b"topic-3000") is None
