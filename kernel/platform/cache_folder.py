"""The user's cache folder: what was made or fetched once and can be made again."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "REBALANCE_LAB_CACHE"


def cache_dir() -> Path:
    """$REBALANCE_LAB_CACHE, or a folder by the XDG convention."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rebalance-lab"
