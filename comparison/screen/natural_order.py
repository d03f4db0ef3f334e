"""The order of names with numbers in them: m2 before m10, orders-2 before orders-10, and m1.2 after m1."""

from __future__ import annotations

import re

_PARTS = re.compile(r"([^0-9]*)([0-9]*)")


def natural(name: str) -> list[tuple[str, int, str]]:
    """The key to sort by. Of two numbers without leading zeros the longer one is the larger one, however long it is."""
    return [(head, len(digits), digits) for head, number in _PARTS.findall(name) for digits in [number.lstrip("0")]]
