"""Scenarios in words: for `scenarios`, and for the reports of their runs."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from comparison.scenarios.plan.faults import FAULTS
from comparison.scenarios.plan.vocabulary import Heal, Hold, Inject
from kernel.designs import DESIGN_NAMES

if TYPE_CHECKING:
    from comparison.scenarios.plan.scenario import Scenario
    from comparison.scenarios.plan.vocabulary import Step


def described(scenario: Scenario) -> dict[str, Any]:
    """A scenario as JSON; each step is its name with its parameters."""
    return {
        "name": scenario.name,
        "symptom": scenario.symptom,
        "look_for": list(scenario.look_for),
        "steps": [repr(step) for step in scenario.steps],
        "defaults": scenario.defaults.as_json(),
        "budget_s": scenario.budget_s,
        "zookeeper_servers": scenario.zookeeper_servers,
        "settings": dict(scenario.settings),
        "designs": [d for d in DESIGN_NAMES if d not in scenario.same_run_as and d not in scenario.not_applicable],
        "same_run_as": dict(scenario.same_run_as),
        "not_applicable": dict(scenario.not_applicable),
        "references": list(scenario.references),
    }


def for_readers(scenario: Scenario) -> dict[str, Any]:
    """The same with the steps in words."""
    return {**described(scenario), "steps": [in_words(step) for step in scenario.steps]}


def in_words(step: Step) -> str:
    """A step's description and parameters, without `change`, which only names the measurement.

    Of a fault, what it does: that one is injected says nothing.
    """
    match step:
        case Inject(fault, target, parameters):
            chosen = f" ({', '.join(f'{name} {value}' for name, value in parameters.items())})" if parameters else ""
            does = f": {FAULTS[fault].does}" if fault in FAULTS else "."
            return f"Inject {fault} into {target}{chosen}{does}"
        case Hold(ms):
            return f"Wait for {ms / 1000:g} s; faults stay in effect."
        case Heal(fault, target):
            named = f"Heal {fault}{f' of {target}' if target else ''}" if fault else "Heal all faults"
            return f"{named}; if none is left, wait for the group."
    given = {field.name: getattr(step, field.name) for field in fields(step) if field.name != "change"}
    for more in ("settings", "parameters"):
        given |= given.pop(more, None) or {}
    shown_with = ", ".join(f"{name} {value}" for name, value in given.items() if value not in (None, ""))
    words = summary_of(type(step))
    return f"{words} [{shown_with}]" if shown_with else words


def summary_of(step: type) -> str:
    """The first paragraph of a kind of step's description."""
    return " ".join((inspect.getdoc(step) or "").split("\n\n", maxsplit=1)[0].split())
