"""The catalogue in words, for reports of runs that do not say themselves what was done; what a file can be made of."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from comparison.pipeline.figures.verdicts import CHECKS
from comparison.scenarios.plan.catalogue import CATALOGUE
from comparison.scenarios.plan.faults import FAULTS, Choice
from comparison.scenarios.plan.fields import default_of, has_default, types_of
from comparison.scenarios.plan.fields import in_words as kind_in_words
from comparison.scenarios.plan.played import PLAYGROUND
from comparison.scenarios.plan.step_names import STEPS
from comparison.scenarios.plan.wording import for_readers, summary_of

if TYPE_CHECKING:
    from comparison.scenarios.plan.faults import Number
    from comparison.scenarios.plan.scenario import Scenario


def vocabulary_text() -> str:
    """Every step, fault and check with its parameters, as text."""
    lines = ["Steps:"]
    for name, step in STEPS.items():
        lines += [f"  {name}", f"      {summary_of(step)}"]
        kinds = types_of(step)
        for field in fields(step):
            default = f", default {default_of(field)!r}" if has_default(field) and default_of(field) else ""
            lines.append(f"      {field.name}: {kind_in_words(kinds[field.name])}{default}")
    lines += ["", "Faults, for inject:"]
    for fault in FAULTS.values():
        healed = f" Healed: {fault.heals}" if fault.heals else ""
        lines += [
            f"  {fault.name}",
            f"      {fault.does}{healed}",
            f"      target: {'; '.join(k.value for k in fault.targets)}",
        ]
        lines += [f"      {each.name}: {_range(each)}, default {each.default}" for each in fault.parameters]
    lines += ["", "Checks, for expectations:", *(f"  {name}" for name in dict.fromkeys(check.name for check in CHECKS))]
    return "\n".join(lines) + "\n"


def _range(parameter: Number | Choice) -> str:
    if isinstance(parameter, Choice):
        return f"one of {', '.join(parameter.words)}"
    return f"{parameter.least} to {parameter.most}"


def catalogue() -> dict[str, dict[str, Any]]:
    """Every scenario by name, and what is played by hand, with its steps in words."""
    known: tuple[Scenario, ...] = (*CATALOGUE.values(), PLAYGROUND)
    return {scenario.name: for_readers(scenario) for scenario in known}
