"""Numbers as a text, neighbours together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def number_ranges(numbers: Iterable[int], to: str = "-") -> str:
    """`0-2, 5`, each number once and in order."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and found[-1][-1] == number - 1:
            found[-1] = [found[-1][0], number]
        else:
            found.append([number])
    return ", ".join(to.join(map(str, each)) for each in found)
