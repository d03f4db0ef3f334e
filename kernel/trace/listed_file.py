"""A trace file that a run lists in its `run.json`."""

from __future__ import annotations

from typing import NamedTuple


class ListedFile(NamedTuple):
    """A trace file that was opened: its name, and the process that writes it."""

    file: str
    process: str
    role: str
