"""A count with its noun."""

from __future__ import annotations


def counted(count: float, noun: str) -> str:
    """`1 partition`, `2 partitions`; what was measured is rounded to a whole number."""
    return f"{count:.0f} {noun}{'' if count == 1 else 's'}"
