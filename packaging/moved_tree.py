"""The tree that a wheel is made of: all our packages below one, `rebalance_lab`.

In a checkout our packages are `kernel`, `zkconsumer`, `coordinator` and `comparison`, so that readers, editors and type
checkers see plain modules. Installed, such names would clash with anybody's `kernel`. So a wheel is built from a copy
of the tree in which these packages are below `rebalance_lab`, and the copy's imports say so:

- `from kernel.errors import X` becomes `from rebalance_lab.kernel.errors import X`, and `import kernel` becomes
  `import rebalance_lab.kernel as kernel`;
- a string that is exactly the dotted name of one of our modules (`python -m`, `importlib.resources`, Spark's daemon)
  becomes that module's new name.

Docstrings and comments stay as they are. Whatever else names one of our modules ends the build, because it would be
wrong in the wheel: a relative import, `import kernel.errors` without `as`, a name within a longer string.
"""

from __future__ import annotations

import ast
import re
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMESPACE = "rebalance_lab"
PACKAGES = ("kernel", "zkconsumer", "coordinator", "comparison")
_NAME = re.compile(rf"(?<![\w./-])(?:{'|'.join(PACKAGES)})(?:\.\w+)+")


class CannotMove(Exception):
    """A module names one of ours in a way that would be wrong in a wheel."""


@contextmanager
def moved_tree(root: Path) -> Iterator[Path]:
    """A copy of the project with its packages below `rebalance_lab`, for the duration of the block."""
    modules = modules_of(root)
    with tempfile.TemporaryDirectory(prefix="rebalance-lab-wheel-") as folder:
        tree = Path(folder)
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy2(root / name, tree / name)
        left_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(root / NAMESPACE, tree / NAMESPACE, ignore=left_out)
        for package in PACKAGES:
            shutil.copytree(root / package, tree / NAMESPACE / package, ignore=left_out)
        for path in tree.rglob("*.py"):
            path.write_bytes(moved(path.read_bytes(), modules, str(path.relative_to(tree))))
        yield tree


def modules_of(root: Path) -> frozenset[str]:
    """The dotted names of all modules and packages that move."""
    paths = (path.relative_to(root).with_suffix("") for package in PACKAGES for path in (root / package).rglob("*.py"))
    return frozenset(".".join(path.parts).removesuffix(".__init__") for path in paths)


class _Edit(NamedTuple):
    """`new` replaces `old`, which begins at this line and byte."""

    line: int
    column: int
    old: str
    new: str


def moved(source: bytes, modules: frozenset[str], where: str) -> bytes:
    """A module's source after the move. Raises `CannotMove` with `where`."""
    nodes = list(ast.walk(ast.parse(source, where)))
    texts = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # docstrings
    lines = source.splitlines(keepends=True)
    naming = [each for each in nodes if isinstance(each, ast.Import | ast.ImportFrom | ast.Constant)]
    edits = [edit for node in naming if id(node) not in texts for edit in _edits(node, modules, where)]
    for edit in sorted(edits, reverse=True):
        line, old = lines[edit.line - 1], edit.old.encode()
        if not line.startswith(old, edit.column):
            raise CannotMove(f"{where}:{edit.line}: write {edit.old} in the usual way, in one piece")
        lines[edit.line - 1] = line[: edit.column] + edit.new.encode() + line[edit.column + len(old) :]
    return b"".join(lines)


def _edits(node: ast.AST, modules: frozenset[str], where: str) -> Iterator[_Edit]:
    match node:
        case ast.ImportFrom(level=level) if level:
            raise CannotMove(f"{where}:{node.lineno}: a relative import; name the package")
        case ast.ImportFrom(module=str(name)) if _is_ours(name):
            yield _Edit(node.lineno, node.col_offset, f"from {name} ", f"from {NAMESPACE}.{name} ")
        case ast.Import():
            yield from (_import(alias, where) for alias in node.names if _is_ours(alias.name))
        case ast.Constant(value=str(text)) if text in modules and "." in text:
            yield _Edit(node.lineno, node.col_offset, f'"{text}"', f'"{NAMESPACE}.{text}"')
        case ast.Constant(value=str(text)) if name := _named_in(text, modules):
            raise CannotMove(f"{where}:{node.lineno}: {name} is within a longer string; make it a string of its own")


def _import(alias: ast.alias, where: str) -> _Edit:
    if "." in alias.name and alias.asname is None:
        raise CannotMove(f"{where}:{alias.lineno}: import {alias.name}; write from ... import ...")
    bound = f" as {alias.name}" if alias.asname is None else ""
    return _Edit(alias.lineno, alias.col_offset, alias.name, f"{NAMESPACE}.{alias.name}{bound}")


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in PACKAGES


def _named_in(text: str, modules: frozenset[str]) -> str:
    """A module of ours that the text names, as `kernel.errors` in `see kernel.errors.UserError`; or ''."""
    for found in _NAME.findall(text):
        parts = found.split(".")
        for end in range(len(parts), 1, -1):
            if (name := ".".join(parts[:end])) in modules:
                return name
    return ""
