"""Packages that a child process finds installed: a module with its entry points, in a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def installed(site: Path, module: str, source: str, group: str, entries: Mapping[str, str]) -> dict[str, str]:
    """Install a module into `site`; the environment of a process that finds it."""
    info = site / f"{module}-1.dist-info"
    info.mkdir(parents=True)
    (site / f"{module}.py").write_text(source, encoding="utf-8")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n", encoding="utf-8")
    points = "\n".join(f"{name} = {where}" for name, where in entries.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{points}\n", encoding="utf-8")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH", "")]))}
