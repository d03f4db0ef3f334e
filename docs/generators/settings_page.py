"""Fill the last chapter of `settings.md` with all settings of all designs, from the tables that the parsers read
(`comparison.scenarios.plan.setting_rows`). A test compares them.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from comparison.cli.setting_text import command, default_of, in_words, kafka_of, sentence
from comparison.scenarios.plan.setting_rows import BROKERS, elsewhere, rows
from docs.generators.pages import DOCS, filled
from kernel.designs import DESIGN_NAMES

if TYPE_CHECKING:
    from pathlib import Path

    from comparison.scenarios.plan.setting_rows import Row

PAGE = DOCS / "settings.md"


def page() -> str:
    """The page for the present tables."""
    names = Counter(row.setting.name for row in rows())
    parts = (_part(part, list(of_part), names) for part, of_part in groupby(rows(), key=lambda row: row.part))
    return filled(PAGE, {"settings": "\n".join(parts) + _tail()})


def _part(part: str, of_part: list[Row], names: Counter[str]) -> str:
    designs = tuple(design for design in DESIGN_NAMES if any(design in row.designs for row in of_part))
    heading = part[:1].upper() + part[1:]
    whose = "" if part == BROKERS else f"\nOf {_quoted(designs)}.\n"
    return f"### {heading}\n{whose}\n" + "\n".join(_entry(row, designs, names) for row in of_part)


def _entry(row: Row, designs: tuple[str, ...], names: Counter[str]) -> str:
    setting = row.setting
    does = sentence(setting.doc)
    if row.designs != designs:
        does += f" It matters only {'to' if row.part == BROKERS else 'in'} {_quoted(row.designs)}."
    lines = [f"#### `{setting.name}`", ""]
    for text in filter(None, (does, setting.advice)):
        lines += [textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False), ""]
    facts = {
        "Default": default_of(row),
        "Era": row.era,
        "Kafka's default": kafka_of(row),
        "Values": setting.allowed + (f", in {setting.unit}" if setting.unit else ""),
        "See also": ", ".join(_link(name, names) for name in setting.see),
        "Source": row.source,
    }
    lines += [f"- {label}: {text}" for label, text in facts.items() if text]
    return "\n".join([*lines, "- Shown by:", "", "```", command(row), "```", ""])


def _link(name: str, names: Counter[str]) -> str:
    """A link to a setting; only its name, if several parts have it."""
    return f"[`{name}`](#{name.replace('.', '')})" if names[name] == 1 else f"`{name}`"


def _quoted(designs: tuple[str, ...]) -> str:
    return in_words([f"`{design}`" for design in designs])


def _tail() -> str:
    return (
        f"\n{len(elsewhere())} further settings of Kafka's consumers and brokers are known by name and have no effect "
        "here, which a warning says. A topic's own settings are in [Administration](administration.md).\n"
    )


def files() -> dict[Path, str]:
    """The generated pages with their content."""
    return {PAGE: page()}
