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
    by_command: dict[str, list[str]] = {}
    for archive in archives:
        how, designs = _made(archive)
        link = f"[{archive.name}](recorded/{archive.name})"
        by_command.setdefault(how, []).append(f"{link} (`{designs}`)" if designs else link)
    lines = [f"- {', '.join(of)}: {how}" for how, of in by_command.items()]
    kb = sum(each.stat().st_size for each in archives) / 1000
    return {PAGE: filled(PAGE, {"recorded": "\n".join([*lines, "", f"All of them have {kb:,.0f} kB."])})}


def _made(archive: Path) -> tuple[str, str]:
    """How it was made, and the designs where they end the command, which tours otherwise share."""
    with tarfile.open(archive) as tar:
        path = next(each for each in tar.getnames() if each.endswith("/command.json"))
        content = tar.extractfile(path)
        assert content is not None
        about = json.load(content)
    made = datetime.datetime.strptime(path.partition("Z-")[0], "%Y%m%dT%H%M%S").replace(tzinfo=datetime.UTC)
    versions = about["versions"]
    *command, option, designs = about["command"]
    if option != "--design":
        command, designs = about["command"], ""
    shown = f"{shlex.join(command)}{' --design ...' if designs else ''}"
    return f"`{shown}`, {made:%Y-%m-%d}, version {versions['rebalance-lab']} at {versions['commit']}", designs
