"""The product as a user has it, for what is drawn, taken or recorded of it: commands, games, and a browser to look."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from comparison.exits import Exit
from docs.generators.records import COMMAND

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


#: What runs of a command come to: every one of them is what a result may be.
_FINISHED = (Exit.AS_EXPECTED, Exit.NOT_AS_EXPECTED, Exit.UNKNOWN)


def performed(folder: Path, command: Sequence[str], accepted: Sequence[int] = _FINISHED) -> Path:
    """The folder of a finished run of this command, below `folder`, with one of these exit codes."""
    done = subprocess.run([COMMAND, *command], cwd=folder, check=False, stdout=subprocess.DEVNULL)
    if done.returncode not in accepted:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}, see above")
    return newest(folder)


@contextmanager
def game(folder: Path, command: Sequence[str]) -> Iterator[str]:
    """A game for the duration of the block: the address of its page. Its traces are below `folder`."""
    log = folder / "game.log"
    with log.open("w") as errors:
        child = subprocess.Popen([COMMAND, *command], cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert child.stdout is not None
    try:
        address = child.stdout.readline().strip()
        if not address:
            raise SystemExit(log.read_text())
        yield address
    finally:
        child.terminate()
        child.communicate(timeout=60)


def newest(folder: Path) -> Path:
    """The run folder of the last command that was performed there."""
    return (folder / "runs" / "latest").resolve()


@contextmanager
def a_browser() -> Iterator[Any]:
    path = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        raise SystemExit("no Chromium on this machine: install the package chromium")
    from playwright.sync_api import sync_playwright  # what builds the site needs none

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, chromium_sandbox=False)
        try:
            yield browser
        finally:
            browser.close()
