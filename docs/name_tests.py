"""Write the page beside this file that tells which of our tests stands for which of Kafka's.

    python -m docs.name_tests      from the root of the project

Everything on the page comes from the markers on the tests; a test of ours compares the page with them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.kafka_markers import covered
from tests.support.kafka_names import CLASSES, GROUPS_LEFT_OUT, LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PAGE = Path(__file__).with_name("kafka-test-names.md")
#: The head of the page; the rest are tables.
HEAD = """# Kafka's tests of a classic coordinator, and ours

Written by `python -m docs.name_tests` from the markers on the tests (`@pytest.mark.kafka`), so do not edit it.
Names on the left are those of Kafka's trunk of October 2024; tests on the right are below `tests/coordinator`.
A name without a test that `make test` runs, and without a reason, fails the build.

Of {names} names {covered} are covered and {left_out} are left out one by one; besides, whole groups are left out:

{groups}
"""
ROW = "| {0} | {1} |"


def page() -> str:
    """The whole page as it has to be now."""
    tests = covered()
    everything = {name for groups in CLASSES.values() for names in groups.values() for name in names}
    head = HEAD.format(
        names=len(everything),
        covered=len(everything & tests.keys()),
        left_out=len(everything - tests.keys()),
        groups="\n".join(f"- {group}: {reason}." for group, reason in GROUPS_LEFT_OUT.items()),
    )
    parts = [head]
    for title, groups in CLASSES.items():
        parts.append(f"## {title}\n")
        parts += [_section(group, names, tests) for group, names in groups.items()]
    return "\n".join(parts)


def _section(group: str, names: Sequence[str], tests: Mapping[str, Sequence[str]]) -> str:
    rows = [f"### {group}\n", ROW.format("Kafka's", "ours"), ROW.format("---", "---")]
    rows += [ROW.format(f"`{name}`", _answer(name, tests.get(name, ()))) for name in names]
    return "\n".join(rows) + "\n"


def _answer(name: str, tests: Sequence[str]) -> str:
    if tests:
        return "<br>".join(f"`{test}`" for test in tests)
    return f"left out: {LEFT_OUT[name]}" if name in LEFT_OUT else "**missing**"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
