"""What a command leaves in its process, and tests that call it in theirs must not."""

from __future__ import annotations

import pytest

from comparison.scenarios.plan import admitted


@pytest.fixture(autouse=True)
def _no_scenarios_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command knows the scenario files that it was given; the next test's command was given others."""
    monkeypatch.setattr(admitted, "_ADMITTED", {})
