"""The one complaint about a path that is not there, or is a file where a folder is wanted, with the path meant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kernel.suggestions import close_ones

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Where commands put their runs by default, so where a path is looked for before anywhere else.
RUNS = Path("runs")
#: How far a run may be below a folder that is given for it: `runs/<command>/<scenario>/<design>/<seed>`.
_DEPTH_MAX = 4


def holds_a_run(path: Path) -> bool:
    """Whether a folder is that of a run, or has runs below it. It need not exist."""
    from kernel.trace.listed_file import RUN_FILE  # it loads msgspec, which no path that exists needs

    below = ("*/" * depth for depth in range(_DEPTH_MAX + 1))
    return any(any(path.glob(f"{each}{RUN_FILE}")) or any(path.glob(f"{each}trace/*.jsonl")) for each in below)


def holds_events(path: Path) -> bool:
    """As `holds_a_run`, or a trace file."""
    return path.suffix == ".jsonl" if path.is_file() else holds_a_run(path)


def is_toml(path: Path) -> bool:
    return path.suffix == ".toml" and path.is_file()


def path_complaint(path: Path, remedy: str, takes: Callable[[Path], bool] = holds_a_run) -> str:
    """What is wrong with a path that is not there, or is of the wrong kind; `takes` says which one may be meant."""
    if not path.exists():
        what = f"no such file or folder {str(path)!r}"
    else:
        what = f"{path} is a folder, not a file" if path.is_dir() else f"{path} is a file, not a folder"
    meant = near_path(path, takes)
    return f"{what}{f'. Did you mean {str(meant)!r}?' if meant else '.'} {remedy}"


def near_path(path: Path, takes: Callable[[Path], bool]) -> Path | None:
    """The existing path that is most like this one and that the command takes."""
    parts = path.parts[bool(path.anchor) :]
    roots = [Path(path.anchor)] if path.anchor else [RUNS, Path()]
    return next((found for root in roots if (found := _corrected(root, parts, takes))), None)


def _corrected(there: Path, parts: Sequence[str], takes: Callable[[Path], bool]) -> Path | None:
    if not parts:
        return there if takes(there) else None
    name, *rest = parts
    return next((found for each in _alike(there, name) if (found := _corrected(there / each, rest, takes))), None)


def _alike(folder: Path, name: str) -> list[str]:
    if (folder / name).exists():
        return [name]
    try:
        names = [Path(each.name) for each in folder.iterdir()]
    except OSError:
        return []
    # What ends alike is no more alike for it: `my.toml` is not `or.toml`.
    same = {each.stem: each.name for each in names if each.suffix == Path(name).suffix}
    others = [each.name for each in names if each.suffix != Path(name).suffix]
    return [*(same[stem] for stem in close_ones(Path(name).stem, same)), *close_ones(name, others)]
