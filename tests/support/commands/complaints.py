"""Complaints about a file, in the form in which a table of them is easiest to read."""

from __future__ import annotations

import re

_PLACED = re.compile(r"(Error: )?(.*?) \(([^()]*\.toml(?:, line \d+(?:, column \d+)?)?)\)(.*)", re.DOTALL)


def place_first(complaint: str) -> str:
    """`what (my.toml, line 3). What to do` as `my.toml, line 3: what. What to do`."""
    found = _PLACED.fullmatch(complaint)
    return f"{found[3]}: {found[2]}{found[4]}" if found else complaint
