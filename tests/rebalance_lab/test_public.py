"""The public names: all are there, and none costs anything before it is used."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rebalance_lab

ROOT = Path(__file__).resolve().parents[2]


def test_package_loads_nothing_of_ours_before_a_name_is_used() -> None:
    ours = "kernel, zkconsumer, coordinator, comparison"
    source = f"import sys, rebalance_lab; print([name for name in {ours.split(', ')} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", source], cwd=ROOT, capture_output=True, check=True).stdout == b"[]\n"


def test_names_that_the_page_lists_are_there() -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(rebalance_lab[\w.]*)` \| (.*) \|$", page, re.MULTILINE)
    assert len(rows) == 4
    for module, text in rows:
        public = importlib.import_module(module)
        for name in re.findall(r"`(\w+)`", text):
            assert hasattr(public, name), (module, name)


def test_unknown_name_is_refused_with_those_that_exist() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'consumr'; it has DESIGNS, .*consumer, open_run"):
        rebalance_lab.consumr  # type: ignore[attr-defined]  # noqa: B018
