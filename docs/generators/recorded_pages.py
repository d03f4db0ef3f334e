"""Pages made of the recordings, for the site: a report of each comparison, and a replay of each tour with its words.

The recordings are unpacked and analysed below `build/`, where `analyze` keeps what it found, so that only the first
build of the site, and one after a change of the pipeline or of a recording, starts Spark.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from typing import TYPE_CHECKING

from comparison.cli.given_results import result_of
from comparison.cli.replay import replay_of
from comparison.cli.report_file import write_page
from comparison.exits import Exit
from docs.generators.pages import DOCS
from docs.generators.recording import REPORTS, archive_of, captions, recorded_tour, tours, unpack
from docs.generators.records import COMMAND

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BUILD = DOCS.parent / "build" / "recorded"
_DIGEST = ".archive"


def pages() -> Mapping[str, str]:
    """The page of each recording, by its name. One process at a time makes them, and others wait."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        reports = {name: _report(folder) for name, folder in _analysed().items()}
        return reports | {name: replay_page(name) for name in tours()}


def _analysed() -> Mapping[str, Path]:
    """The folders of the reports' runs, with their analysis above. Raises SystemExit if there is none."""
    folders = {name: _unpacked(name, BUILD / "reports") for name in REPORTS}
    done = subprocess.run([COMMAND, "analyze", BUILD / "reports", "--quiet"], check=False, stdout=subprocess.PIPE)
    if done.returncode != Exit.AS_EXPECTED:
        raise SystemExit(f"{done.stdout.decode()}\nthe recordings' runs are not as their models say, see above")
    return folders


def _report(folder: Path) -> str:
    """A report whose commands name the runs as if they had been unpacked into `runs/`."""
    result, home = result_of(folder)
    page = folder / "report.html"
    unshown = write_page([(result, home)], page, named=True)
    if unshown:
        raise SystemExit(f"the page of {folder.name} lacks {unshown}")
    return page.read_text(encoding="utf-8").replace(str(folder.parent), "runs")


def replay_page(name: str) -> str:
    """The replay of a tour, with its words."""
    folder, tour = _unpacked(name, BUILD / "tours"), tours()[name]
    recorded = recorded_tour(folder)
    assert recorded is not None
    return replay_of([folder], captions(tour, recorded), title=tour.title)


def _unpacked(name: str, where: Path) -> Path:
    """The run folder of a recording, unpacked again if it is another one by now."""
    folder, digest = where / name, hashlib.sha256(archive_of(name).read_bytes()).hexdigest()
    mark = folder.with_suffix(_DIGEST)
    if not mark.exists() or mark.read_text() != digest:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        unpack(archive_of(name), folder)
        mark.write_text(digest)
    (found,) = folder.iterdir()
    return found
