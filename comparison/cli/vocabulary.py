"""What a scenario's file can be made of, as data and as text: `scenarios --steps`."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from comparison.cli.catalogue_text import wrapped
from comparison.pipeline.figures.verdicts import CHECKS
from comparison.scenarios.plan.faults import FAULTS, Choice
from comparison.scenarios.plan.fields import default_of, has_default, in_words, types_of
from comparison.scenarios.plan.points import KILLED, POINTS
from comparison.scenarios.plan.step_names import STEPS
from comparison.scenarios.plan.vocabulary import FreezeAtPoint, KillAtPoint
from comparison.scenarios.plan.wording import summary_of
from kernel.designs import DESIGN_NAMES

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


def vocabulary_text() -> str:
    """Every step, fault and check with its parameters, as text."""
    lines = ["Steps:"]
    for name, step in STEPS.items():
        lines += [f"  {name}", f"      {summary_of(step)}"]
        for each in _fields(step):
            optional = f"default {each['default']!r}" if each["default"] else "optional"
            lines.append(f"      {each['name']}: {each['values']}, {'required' if each['required'] else optional}")
            if step is KillAtPoint or (step is FreezeAtPoint and each["name"] == "point"):
                lines += _points(each["name"])
    lines += ["", "Faults, for inject:"]
    for fault in FAULTS.values():
        healed = f" Healed: {fault.heals}" if fault.heals else ""
        lines += [
            f"  {fault.name}",
            f"      {fault.does}{healed}",
            f"      target: {'; '.join(k.value for k in fault.targets)}",
        ]
        lines += [f"      {each.name}: {_range(each)}, default {each.default}" for each in fault.parameters]
    lines += ["", "Checks, for expectations:"]
    for name in dict.fromkeys(check.name for check in CHECKS):
        lines += [f"  {name}", *_check(name)]
    return "\n".join(lines) + "\n"


def _check(name: str) -> list[str]:
    """What a check says, of which designs; one that depends on the scenario says several things."""
    designs: dict[str, list[str]] = {}
    for check in CHECKS:
        if check.name == name:
            of = designs.setdefault(summary_of(check.decide), [])
            of += [each for each in DESIGN_NAMES if check.is_about(each) and each not in of]
    return [
        line
        for says, of in designs.items()
        for line in (f"      {says}", f"      of {'every design' if len(of) == len(DESIGN_NAMES) else ', '.join(of)}")
    ]


def _points(parameter: str) -> list[str]:
    """What `kill-at-point` and `freeze-at-point` can name: the points of each design, and what is killed."""
    if parameter == "target":
        return [f"        one of {', '.join(KILLED)}"]
    names: dict[str, list[str]] = {}
    for design, points in POINTS.items():
        names.setdefault(", ".join(point.name for point in points), []).append(design)
    return [
        line for points, designs in names.items() for line in wrapped(f"{', '.join(designs)}: {points}", "        ")
    ]


def _range(parameter: Number | Choice) -> str:
    if isinstance(parameter, Choice):
        return f"one of {', '.join(parameter.words)}"
    return f"{parameter.least} to {parameter.most}"
