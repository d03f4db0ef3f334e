"""What the pipeline uses beside itself is shipped to executors, and is part of what kept results depend on."""

from __future__ import annotations

import ast
from pathlib import Path

import comparison.pipeline
from comparison.pipeline.beside import BESIDE, files_beside

#: The session, which only the driver has, reacts to signals with it.
ONLY_DRIVERS = "interrupts"


def imported(path: Path) -> set[str]:
    """The modules of the package `comparison` that a file names in its imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(str(node.module))
        elif isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
    return {name.split(".")[1] for name in names if name.startswith("comparison.")}


def test_modules_beside_the_pipeline_are_all_that_it_imports() -> None:
    (folder,) = comparison.pipeline.__path__
    used = set().union(*map(imported, Path(folder).rglob("*.py"))) - {"pipeline", ONLY_DRIVERS}
    assert used == {Path(name).stem for name in BESIDE}
    assert all(path.is_file() for path in files_beside())
