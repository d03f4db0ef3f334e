"""Words for figures in the sentences of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.summaries.figures import number
from comparison.results.wording import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.results.run import Run


def metric(run: Run, name: str) -> float | None:
    value: float | None = run.metrics.get(name)
    return value


def by_design(texts: Sequence[tuple[str, str]]) -> str:
    """`7 in zookeeper, 3 in eager and static`: the designs with the same text together; 0 is none."""
    together: dict[str, list[str]] = {}
    for design, text in texts:
        together.setdefault("none" if text == "0" else text, []).append(design)
    return ", ".join(f"{text} in {listed(designs)}" for text, designs in together.items())


def counted(value: float | None, noun: str) -> str:
    return f"{number(value)} {noun}{'' if value == 1 else 's'}"
