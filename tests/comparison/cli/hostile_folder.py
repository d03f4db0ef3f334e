"""A folder in which every module that a program of ours could import is somebody else's, and says that it was run."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

#: The only one that `python -m rebalance_lab` must find where the user stands, if it is there.
_ASKED_FOR = "rebalance_lab"
_OURS = ("kernel", "zkconsumer", "coordinator", "comparison")
#: What Python itself looks for as it starts.
_AT_THE_START = ("sitecustomize", "usercustomize")
_GROUPS = ("rebalance_lab.scenarios", "rebalance_lab.assignors")
_RUN = "modules-that-were-run"


def make_hostile(folder: Path) -> None:
    """Put modules with the names of the standard library's, of ours and of all installed packages into a folder.

    A package's metadata is there as well, which plugs one of them in.
    """
    marker = folder / _RUN
    for name in _names():
        says = f"with open({str(marker)!r}, 'a') as file:\n    print({name!r}, file=file)\n"
        (folder / f"{name}.py").write_text(f"{says}raise ImportError('the module of a stranger was run')\n")
    info = folder / "plugged-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1\n")
    (info / "entry_points.txt").write_text("".join(f"[{group}]\nplugged = plugged\n" for group in _GROUPS))


@cache
def _names() -> set[str]:
    installed = {name for name in packages_distributions() if name.isidentifier()}
    return {*sys.stdlib_module_names, *installed, *_OURS, *_AT_THE_START, "plugged"} - {_ASKED_FOR}


def run_in(folder: Path) -> list[str]:
    """The folder's modules that were run."""
    marker = folder / _RUN
    return marker.read_text().split() if marker.exists() else []
