"""One table lists the designs; everything else derives from it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from comparison.consumers import CONSUMERS
from comparison.member_settings import MEMBER_SETTINGS
from comparison.scenarios.plan.catalogue import CATALOGUE
from comparison.scenarios.plan.presets import PRESETS
from kernel import designs
from kernel.designs import ALL_AT_ONCE, CLASSIC, COORDINATED, DESIGN_NAMES, DESIGNS, INCREMENTAL, RECONCILING

ROOT = Path(__file__).resolve().parents[2]
CONSTANTS = {name for name, value in vars(designs).items() if isinstance(value, str) and value in DESIGNS}
#: Tables with values for each design: tests compare their keys with the one table.
KEYED = {
    "comparison/scenarios/plan/catalogue_changes.py": 2,  # not_applicable
    "comparison/scenarios/plan/catalogue_membership.py": 2,  # not_applicable
    "comparison/consumers.py": 1,  # CONSUMERS
    "comparison/designs/table.py": 1,  # PROFILES
    "comparison/member_settings.py": 1,  # MEMBER_SETTINGS
}


#: A design's name or constant, in a module's text.
NAMED = re.compile(rf"\b(?:{'|'.join((*DESIGNS, *CONSTANTS))})\b")


def names_in(node: ast.expr | None) -> set[str]:
    """The design that an expression names, by its text or by its constant in `kernel.designs`."""
    match node:
        case ast.Constant(value=str(text)) if text in DESIGNS:
            return {text}
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in CONSTANTS:
            return {str(vars(designs)[name])}
    return set()


def literals_of_names(source: str) -> tuple[int, int]:
    """How many sequences and sets of three or more designs there are, and how many mappings by design."""
    lists = keyed = 0
    if len(set(NAMED.findall(source))) < 3:  # most modules: no need to parse them
        return lists, keyed
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            lists += len(set().union(*map(names_in, node.elts))) > 2
        elif isinstance(node, ast.Dict):
            keyed += len(set().union(*map(names_in, node.keys))) > 2
    return lists, keyed


def test_product_has_one_table_of_designs() -> None:
    found = {
        str(path.relative_to(ROOT)): literals_of_names(path.read_text())
        for package in ("kernel", "zkconsumer", "coordinator", "comparison", "bench")
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    assert found.pop("kernel/designs.py") == (0, 0)
    assert {path: keyed for path, (_, keyed) in found.items() if keyed} == KEYED
    assert [path for path, (lists, _) in found.items() if lists] == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('DESIGNS = ("zookeeper", "server", "eager")', (1, 0)),
        ('DESIGNS = frozenset({"eager", "static", "delayed"})', (1, 0)),
        ("DESIGNS = [ZOOKEEPER, designs.EAGER, STATIC]", (1, 0)),
        ('COSTS = {"eager": 1, STATIC: 2, "delayed": 3}', (0, 1)),
        ('PAIR = ("zookeeper", "eager")', (0, 0)),
        ('JARS = ("zookeeper", "zookeeper-jute", "slf4j-api")', (0, 0)),
    ],
)
def test_literal_of_design_names_is_seen(source: str, expected: tuple[int, int]) -> None:
    assert literals_of_names(source) == expected


def test_tables_with_values_for_each_design_have_every_design() -> None:
    assert tuple(CONSUMERS) == DESIGN_NAMES
    assert tuple(MEMBER_SETTINGS) == DESIGN_NAMES
    assert {tuple(preset.members) for preset in PRESETS.values()} == {DESIGN_NAMES}
    for scenario in CATALOGUE.values():
        assert scenario.not_applicable.keys() | scenario.same_run_as.keys() <= DESIGNS.keys()


def test_traits_group_the_designs() -> None:
    assert DESIGN_NAMES == ("zookeeper", "server", "eager", "static", "cooperative", "delayed", "consumer")
    assert DESIGN_NAMES[1:] == COORDINATED
    assert CLASSIC == ("eager", "static", "cooperative", "delayed")
    assert (ALL_AT_ONCE, INCREMENTAL) == (("eager", "static"), ("cooperative", "delayed", "consumer"))
    assert RECONCILING == ("consumer",)
    assert {design.package for design in DESIGNS.values()} == {"zkconsumer", "coordinator"}
    for name, design in DESIGNS.items():
        assert design.name == name
        assert design.coordinator == (design.package == "coordinator")
