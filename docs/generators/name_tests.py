"""Fill `kafka-test-names.md`, which maps the tests of Kafka's coordinator to ours, from the markers on the tests.

A test compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.generators.pages import DOCS, filled, markdown_table
from tests.support.kafka_names.markers import covered
from tests.support.kafka_names.names import CLASSES, GROUPS_LEFT_OUT, LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PAGE = DOCS / "kafka-test-names.md"


def page() -> str:
    """The page for the current markers."""
    tests = covered()
    everything = {name for groups in CLASSES.values() for names in groups.values() for name in names}
    parts = [
        f"Of {len(everything)} names {len(everything & tests.keys())} are covered and {len(everything - tests.keys())} "
        "left out, each with a reason. Whole groups are left out as well:\n",
        "".join(f"- {group}: {reason}.\n" for group, reason in GROUPS_LEFT_OUT.items()),
    ]
    for title, groups in CLASSES.items():
        parts.append(f"## {title}\n")
        parts += [_section(group, names, tests) for group, names in groups.items()]
    return filled(PAGE, {"names": "\n".join(parts)})


def _section(group: str, names: Sequence[str], tests: Mapping[str, Sequence[str]]) -> str:
    rows = [(f"`{name}`", _answer(name, tests.get(name, ()))) for name in names]
    shown = markdown_table(("Kafka's", "ours"), rows)
    return f"### {group}\n\n{shown}\n"


def _answer(name: str, tests: Sequence[str]) -> str:
    if tests:
        return "<br>".join(f"`{test}`" for test in tests)
    return f"left out: {LEFT_OUT[name]}" if name in LEFT_OUT else "**missing**"


def files() -> dict[Path, str]:
    """The generated pages with their content."""
    return {PAGE: page()}
