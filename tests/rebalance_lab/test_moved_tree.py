"""What a wheel installs: one package at the top level, in which every import leads to a module that is there."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("kernel", "zkconsumer", "coordinator", "comparison")
MODULES = frozenset({"kernel", "kernel.errors", "kernel.broker", "kernel.broker.broker", "comparison"})
#: What an import of a package by its old name begins with.
OLD_NAME = re.compile(rb"^\s*from\s+(?:" + "|".join(PACKAGES).encode() + rb")\b", re.MULTILINE)

IMPORT_ALL = """
import importlib, pkgutil, sys
import rebalance_lab

names = [module.name for module in pkgutil.walk_packages(rebalance_lab.__path__, "rebalance_lab.")]
# Of the originals' extra; it starts a JVM.
for name in names:
    if not name.endswith((".__main__", ".host_process")):
        importlib.import_module(name)
print(*names, *({name.partition(".")[0] for name in sys.modules} & set(sys.argv[1:])))
"""


def _loaded() -> Any:
    spec = importlib.util.spec_from_file_location("moved_tree", ROOT / "packaging" / "moved_tree.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


moving = _loaded()


def moved(source: str) -> str:
    return moving.moved(source.encode(), MODULES, "m.py").decode()


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("from kernel.errors import A, B\n", "from rebalance_lab.kernel.errors import A, B\n"),
        ("from kernel import errors\n", "from rebalance_lab.kernel import errors\n"),
        ("if x:\n    from comparison.é import (\n        A,\n    )\n", None),
        ("import kernel\n", "import rebalance_lab.kernel as kernel\n"),
        ("import os, kernel.errors as e\n", "import os, rebalance_lab.kernel.errors as e\n"),
        ('"é"; run("-m", "kernel.errors")\n', '"é"; run("-m", "rebalance_lab.kernel.errors")\n'),
        ('{"kernel": "coordinator"}\n', '{"kernel": "coordinator"}\n'),
        ('"""See kernel.errors."""\n# kernel.errors\n', '"""See kernel.errors."""\n# kernel.errors\n'),
        ('"share.kernel.errors", "kernel.errorsome", "a/kernel.errors"\n', None),
        ("from kernels import a\nimport os\nfrom rebalance_lab import b\n", None),
    ],
)
def test_names_of_moved_modules_are_changed_and_nothing_else(source: str, after: str | None) -> None:
    if after is None:
        after = source.replace("from comparison.", "from rebalance_lab.comparison.")
    assert moved(source) == after


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("from . import errors\n", "m.py:1: a relative import"),
        ("import os\nimport kernel.errors\n", "m.py:2: import kernel.errors; write from"),
        ("from  kernel.errors import A\n", "m.py:1: write from kernel.errors  in the usual way"),
        ("x = 'kernel.errors'\n", 'm.py:1: write "kernel.errors" in the usual way'),
        ('x = "see kernel.errors.UserError"\n', "m.py:1: kernel.errors is within a longer string"),
        ('x = f"python -m kernel.broker.broker {y}"\n', "m.py:1: kernel.broker.broker is within a longer string"),
        ('x = f"kernel.errors{y}"\n', "m.py:1: write"),
    ],
)
def test_what_would_be_wrong_in_a_wheel_ends_the_build(source: str, complaint: str) -> None:
    with pytest.raises(moving.CannotMove, match=complaint):
        moved(source)


@pytest.fixture(scope="module")
def tree() -> Iterator[Path]:
    with moving.moved_tree(ROOT) as found:
        yield found


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with packages that have the names of ours, and fail."""
    for name in PACKAGES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('somebody else')\n", encoding="utf-8")
    return tmp_path


def test_tree_has_one_package_and_every_file_of_ours(tree: Path) -> None:
    assert sorted(path.name for path in tree.iterdir()) == ["LICENSE", "README.md", "pyproject.toml", "rebalance_lab"]
    for package in PACKAGES:
        ours = {path.relative_to(ROOT) for path in (ROOT / package).rglob("*") if "__pycache__" not in path.parts}
        theirs = {path.relative_to(tree / "rebalance_lab") for path in (tree / "rebalance_lab" / package).rglob("*")}
        assert theirs == ours
    left = [
        path
        for path in (tree / "rebalance_lab").rglob("*.py")
        if OLD_NAME.search(source := path.read_bytes())  # perhaps in a docstring
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES
    ]
    assert not left


@pytest.mark.long
def test_every_module_loads_beside_packages_with_the_same_names(tree: Path, hostile: Path) -> None:
    loaded = set(_run(tree, hostile, "-c", IMPORT_ALL, *PACKAGES).split())
    assert loaded >= {f"rebalance_lab.{name}" for name in moving.modules_of(ROOT)}
    assert not loaded & set(PACKAGES)


def test_command_runs_beside_packages_with_the_same_names(tree: Path, hostile: Path) -> None:
    assert "crash" in _run(tree, hostile, "-m", "rebalance_lab", "scenarios")


def test_code_for_executors_is_found_by_its_new_name(tree: Path, hostile: Path) -> None:
    """In a process that has nothing of ours but the zip."""
    packing = "from pathlib import Path; from rebalance_lab.comparison.pipeline.spark.shipping import packed_code; "
    _run(tree, hostile, "-c", f"{packing}packed_code(Path())")
    loading = "import rebalance_lab.comparison.pipeline.job as job; print(job.__file__)"
    archive = hostile / "rebalance_lab.zip"
    assert _run(archive, hostile, "-c", loading).startswith(str(archive))


def _run(path: Path, folder: Path, *arguments: str) -> str:
    """What Python prints in `folder`, with `path` in place of our checkout."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
