"""Fill `checks.md`, the page of all checks by which runs are judged and of the promises that users go by, from their
tables and from what stands beside the functions that decide. A test compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.pipeline.figures import with_settings
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


def files() -> dict[Path, str]:
    by_kinds: dict[str, list[str]] = {}
    for name, decide in dict.fromkeys((each.name, each.decide) for each in CHECKS):
        rows = [each for each in CHECKS if each.name == name and each.decide is decide]
        kinds = " and ".join(dict.fromkeys(each.kind.value for each in rows))
        by_kinds.setdefault(kinds, []).append(_check(name, rows))
    checks = ["\n".join([f"\n*{kinds.capitalize()}*\n", *lines]) for kinds, lines in by_kinds.items()]
    promises = [(each.name, each.meaning, ", ".join(each.checks)) for each in PROMISES]
    kept = markdown_table(("promise", "kept if", "also broken by"), promises)
    return {PAGE: filled(PAGE, {"checks": "\n".join(checks).lstrip(), "promises": kept})}


def _check(name: str, rows: Sequence[Check]) -> str:
    by_scenarios: dict[str, list[str]] = {}
    for row in rows:
        by_scenarios.setdefault(_scenarios(row), []).extend(each for each in DESIGN_NAMES if row.is_about(each))
    where = "; ".join(f"{_listed(designs)}{scenarios}" for scenarios, designs in by_scenarios.items())
    return f"- **{name}**: {summary_of(rows[0].decide)} *{where[0].upper()}{where[1:]}.*"


def _listed(designs: Sequence[str]) -> str:
    """The designs, unless they are all."""
    others = [f"`{each}`" for each in DESIGN_NAMES if each not in designs]
    if not others:
        return ""
    if len(others) <= 2:
        return f"all but {' and '.join(others)}, "
    return f"{', '.join(f'`{each}`' for each in designs)}, "


def _scenarios(check: Check) -> str:
    where = (
        "in all scenarios" if check.everywhere else f"in {', '.join(f'`{each}`' for each in naming(check.is_named))}"
    )
    if check.except_in:
        where += f" but {', '.join(f'`{each}`' for each in check.except_in)}"
    if check.given is not with_settings.always:
        condition = summary_of(check.given).rstrip(".")
        where += f", {condition[0].lower()}{condition[1:]}"
    return where
