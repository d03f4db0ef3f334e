"""The list in docs/recorded.md: how each recording was made."""

from __future__ import annotations

import datetime
import json
import shlex
import tarfile
from typing import TYPE_CHECKING

from docs.generators.pages import DOCS, filled
from docs.generators.recording import REPORTS, archive_of, tours

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PAGE = DOCS / "recorded.md"


def files() -> Mapping[Path, str]:
    archives = [archive_of(name) for name in (*tours(), *REPORTS)]
    kb = sum(each.stat().st_size for each in archives) / 1000
    return {PAGE: filled(PAGE, {"recorded": "\n".join([*map(_line, archives), "", f"All of them have {kb:,.0f} kB."])})}


def _line(archive: Path) -> str:
    with tarfile.open(archive) as tar:
        path = next(each for each in tar.getnames() if each.endswith("/command.json"))
        content = tar.extractfile(path)
        assert content is not None
        about = json.load(content)
    made = datetime.datetime.strptime(path.partition("Z-")[0], "%Y%m%dT%H%M%S").replace(tzinfo=datetime.UTC)
    versions = about["versions"]
    return (
        f"- [{archive.name}](recorded/{archive.name}), {made:%Y-%m-%d}, version {versions['rebalance-lab']} at "
        f"{versions['commit']}: `{shlex.join(about['command'])}`"
    )
