"""Scenarios in words: for `scenarios`, and for the reports of their runs."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from itertools import starmap
from typing import TYPE_CHECKING, Any

from comparison.scenarios.plan.faults import FAULTS
from comparison.scenarios.plan.vocabulary import AddPartitions, CrashAndReturn, Form, Heal, Hold, Inject
from kernel.designs import DESIGN_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from comparison.scenarios.plan.scenario import Scenario
    from comparison.scenarios.plan.vocabulary import Step

#: Parameters of steps that only name the measurement.
_NAMES = frozenset({"change", "round", "label"})


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
    match step:
        case Inject(fault, target, parameters):
            return f"Inject {fault} into {target}{_in_parentheses(parameters)}{_does(fault, parameters)}"
        case Hold(ms):
            return f"Wait for {ms / 1000:g} s; faults stay in effect."
        case Heal(fault, target):
            named = f"Heal {fault}{f' of {target}' if target else ''}" if fault else "Heal all faults"
            return f"{named}; if none is left, wait for the group."
        case CrashAndReturn(None):
            return "Kill an owner (SIGKILL); a new process takes its place in time."
        case CrashAndReturn(int(over_ms)):
            return f"Kill an owner (SIGKILL); a new process takes its place {over_ms} ms too late."
        case AddPartitions(more, doubling):
            added = "Double the partitions of" if doubling else f"Add {more} partitions to"
            return summary_of(AddPartitions).replace("Add partitions to", added)
    given = {field.name: getattr(step, field.name) for field in fields(step) if field.name not in _NAMES}
    words = summary_of(type(step))
    if isinstance(step, Form):
        words = _grown(step)
        given = {"settings": step.settings, "design": step.design}
    given = {name: value for name, value in given.items() if value not in (None, "")}
    rest = {name: value for name, value in given.items() if f"`{name}`" not in words}
    for nested in ("settings", "parameters"):
        rest |= rest.pop(nested, None) or {}
    shown = f"{_filled(words.removesuffix('.'), given)}{_in_parentheses(rest)}"
    return f"{shown}." if words.endswith(".") else shown


def _grown(step: Form) -> str:
    size = f"to {'--members' if step.members is None else step.members} members"
    if step.more is not None:
        size = f"by {step.more} members"
    start = f"within {step.spread_ms} ms" if step.spread_ms else "at once"
    return f"Grow the group {size}, all new ones {start}, and wait until it has settled."


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
