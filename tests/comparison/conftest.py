"""What a command leaves in its process, and tests that call it in theirs must not; and a store in memory."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from comparison.scenarios.plan import admitted
from kernel.platform.places import place_of, remove


@pytest.fixture(autouse=True)
def _no_scenarios_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command knows the scenario files that it was given; the next test's command was given others."""
    monkeypatch.setattr(admitted, "_ADMITTED", {})


@pytest.fixture
def store() -> Iterator[str]:
    """The URI of an empty folder in fsspec's store in memory, which is this process's own."""
    uri = f"memory://{secrets.token_hex(4)}"
    yield uri
    remove(place_of(uri))
