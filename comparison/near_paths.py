"""Complaints about files and folders that do not exist."""

from __future__ import annotations

from pathlib import Path

from kernel.suggestions import closest


def did_you_mean_path(path: Path) -> str:
    """The question for the path that may be meant, as `did_you_mean`: its first part that does not exist, corrected."""
    there, wanted = Path(path.anchor), path.parts[bool(path.anchor) :]
    for number, part in enumerate(wanted):
        if (there / part).exists():
            there /= part
            continue
        try:
            siblings = [each.name for each in there.iterdir() if each.is_dir() or number == len(wanted) - 1]
        except OSError:
            return ""
        found = closest(part, siblings)
        return f". Did you mean {str(there / found)!r}?" if found else ""
    return ""
