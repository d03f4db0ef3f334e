"""What commands that make runs say after an interrupt."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from comparison.near_paths import holds_a_run

if TYPE_CHECKING:
    from pathlib import Path


def after_interrupt(bundle: Path) -> str:
    """How to analyse the traces, if there are any."""
    if not holds_a_run(bundle):
        return "interrupted before the first run"
    return f"interrupted; to analyse the traces: rebalance-lab analyze {shlex.quote(str(bundle))}"
