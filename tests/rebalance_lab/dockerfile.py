"""What a Dockerfile copies into its image, laid out in a folder: no engine needed."""

from __future__ import annotations

import shutil
from pathlib import Path


def lay_out(dockerfile: Path, context: Path, target: Path) -> list[str]:
    """Do what the COPY lines do, with `target` as the working directory; what they name, in order."""
    lines = dockerfile.read_text(encoding="utf-8").splitlines()
    copies = [line.split()[1:] for line in lines if line.startswith("COPY ")]
    for *sources, destination in copies:
        for source in sources:
            _copy(context / source, target / destination, into=len(sources) > 1 or destination.endswith("/"))
    return [source for *sources, _ in copies for source in sources]


def _copy(source: Path, target: Path, *, into: bool) -> None:
    """A folder's content goes to the target; a file goes into it, or becomes it."""
    if source.is_dir():
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")  # as .dockerignore has it
        shutil.copytree(source, target, ignore=ignored, dirs_exist_ok=True)
        return
    folder = target if into else target.parent
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, folder / (source.name if into else target.name))
