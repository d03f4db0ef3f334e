"""Figures of runs as they are kept beside their pages: made again a command at a time, written a line for each case."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

COMMAND = Path(sys.executable).with_name("rebalance-lab")


def lined(cases: Iterable[object]) -> str:
    """A JSON list with a line for each case."""
    return "[\n" + ",\n".join(msgspec.json.encode(case).decode() for case in cases) + "\n]"


def write_parts(path: Path, parts: Mapping[str, str]) -> None:
    """A JSON object of these parts, each of which is JSON already."""
    text = ",\n".join(f'"{name}":{content}' for name, content in parts.items())
    path.write_text(f"{{{text}}}\n", encoding="utf-8")


def together(several: Sequence[Mapping[str, Any]], missing: float | None) -> dict[str, list[Any]]:
    """By name, the values of all runs, `missing` where one has none."""
    names = dict.fromkeys(name for figures in several for name in figures)
    return {name: [figures.get(name, missing) for figures in several] for name in names}


def asked(module: str, doc: str | None, names: Iterable[str]) -> Iterator[tuple[str, Path, bool]]:
    """The names that the command line asks for, the folder of each one's runs, and whether they are earlier runs."""
    parser = argparse.ArgumentParser(prog=module, description=doc)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(names)}  [default: all]")
    parser.add_argument("--runs", type=Path, help="folder of the runs of earlier commands, instead of new ones")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for name in given.names or names:
            yield name, (given.runs or Path(scratch)) / name, given.runs is not None
