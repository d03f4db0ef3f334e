"""Every check says what it means and what it needs to find, and is never as expected without it."""

from __future__ import annotations

import re

from comparison.pipeline.figures.deciding import EVIDENCE, EXPECTED
from comparison.pipeline.figures.verdicts import CHECKS
from comparison.results.metrics import METRICS
from comparison.scenarios.plan.wording import summary_of
from docs.generators.checks_page import PAGE
from tests.support.runs.results import run


def test_every_check_says_what_it_needs() -> None:
    assert EVIDENCE.keys() == {check.decide for check in CHECKS}
    assert all(text and text[0].islower() and not text.endswith(".") for text in EVIDENCE.values())


def test_every_check_and_condition_has_a_sentence_of_its_own() -> None:
    sentences = {check.decide: summary_of(check.decide) for check in CHECKS}
    assert len(set(sentences.values())) == len(sentences)
    conditions = {check.given: summary_of(check.given) for check in CHECKS}
    for text in (*sentences.values(), *conditions.values()):
        assert text.endswith("."), text
        assert text[0].isupper() or text.startswith("`"), text


def test_page_of_the_checks_has_them_all() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"^- \*\*(.+?)\*\*", text, re.MULTILINE)) == {check.name for check in CHECKS}


def test_no_check_passes_in_a_run_that_shows_nothing() -> None:
    passed = set()
    for check in CHECKS:
        nothing = run("join", check.designs[0], changes=[], **dict.fromkeys(METRICS))
        result = check.decide(nothing)
        if result is not None and result[0] is EXPECTED:
            passed.add(check.name)
    assert passed == set()
