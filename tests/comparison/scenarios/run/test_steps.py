"""The table of steps: one method performs each kind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, get_args

from comparison.scenarios.plan.vocabulary import FreezeOwner, OwnStep, RestartEach, Step
from comparison.scenarios.run.injections import Injections
from comparison.scenarios.run.steps import performers


def table() -> dict[Any, Any]:
    request = SimpleNamespace(design="eager")
    changes: Any = SimpleNamespace(
        members=None, tracer=None, configuration=None, testbed=SimpleNamespace(request=request)
    )
    return dict(performers(changes, Injections(changes)))


def test_every_kind_of_step_has_its_own_method() -> None:
    found = table()
    assert set(found) == set(get_args(Step)) - {OwnStep}, "an own step performs itself"
    assert len({performer.__qualname__ for performer in found.values()}) == len(found)


def test_step_is_performed_by_the_method_of_its_name() -> None:
    found = table()
    assert found[FreezeOwner].__qualname__ == "Faults.freeze_owner"
    assert found[RestartEach].__qualname__ == "Restarts.restart_each"
