"""The build backend: setuptools, with wheels that install one package at the top level, `rebalance_lab`.

A wheel is built from the tree of `moved_tree`. An sdist is the checkout as it is, and an editable install points to it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from moved_tree import moved_tree
from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    Settings = Mapping[str, str | list[str] | None] | None

# There is no prepare_metadata_for_build_wheel: it would see the checkout, so a frontend takes the wheel's metadata.
__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
]


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build a wheel, and return its name (PEP 517)."""
    target = str(Path(wheel_directory).resolve())
    before = Path.cwd()
    with moved_tree(before) as tree:
        os.chdir(tree)
        try:
            return str(build_meta.build_wheel(target, config_settings))
        finally:
            os.chdir(before)
