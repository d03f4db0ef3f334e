"""Every check says what it needs to find, and is never as expected without it."""

from __future__ import annotations

from comparison.metrics import METRICS
from comparison.pipeline.figures.checks import EXPECTED
from comparison.pipeline.figures.evidence import EVIDENCE
from comparison.pipeline.figures.verdicts import CHECKS
from tests.support.results import run


def test_every_check_says_what_it_needs() -> None:
    assert EVIDENCE.keys() == {check.decide for check in CHECKS}
    assert all(text and text[0].islower() and not text.endswith(".") for text in EVIDENCE.values())


def test_no_check_passes_in_a_run_that_shows_nothing() -> None:
    passed = set()
    for check in CHECKS:
        design = "zookeeper" if check.designs == ("*",) else check.designs[0]
        scenario = "join" if check.scenarios == ("*",) else check.scenarios[0]
        nothing = run(scenario, design, changes=[], **dict.fromkeys(METRICS))
        result = check.decide(nothing)
        if result is not None and result[0] is EXPECTED:
            passed.add(check.name)
    assert passed == set()
