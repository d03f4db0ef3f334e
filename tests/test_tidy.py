"""The structure of the code: sizes, import contracts, folders that must not become packages.

Files get out of hand one reasonable change at a time; a limit notices the first one too many.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from itertools import groupby
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("rebalance_lab", "kernel", "zkconsumer", "coordinator", "comparison")
#: All folders that documents cite.
FOLDERS = (*PACKAGES, "bench", "docker", "docs", "packaging", "tests")
MODULE_LINES_MAX = 400
TEST_MODULE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
#: Folders of tests that test a whole instead of one folder of the product; `docs/architecture.md` names them.
TESTS_OF_A_WHOLE = {
    "contract",
    "coordinator/conversations",
    "coordinator/designs",
    "coordinator/failover",
    "coordinator/transactions",
    "faults",
    "hostile",
    "originals",
    "zkconsumer/weaknesses",
}


def modules() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def bench_modules() -> list[Path]:
    return sorted((ROOT / "bench").rglob("*.py"))


def test_modules() -> list[Path]:
    return sorted((ROOT / "tests").rglob("*.py"))


test_modules.__test__ = False  # type: ignore[attr-defined]  # it lists files, it is not a test


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def longest_indented(source: str) -> int:
    """How many lines follow each other that are not at the margin, or are inside a text in three quotes."""
    indented = re.sub(r"('''|\"\"\").*?\1", lambda text: text[0].replace("\n", "\n "), source, flags=re.DOTALL)
    runs = groupby(indented.splitlines(), lambda line: line[:1] in {"", " ", ")", "]", "}"})
    return max((len(list(run)) for is_indented, run in runs if is_indented), default=0)


def long_functions(source: str) -> list[tuple[str, int]]:
    """(name, lines) of every function over the limit; decorators are not counted."""
    if longest_indented(source) < FUNCTION_LINES_MAX:  # no need to parse it
        return []
    return [
        (node.name, length)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    ]


def test_no_module_is_longer_than_its_limit() -> None:
    too_long = {named(p): lines(p) for p in (*modules(), *bench_modules()) if lines(p) > MODULE_LINES_MAX}
    too_long |= {named(p): lines(p) for p in test_modules() if lines(p) > TEST_MODULE_LINES_MAX}
    assert not too_long


def test_no_function_is_longer_than_its_limit() -> None:
    too_long = {
        f"{named(path)}:{name}": length
        for path in (*modules(), *test_modules())
        for name, length in long_functions(path.read_text(encoding="utf-8"))
    }
    assert not too_long


def test_a_function_over_the_limit_is_found() -> None:
    body = "\n".join("    pass" for _ in range(FUNCTION_LINES_MAX))
    assert long_functions(f"def f():\n{body}\n") == [("f", FUNCTION_LINES_MAX + 1)]
    assert long_functions(f"def f():\n{body[:-9]}\n") == []
    margin = body.replace("    pass", '    """\nat the margin\n"""', 1)
    assert long_functions(f"def f():\n{margin}\n") == [("f", FUNCTION_LINES_MAX + 3)]


def test_import_contracts_hold() -> None:
    result = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def starts_python_itself(source: str) -> bool:
    """Whether a module names the interpreter, and so can start it in a way of its own."""
    if "executable" not in source:  # most modules: no need to parse them
        return False
    found = ast.walk(ast.parse(source))
    names = {node.name if isinstance(node, ast.alias) else getattr(node, "attr", "") for node in found}
    return "executable" in names


def test_only_one_module_starts_python() -> None:
    """All others would have to know how, so that a child imports nothing from the folder that a user stands in."""
    found = [named(path) for path in modules() if starts_python_itself(path.read_text(encoding="utf-8"))]
    assert found == ["kernel/platform/interpreter.py"]


def test_a_module_that_starts_python_is_found() -> None:
    assert starts_python_itself("import sys\nx = [sys.executable]\n")
    assert starts_python_itself("from sys import executable as python\n")
    assert not starts_python_itself("import sys\nx = [sys.argv]\n")


def test_package_init_files_import_nothing() -> None:
    """Import-linter follows chains, so an `__init__.py` that imports would tie everything to everything.

    The public one imports when a name is used: `tests/rebalance_lab/test_public.py`.
    """
    busy = [
        named(path)
        for path in modules()
        if path.name == "__init__.py"
        and path.parent.name != "rebalance_lab"
        and any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(ast.parse(path.read_text())))
    ]
    assert not busy


def test_build_finds_every_package() -> None:
    """A folder without `__init__.py` would be silently left out of the wheel."""
    find = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]
    assert find["include"] == [f"{package}*" for package in PACKAGES]
    folders = {path.parent for path in modules()}
    assert not [named(folder) for folder in folders if not (folder / "__init__.py").exists()]


@pytest.mark.parametrize("folder", ["bench", "tests", "docker", "docs", "packaging"])
def test_no_folder_shadows_a_package(folder: str) -> None:
    assert not list((ROOT / folder).rglob("__init__.py"))


def test_folders_of_tests_are_those_of_the_product() -> None:
    tested = {str(path.parent.relative_to(ROOT / "tests")) for path in (ROOT / "tests").rglob("test_*.py")} - {"."}
    product = (*modules(), *bench_modules())
    rooms = {named(path.parent) for path in product if path.name != "__init__.py"}
    assert rooms - tested == set(), "folders without tests of their own"
    folders = {named(path.parent) for path in product}
    assert tested - folders - TESTS_OF_A_WHOLE == set(), "tests of folders that do not exist"


def test_constraints_are_exact_versions_and_nothing_else() -> None:
    wrong = [
        line
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!_-]+", line)
    ]
    assert not wrong


def test_nothing_is_left_to_do_later() -> None:
    """A marker in the code is forgotten; open work belongs in an issue."""
    marker = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX")) + r")\b")
    found = [
        named(p)
        for p in (*modules(), *bench_modules(), *test_modules())
        if marker.search(p.read_text(encoding="utf-8"))
    ]
    assert not found


def cited_paths(text: str) -> list[str]:
    """The paths in a document: those of its links, and those in backquotes that name files or folders of ours."""
    linked = re.findall(r"\]\(([\w./-]+?)(?:#[\w-]*)?\)", text)
    suffixes = "py|json|txt|md|lock|j2|sh|yaml"
    files = re.findall(rf"`((?:[\w.-]+/)+[\w-]+\.(?:{suffixes}))(?:::\w+(?:\[.*?\])?)?`", text)
    folders = re.findall(rf"`((?:{'|'.join(FOLDERS)})(?:/\w+)*)/?`", text)
    modules_alone = re.findall(r"`([\w-]+\.py)`", text)
    return [*linked, *files, *folders, *modules_alone]


def test_citations_of_a_document_are_found() -> None:
    text = (
        "see [a](docs/a.md#b), `kernel/gone/`, `run/gone.py::test_it[x]`, `alone.py`; not `text/plain`, runs/ or `a/b`"
    )
    assert cited_paths(text) == ["docs/a.md", "run/gone.py", "kernel/gone", "alone.py"]


def test_documents_name_files_and_folders_that_exist() -> None:
    """`run/steps.py` may stand for any file whose path ends so."""
    known = {f"/{named(path)}" for folder in FOLDERS for path in (ROOT / folder).rglob("*")}
    pages = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"))
    gone = [
        f"{page.name}: {cited}"
        for page in pages
        for cited in cited_paths(page.read_text(encoding="utf-8"))
        if not any((start / cited).exists() for start in (ROOT, page.parent))
        and not any(path.endswith(f"/{cited}") for path in known)
    ]
    assert not gone


def test_articles_are_named_as_in_the_list_of_sources() -> None:
    """A reader knows neither a seed nor its number; a seed here is that of random choices."""
    vague = re.compile(r"\bseeds? 00\d", re.IGNORECASE)
    texts = (*modules(), *test_modules(), *(ROOT / "docs").glob("*.md"), ROOT / "README.md")
    assert not [named(path) for path in texts if vague.search(path.read_text(encoding="utf-8"))]


def cited_tests(text: str) -> list[tuple[str, str]]:
    """(path, test) of every test that a document names."""
    return re.findall(r"`((?:[\w.-]+/)*[\w-]+\.py)::(\w+)(?:\[.*?\])?`", text)


def test_cited_tests_of_a_document_are_found() -> None:
    assert cited_tests("`a/test_b.py::test_c[x]`, `test_d.py::test_e` and `a/test_b.py`") == [
        ("a/test_b.py", "test_c"),
        ("test_d.py", "test_e"),
    ]


def test_documents_name_tests_that_exist() -> None:
    """`run/test_steps.py::test_x` may stand for any file whose path ends so."""
    sources = {f"/{named(path)}": path.read_text(encoding="utf-8") for path in test_modules()}
    gone = [
        f"{page.name}: {path}::{test}"
        for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"))
        for path, test in cited_tests(page.read_text(encoding="utf-8"))
        if not any(known.endswith(f"/{path}") and f"def {test}(" in source for known, source in sources.items())
    ]
    assert not gone
