"""What a scenario's file can be made of, as data: `scenarios --steps --format json`."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from comparison.pipeline.figures.verdicts import CHECKS
from comparison.scenarios.plan.faults import FAULTS, Choice
from comparison.scenarios.plan.fields import default_of, has_default, in_words, types_of
from comparison.scenarios.plan.step_names import STEPS
from comparison.scenarios.plan.wording import summary_of

if TYPE_CHECKING:
    from comparison.scenarios.plan.faults import Fault, Number


def vocabulary() -> dict[str, Any]:
    """Every step and fault with its parameters, and the names of the checks."""
    return {
        "steps": [
            {"name": name, "does": summary_of(step), "parameters": _fields(step)} for name, step in STEPS.items()
        ],
        "faults": [_fault(fault) for fault in FAULTS.values()],
        "checks": list(dict.fromkeys(check.name for check in CHECKS)),
    }


def _fields(step: type) -> list[dict[str, Any]]:
    kinds = types_of(step)
    return [
        {
            "name": field.name,
            "values": in_words(kinds[field.name]),
            "required": not has_default(field),
            "default": default_of(field) if has_default(field) else None,
        }
        for field in fields(step)
    ]


def _fault(fault: Fault) -> dict[str, Any]:
    return {
        "name": fault.name,
        "does": fault.does,
        "heals": fault.heals,
        "targets": [kind.value for kind in fault.targets],
        "parameters": [_parameter(each) for each in fault.parameters],
    }


def _parameter(parameter: Number | Choice) -> dict[str, Any]:
    if isinstance(parameter, Choice):
        return {"name": parameter.name, "words": list(parameter.words), "default": parameter.default}
    return {
        "name": parameter.name,
        "least": parameter.least,
        "most": parameter.most,
        "default": parameter.default,
    }
