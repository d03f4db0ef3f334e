"""Reads from the test sources which of our tests covers which of Kafka's, without running them.

Four places below `tests/coordinator` may name Kafka's tests: a literal marker on a test function,
`@pytest.mark.kafka("testName", ...)`; a line `# kafka: testName ...` in the prose of a conversation; a line
`kafka: testName ...` below a cell of the error table; "kafka": "testName ..." of a recorded conversation of consumer
groups. Only tests that `make test` runs count.
"""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.support.groups.error_table import cells

ROOT = Path(__file__).resolve().parents[2] / "coordinator"
CONVERSATION = "groups/test_conversations.py::test_conversation_equals_the_recording"
CELL = "groups/test_error_table.py::test_error_table_cell"
RECORDED = (
    "conversations/test_recorded_consumer.py::test_conversation_of_consumer_members_is_answered_as_4_1_1_answered_it"
)
MARKER = "kafka"
#: Tests with one of these markers are not run by `make test`, or need not succeed.
NOT_LIVE = frozenset({"skip", "skipif", "xfail", "faults", "originals", "docker", "long"})


def covered(root: Path = ROOT) -> dict[str, list[str]]:
    """Kafka's name -> our live tests, as `path::function` below `root`, in order."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    live = set()
    for path in sorted(root.rglob("test_*.py")):
        for function, names in _marked(ast.parse(path.read_text(encoding="utf-8"))):
            test = f"{path.relative_to(root).as_posix()}::{function}"
            live.add(test)
            for name in names:
                found[name].append(test)
    for carrier, test, said in _texts(root):
        if carrier in live:
            for name in said:
                found[name].append(test)
    return dict(found)


def named_in_prose(text: str) -> tuple[str, ...]:
    """The tests that a conversation covers, from the comments at its head."""
    head = text.split("\n\n", 1)[0].splitlines()
    return tuple(name for line in head if line.startswith(f"# {MARKER}: ") for name in line.split()[2:])


def _texts(root: Path) -> Iterator[tuple[str, str, Iterable[str]]]:
    for path in sorted((root / "groups" / "conversations").glob("*.txt")):
        yield CONVERSATION, f"{CONVERSATION}[{path.stem}]", named_in_prose(path.read_text(encoding="utf-8"))
    for path in sorted((root / "conversations").glob("consumer*.json")):
        for conversation in json.loads(path.read_text(encoding="utf-8"))["conversations"]:
            yield RECORDED, f"{RECORDED}[{conversation['name']}]", conversation.get(MARKER, "").split()
    table = root / "groups" / "error_table.txt"
    for cell in cells(table) if table.exists() else ():
        yield CELL, f"{CELL}[{cell.id}]", cell.names


def _marked(module: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """Every live test function of a module, with the names on its markers."""
    if NOT_LIVE & {name for statement in module.body if _is_pytestmark(statement) for name in _markers(statement)}:
        return
    for function in module.body:
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and function.name.startswith("test"):
            decorators = function.decorator_list
            if not NOT_LIVE & {name for decorator in decorators for name in _markers(decorator)}:
                yield function.name, [name for decorator in decorators for name in _names(decorator)]


def _is_pytestmark(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and any(ast.unparse(t) == "pytestmark" for t in statement.targets)


def _markers(node: ast.AST) -> set[str]:
    """The x of every `pytest.mark.x`; marks of single cases in `pytest.param` are ignored."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.parametrize":
        return {"parametrize"}
    attributes = (each for each in ast.walk(node) if isinstance(each, ast.Attribute))
    return {each.attr for each in attributes if ast.unparse(each.value) == "pytest.mark"}


def _names(decorator: ast.expr) -> list[str]:
    if not (isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == f"pytest.mark.{MARKER}"):
        return []
    names = [ast.literal_eval(argument) for argument in decorator.args]
    assert names, "a marker without names"
    return names
