"""What the pipeline uses beside itself is shipped to executors, and is part of what kept results depend on."""

from __future__ import annotations

import ast
from pathlib import Path

import comparison.pipeline
from comparison.fuzzing import verdicts
from comparison.pipeline.beside import BESIDE, files_beside

#: The session, which only the driver has, reacts to signals with it.
ONLY_DRIVERS = "interrupts"


def imported(path: Path) -> set[str]:
    """The modules of the package `comparison` that a file names in its imports."""
    return {name.split(".")[1] for name in full_names(path) if name.startswith("comparison.")}


def full_names(path: Path) -> set[str]:
    """What a file names in its imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(str(node.module))
        elif isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
    return names


def test_modules_beside_the_pipeline_are_all_that_it_imports() -> None:
    (folder,) = comparison.pipeline.__path__
    used = set().union(*map(imported, Path(folder).rglob("*.py"))) - {"pipeline", ONLY_DRIVERS}
    assert used == {Path(name).stem for name in BESIDE}
    assert all(path.is_file() for path in files_beside())


def test_kept_results_depend_on_what_judges_runs_by_promises_alone() -> None:
    """With the modules of the fuzzer that it is made of, of which each decides something."""
    of_the_fuzzer, left = set[Path](), [Path(str(verdicts.__file__))]
    while left:
        path = left.pop()
        of_the_fuzzer.add(path)
        names = {name.rpartition(".")[2] for name in full_names(path) if name.startswith("comparison.fuzzing.")}
        left += {path.with_name(f"{name}.py") for name in names} - of_the_fuzzer
    assert len(of_the_fuzzer) > 1
    assert of_the_fuzzer <= set(files_beside())
