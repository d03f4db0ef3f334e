"""Fill `checks.md`, the page of all checks by which runs are judged and of the promises that users go by, from their
tables and from what stands beside the functions that decide. A test compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.pipeline.figures import with_settings
from comparison.pipeline.figures.deciding import EVIDENCE
from comparison.pipeline.figures.verdicts import CHECKS
from comparison.results.promised import PROMISES
from comparison.scenarios.plan.catalogue import naming
from comparison.scenarios.plan.wording import summary_of
from docs.generators.pages import DOCS, filled, markdown_table
from kernel.designs import DESIGN_NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from comparison.pipeline.figures.verdicts import Check

PAGE = DOCS / "checks.md"


def page() -> str:
    """The page for the present table."""
    rows = [_row(*check) for check in dict.fromkeys((each.name, each.decide) for each in CHECKS)]
    promises = [(each.name, each.meaning, ", ".join(each.checks)) for each in PROMISES]
    return filled(
        PAGE,
        {
            "checks": markdown_table(("check", "says", "designs", "scenarios"), rows),
            "promises": markdown_table(("promise", "kept if", "also broken by"), promises),
        },
    )


def _row(name: str, decide: object) -> Sequence[str]:
    rows = [each for each in CHECKS if each.name == name and each.decide is decide]
    first = rows[0]
    says = f"{summary_of(first.decide)} (Needs {EVIDENCE[first.decide]}.)"
    designs = [_designs(each) for each in rows]
    scenarios = [_scenarios(each) for each in rows]
    if len(rows) > 1 and len(set(scenarios)) > 1:
        scenarios = [f"{of}: {where}" for of, where in zip(designs, scenarios, strict=True)]
    name_and_kinds = f"{name}<br>*{', '.join(dict.fromkeys(each.kind.value for each in rows))}*"
    of_any = [each for each in DESIGN_NAMES if any(row.is_about(each) for row in rows)]
    return name_and_kinds, says, _listed(of_any), "<br>".join(dict.fromkeys(scenarios))


def _designs(check: Check) -> str:
    return _listed([each for each in DESIGN_NAMES if check.is_about(each)])


def _listed(designs: Sequence[str]) -> str:
    others = [f"`{each}`" for each in DESIGN_NAMES if each not in designs]
    if not others:
        return "all"
    return f"all but {others[0]}" if len(others) == 1 else ", ".join(f"`{each}`" for each in designs)


def _scenarios(check: Check) -> str:
    where = "all" if check.everywhere else ", ".join(f"`{each}`" for each in naming(check.is_named))
    if check.except_in:
        where += f" but {', '.join(f'`{each}`' for each in check.except_in)}"
    if check.given is not with_settings.always:
        condition = summary_of(check.given).rstrip(".")
        where += f", {condition[0].lower()}{condition[1:]}"
    return where


def files() -> dict[Path, str]:
    """The generated pages with their content."""
    return {PAGE: page()}
