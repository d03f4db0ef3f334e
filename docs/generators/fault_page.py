"""Fill `faults.md`, the page of all faults that a scenario can be composed of, from `comparison.scenarios.plan.faults`.
A test compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.scenarios.plan.faults import FAULTS, Number
from comparison.scenarios.plan.targets import LINKS, TargetKind
from docs.generators.pages import DOCS, filled, markdown_table
from kernel.designs import DESIGN_NAMES

if TYPE_CHECKING:
    from pathlib import Path

    from comparison.scenarios.plan.faults import Choice, Fault

PAGE = DOCS / "faults.md"


def files() -> dict[Path, str]:
    parts = [markdown_table(("target", "written"), [kind.value.split(": ") for kind in TargetKind]) + "\n"]
    for area in dict.fromkeys(fault.area for fault in FAULTS.values()):
        faults = "\n".join(_fault(fault) for fault in FAULTS.values() if fault.area == area)
        parts.append(f"## {area[0].upper() + area[1:]}\n\n{faults}\n")
    return {PAGE: filled(PAGE, {"faults": "\n".join(parts)})}


def _fault(fault: Fault) -> str:
    does = fault.does + _where(fault)
    for design, needed in fault.needs.items():
        settings = ", ".join(f"`-c {name}={value}`" for name, value in needed.items())
        does += f" In {design} it needs {settings}."
    targets = (
        "every link" if fault.targets == LINKS else ", ".join(kind.value.partition(":")[0] for kind in fault.targets)
    )
    heals = f" *Heal:* {fault.heals}" if fault.heals else ""
    parameters = "".join(f"\n    - {_parameter(each)}" for each in fault.parameters)
    return f"- **`{fault.name}`** ({targets}): {does}{heals}{parameters}"


def _where(fault: Fault) -> str:
    """The designs that have the fault, or those that lack it, whichever are fewer."""
    lacking = [design for design in DESIGN_NAMES if design not in fault.designs]
    if not lacking or f"Not in {lacking[0]}" in fault.does:
        return ""
    if len(lacking) < len(fault.designs):
        return f" Not in {' or '.join(lacking)}."
    return f" Only in {' and '.join(fault.designs)}."


def _parameter(each: Number | Choice) -> str:
    possible = f"{each.least} to {each.most}" if isinstance(each, Number) else ", ".join(each.words)
    return f"`{each.name}` = {each.default} ({possible})"
