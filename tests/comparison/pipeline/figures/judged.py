"""Verdicts on invented runs, as tables: what a check says of which figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from comparison.pipeline.figures.judging import judge
from comparison.pipeline.figures.verdicts import CHECKS
from comparison.results.outcomes import VerdictOutcome
from comparison.results.run import Change
from kernel.designs import DESIGN_NAMES
from tests.support.runs.results import run

#: The changes of a run, or its figures and fields by name; the outcome; a part of the reason.
Row = tuple[list[Change] | dict[str, Any], VerdictOutcome, str]
#: By check, scenario and design.
Verdicts = Mapping[tuple[str, str, str], Sequence[Row]]

YES, NO, UNKNOWN = VerdictOutcome.EXPECTED, VerdictOutcome.NOT_EXPECTED, VerdictOutcome.UNKNOWN
PARAMETERS = ("judged", "given", "outcome", "reason")


def rows_of(table: Verdicts) -> list[ParameterSet]:
    """A case for each row, with the PARAMETERS that `assert_verdict` takes."""
    return [
        pytest.param(judged, given, outcome, reason, id=f"{judged[0]} in {judged[2]}-{outcome}-{reason or number}")
        for judged, rows in table.items()
        for number, (given, outcome, reason) in enumerate(rows)
    ]


def beside(usual: dict[str, Any], *rows: Row) -> list[Row]:
    """Rows of runs that have these figures and fields, too."""
    return [({**usual, **_fields(given)}, outcome, reason) for given, outcome, reason in rows]


def assert_verdict(
    judged: tuple[str, str, str], given: list[Change] | dict[str, Any], outcome: VerdictOutcome, reason: str
) -> None:
    found, said = verdict_on(*judged, **_fields(given))
    assert found is outcome, said
    assert reason in said


def _fields(given: list[Change] | dict[str, Any]) -> dict[str, Any]:
    return given if isinstance(given, dict) else {"changes": given}


def verdict_on(check: str, scenario: str, design: str, **given: Any) -> tuple[VerdictOutcome, str]:
    """The outcome and its reason."""
    return verdicts_on(scenario, design, **given)[check]


def verdicts_on(scenario: str, design: str, **given: Any) -> dict[str, tuple[VerdictOutcome, str]]:
    """The outcomes and their reasons, by check."""
    return {each.check: (each.outcome, each.reason) for each in judge(run(scenario, design, **given)).verdicts}


def designs_of(check: str, scenario: str) -> set[str]:
    """The designs in which a scenario is judged by a check."""
    of_name = [each for each in CHECKS if each.name == check]
    return {design for design in DESIGN_NAMES if any(each.covers(run(scenario, design)) for each in of_name)}
