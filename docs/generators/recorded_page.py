"""The table of docs/recorded.md: how each recording was made."""

from __future__ import annotations

import datetime
import json
import shlex
import tarfile
from typing import TYPE_CHECKING

from docs.generators.pages import DOCS, filled, markdown_table
from docs.generators.recording import REPORTS, archive_of, tours

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PAGE = DOCS / "recorded.md"
COLUMNS = ("recording", "made with", "on", "version", "kB")


def files() -> Mapping[Path, str]:
    rows = [_row(name) for name in (*tours(), *REPORTS)]
    return {PAGE: filled(PAGE, {"recorded": markdown_table(COLUMNS, rows, rule=["---", "---", "---", "---", "--:"])})}


def _row(name: str) -> list[str]:
    archive = archive_of(name)
    with tarfile.open(archive) as tar:
        path = next(each for each in tar.getnames() if each.endswith("/command.json"))
        content = tar.extractfile(path)
        assert content is not None
        about = json.load(content)
    made = datetime.datetime.strptime(path.partition("Z-")[0], "%Y%m%dT%H%M%S").replace(tzinfo=datetime.UTC)
    versions = about["versions"]
    return [
        f"[{name}](recorded/{archive.name})",
        f"`{shlex.join(about['command'])}`",
        f"{made:%Y-%m-%d}",
        f"{versions['rebalance-lab']} ({versions['commit']})",
        f"{archive.stat().st_size / 1000:.0f}",
    ]
