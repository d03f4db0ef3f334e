"""Scenarios in words: for `scenarios`, and for the reports of their runs."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from itertools import starmap
from typing import TYPE_CHECKING, Any

from comparison.scenarios.plan.faults import FAULTS
from comparison.scenarios.plan.vocabulary import Inject
from kernel.designs import DESIGN_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from comparison.scenarios.plan.scenario import Scenario
    from comparison.scenarios.plan.step import Step

#: Parameters of steps that only name the measurement.
_NAMES = frozenset({"change", "round", "label"})
#: Parameters that no sentence of a step has.
_OF_MEMBERS = frozenset({"settings", "design"})


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
    """A step's description with its parameters, without those that only name the measurement.

    Of a fault, what it does: that one is injected says nothing.
    """
    if isinstance(step, Inject):
        injected = f"Inject {step.fault} into {step.target}{_in_parentheses(step.parameters)}"
        return f"{injected}{_does(step.fault, step.parameters)}"
    own = step.sentence()
    words = own or summary_of(type(step))
    given = {field.name: getattr(step, field.name) for field in fields(step) if field.name not in _NAMES}
    given = {name: value for name, value in given.items() if not own or name in _OF_MEMBERS}
    given = {name: value for name, value in given.items() if value not in (None, "")}
    rest = {name: value for name, value in given.items() if f"`{name}`" not in words}
    for nested in ("settings", "parameters"):
        rest |= rest.pop(nested, None) or {}
    shown = f"{_filled(words.removesuffix('.'), given)}{_in_parentheses(rest)}"
    return f"{shown}." if words.endswith(".") else shown


def _does(fault: str, parameters: Mapping[str, object]) -> str:
    """What a fault does, after its name."""
    if fault not in FAULTS:
        return "."
    defaults = {each.name: each.default for each in FAULTS[fault].parameters}
    does = _filled(FAULTS[fault].does, {**defaults, **parameters})
    return f": {does[:1].lower()}{does[1:]}"


def _filled(words: str, values: Mapping[str, object]) -> str:
    """The words with values in place of the names of parameters: those in backquotes, and times."""
    for name, value in values.items():
        name_in_words = rf"`{name}`|\b{name}\b" if name.endswith("_ms") else f"`{name}`"
        words = re.sub(name_in_words, f"{value} ms" if name.endswith("_ms") else str(value), words)
    return words


def _in_parentheses(values: Mapping[str, object]) -> str:
    return f" ({', '.join(starmap(_said, values.items()))})" if values else ""


def _said(name: str, value: object) -> str:
    """A parameter: whether, which, or a setting by its name."""
    if isinstance(value, bool):
        return f"{'with' if value else 'without'} {name}"
    if isinstance(value, tuple):
        return f"{name} {', '.join(map(str, value))}"
    return f"{name}={value}" if "." in name else f"{name} {value}"


def summary_of(described: type | Callable[..., object]) -> str:
    """The first paragraph about a kind of step, or about a function that decides a check."""
    return " ".join((inspect.getdoc(described) or "").split("\n\n", maxsplit=1)[0].split())
