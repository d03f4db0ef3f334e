"""The figures of the 0.8 consumer's offsets: as the code gives them, with names that exist."""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path

import zkconsumer
from docs.generators.offset_life import CHUNKS_MAX, COMMITTED, FETCH, life
from docs.generators.offset_picture import NAMES, PARTS, files
from docs.generators.pages import DOCS

ROOT = Path(zkconsumer.__file__).parent


def test_the_page_shows_the_offset_figures():
    text = (DOCS / "zookeeper-consumer.md").read_text(encoding="utf-8")
    assert [path.name for path in files() if f"](diagrams/figures/{path.name})" not in text] == []


def defined(module: str) -> set[str]:
    """Classes of a module, and their fields and methods as Class.name."""
    found = set()
    for node in ast.parse((ROOT / module).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
            for each in node.body:
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                    found.add(f"{node.name}.{each.name}")
                elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                    found.add(f"{node.name}.{each.target.id}")
    return found


def test_names_beside_the_offset_figures_are_those_of_the_code():
    known = set().union(*(defined(module) for _, _, module in NAMES))
    for _, ours, module in NAMES:
        assert ours in defined(module), ours
    named = {name for moment in life() for name in moment.by.split(", ")}
    named |= {f"PartitionInfo.{part.field}" for part in PARTS if part.field}
    named |= {name for part in PARTS if part.name[0].isupper() for name in part.name.split(", ")}
    assert named <= known


def test_offsets_live_as_the_page_says():
    moments = life()
    for moment in moments:
        assert moment.checkpointed <= moment.consumed <= moment.fetched
        assert len(moment.chunks) <= CHUNKS_MAX
    assert (moments[0].fetched, moments[0].consumed, moments[0].checkpointed) == (COMMITTED,) * 3
    before_the_stop = moments[:-2]
    for earlier, later in pairwise(before_the_stop):
        assert later.fetched >= earlier.fetched
        assert later.consumed >= earlier.consumed
    full = next(moment for moment in moments if moment.waiting)
    assert (len(full.chunks), full.fetched) == (CHUNKS_MAX, COMMITTED + CHUNKS_MAX * FETCH)
    stopped, successor = moments[-2:]
    assert stopped.chunks == ()
    assert stopped.fetched > stopped.consumed == stopped.checkpointed
    assert (successor.fetched, successor.consumed, successor.checkpointed) == (stopped.checkpointed,) * 3
