"""Fill `kafka-test-names.md`: how many tests of Kafka's coordinator have one here, and why the others have none.

A test compares them. `python -m docs.generators.name_tests` prints every name with the tests here.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from docs.generators.pages import DOCS, filled
from tests.support.kafka_names.markers import covered
from tests.support.kafka_names.names import CLASSES, GROUPS_LEFT_OUT, LEFT_OUT, NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence, Set
    from pathlib import Path

PAGE = DOCS / "kafka-test-names.md"


def files() -> dict[Path, str]:
    tests = covered()
    classes = [_class(title, groups, tests.keys()) for title, groups in CLASSES.items()]
    reasons: dict[str, list[str]] = {}
    for name, reason in LEFT_OUT.items():
        reasons.setdefault(reason, []).append(f"`{name}`")
    left_out = [f"- {reason}: {', '.join(names)}" for reason, names in reasons.items()]
    left_out += [f"- {reason}: {group}" for group, reason in GROUPS_LEFT_OUT.items()]
    summary = f"{len(NAMES & tests.keys())} of {len(NAMES)} names have a test here, by Kafka's classes:\n"
    names = "\n".join([summary, *classes, "\nThe others have none, for these reasons:\n", *left_out])
    return {PAGE: filled(PAGE, {"names": names})}


def _class(title: str, groups: Mapping[str, Sequence[str]], covered_names: Set[str]) -> str:
    names = {name for group in groups.values() for name in group}
    return f"- `{title}`: {len(names & covered_names)} of {len(names)}"


def every_name() -> Iterator[str]:
    """Lines: each of Kafka's tests, by class and group, with ours or the reason why there is none."""
    tests = covered()
    for title, groups in CLASSES.items():
        for group, names in groups.items():
            yield f"\n{title}: {group}"
            for name in names:
                yield f"  {name}"
                yield from (f"      {ours}" for ours in tests.get(name, [f"none: {LEFT_OUT.get(name, 'missing')}"]))


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in every_name())
