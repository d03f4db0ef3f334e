"""The table of steps: one method performs each kind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from comparison.scenarios.plan.step import MeasuredFault
from comparison.scenarios.plan.step_names import STEPS
from comparison.scenarios.run.injections import Injections
from comparison.scenarios.run.steps import performers


def table() -> dict[str, Any]:
    request = SimpleNamespace(design="eager")
    changes: Any = SimpleNamespace(
        members=None, tracer=None, configuration=None, testbed=SimpleNamespace(request=request)
    )
    return dict(performers(changes, Injections(changes)))


def test_every_kind_of_step_but_measured_faults_has_its_own_method() -> None:
    found = table()
    by_their_fault = {name for name, step in STEPS.items() if issubclass(step, MeasuredFault)}
    assert by_their_fault == {"join-one", "leave-one", "kill-owner", "crash-and-return"}
    assert found.keys() == (STEPS.keys() | {"played"}) - by_their_fault
    assert len({performer.__qualname__ for performer in found.values()}) == len(found)


def test_step_is_performed_by_the_method_of_its_name() -> None:
    found = table()
    assert found["freeze-owner"].__qualname__ == "Faults.freeze_owner"
    assert found["restart-each"].__qualname__ == "Restarts.restart_each"
