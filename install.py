"""`make setup`: a virtual environment in .venv with everything installed, and progress while that takes minutes.

It needs nothing but the standard library. On a terminal one line is redrawn; elsewhere a line is printed when there is
something to tell, and at least every 15 seconds. Everything that pip says is in .venv/install.log.
"""

from __future__ import annotations

import argparse
import queue
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LOG = "install.log"
#: How often something is shown, at least.
_REDRAWN_S, _PRINTED_S = 0.5, 15.0
#: Longer lines would wrap, and could not be redrawn.
_WIDTH = 79
#: Downloads that are worth a line of their own.
_LARGE_MB = 20
_PACKAGE = re.compile(r"(?:Collecting|Requirement already satisfied:) (?P<name>[A-Za-z0-9._-]+)")
_DOWNLOAD = re.compile(r"\s*(?P<how>Downloading|Using cached) (?P<file>\S+) \((?P<size>[\d.]+) (?P<unit>[kMG]?B)\)")
_INSTALLING = re.compile(r"Installing collected packages: (?P<names>.+)")
_UNITS_MB = {"B": 1e-6, "kB": 1e-3, "MB": 1, "GB": 1000}


class Cause(NamedTuple):
    """A way to fail: what pip or venv then say, what that means, and what to do."""

    said: str
    wrong: str
    remedy: str


CAUSES = (
    Cause(
        r"ensurepip is not|No module named (venv|ensurepip|pip)",
        "this Python cannot create virtual environments",
        "Install what it lacks (on Debian and Ubuntu: apt install python3-venv), or set PYTHON=... to another one",
    ),
    Cause(
        r"No space left on device|Disk quota exceeded",
        "the disk is full",
        "Free about 2 GB, here and in the folder of temporary files (TMPDIR), and run `make setup` again",
    ),
    Cause(
        r"Permission denied|Read-only file system",
        "a folder cannot be written",
        "Run it in a folder of your own; the log names the file",
    ),
    Cause(
        r"name resolution|Failed to establish a new connection|Connection(Error| refused| reset)|NewConnectionError"
        r"|Read timed out|ProxyError|SSLError|Network is unreachable|No matching distribution|HTTP error",
        "packages cannot be fetched",
        "Check the network, the proxy (HTTPS_PROXY) and pip's index (`pip config list`), and run `make setup` again: "
        "what has been fetched is kept",
    ),
    Cause(
        r"Failed building wheel|error: command .* failed|subprocess-exited-with-error",
        "a package has no ready-made files for this machine and could not be built",
        "Use a Python that the packages have files for (3.11 to 3.13 on Linux or macOS), with PYTHON=...",
    ),
)


class SetupFailed(Exception):
    """A step failed; the message says what to do."""


class Progress:
    """What pip has done so far, in a few words. While it installs it says nothing, so the environment is looked at."""

    def __init__(self, environment: Path) -> None:
        self.packages: dict[str, None] = {}
        self.doing = ""
        self.fetched_mb = 0.0
        self.to_install = 0
        self._environment = environment
        self._before = self._there()

    def read(self, line: str) -> str:
        """Take in a line of pip's; what of it is worth a line of ours, or ''."""
        if found := _PACKAGE.match(line):
            self.packages[found["name"].lower()] = None
            self.doing = found["name"]
        elif found := _DOWNLOAD.match(line):
            size_mb = float(found["size"]) * _UNITS_MB[found["unit"]]
            name = "-".join(found["file"].rpartition("/")[2].split("-")[:2])
            is_new = found["how"] == "Downloading"
            self.fetched_mb += size_mb if is_new else 0
            self.doing = f"{name} ({size_mb:.0f} MB)" if size_mb >= 1 else name
            if is_new and size_mb >= _LARGE_MB:
                return f"downloading {self.doing}"
        elif found := _INSTALLING.match(line):
            self.to_install = found["names"].count(",") + 1
            self._before = self._there()
            return f"installing {self.to_install} package{'' if self.to_install == 1 else 's'}"
        return ""

    def _there(self) -> int:
        return sum(1 for _ in self._environment.glob("lib/python*/site-packages/*.dist-info"))

    @property
    def summary(self) -> str:
        """How far it is; '' as long as nothing is known."""
        if not self.packages:
            return ""
        if self.to_install:
            return f"{min(self._there() - self._before, self.to_install)} of {self.to_install} packages installed"
        fetched = f", {self.fetched_mb:.0f} MB downloaded" if self.fetched_mb >= 1 else ""
        return f"{len(self.packages)} packages found{fetched}{f': {self.doing}' if self.doing else ''}"


class Screen:
    """Shows a step: on a terminal in one line that is redrawn, elsewhere in a line now and then."""

    def __init__(self, step: str) -> None:
        self._step, self._began_s = step, time.monotonic()
        self._shown_s = self._began_s
        self._redraws = sys.stdout.isatty()
        self.interval_s = _REDRAWN_S if self._redraws else _PRINTED_S
        self._show("", ends=True)

    def news(self, text: str) -> None:
        """Something that is worth a line."""
        self._show(text, ends=True)

    def still(self, text: str) -> None:
        """How it goes, if it is time to say so."""
        if time.monotonic() - self._shown_s >= self.interval_s:
            self._show(text, ends=not self._redraws)

    def _show(self, text: str, *, ends: bool) -> None:
        self._shown_s = time.monotonic()
        passed_s = self._shown_s - self._began_s
        shown = f"{text or self._step}{f' ({passed_s:.0f} s)' if passed_s >= 1 else ''}"
        indented = f"    {shown}" if text else shown
        sys.stdout.write((f"\r\x1b[K{indented[:_WIDTH]}" if self._redraws else indented) + ("\n" if ends else ""))
        sys.stdout.flush()


def _lines(pipe: Iterable[str], every_s: float) -> Iterator[str | None]:
    """The lines of a process as they come, and None when there has been none for a while."""
    waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        for line in pipe:
            waiting.put(line)
        waiting.put(None)

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    while True:
        try:
            line = waiting.get(timeout=every_s)
        except queue.Empty:
            yield None
            continue
        if line is None:
            return
        yield line


def perform(step: str, command: list[str], folder: Path) -> Progress:
    """Run a command, show how it goes, and append what it says to the folder's log. Raises `SetupFailed`."""
    screen, progress, log = Screen(step), Progress(folder), folder / LOG
    tail: list[str] = []
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", bufsize=1
    )
    with log.open("a", encoding="utf-8") as kept, process:
        assert process.stdout is not None
        for line in _lines(process.stdout, screen.interval_s):
            if line is not None:
                kept.write(line)
                tail = [*tail[-200:], line]
                if news := progress.read(line):
                    screen.news(news)
                    continue
            screen.still(progress.summary)
    code = process.returncode
    screen.news("done" if code == 0 else "failed")
    if code != 0:
        raise SetupFailed(complaint("".join(tail), log))
    return progress


def complaint(said: str, log: Path) -> str:
    """What was wrong and what to do, by what a command said last."""
    for cause in CAUSES:
        if re.search(cause.said, said):
            return f"{cause.wrong} (see {log}). {cause.remedy}."
    errors = [line.strip() for line in said.splitlines() if "error" in line.lower()] or said.strip().splitlines()[-1:]
    return f"{errors[-1] if errors else 'it said nothing'} ({log}). See the log for what went before."


def works(python: Path) -> bool:
    """Whether an environment is there and whole: one whose creation failed has a Python, but no pip."""
    if not python.exists():
        return False
    return subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0


def install(folder: Path, extra: str) -> None:
    """Create the environment unless it is there, and install the project with an extra into it."""
    began_s = time.monotonic()
    folder.mkdir(exist_ok=True)
    python = folder / "bin" / "python"
    (folder / LOG).write_text("", encoding="utf-8")
    if not works(python):
        perform(f"1/2 creating a virtual environment in {folder}", [sys.executable, "-m", "venv", str(folder)], folder)
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
    made = perform(
        f"2/2 installing packages ({extra})",
        [*pip, "--constraint", "constraints.txt", "--editable", f".[{extra}]"],
        folder,
    )
    took_s = time.monotonic() - began_s
    sys.stdout.write(f"done in {took_s:.0f} s: {len(made.packages)} packages in {folder}\n")


def main() -> int:
    """The exit code: 1 if something is missing, which standard error names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(".venv"))
    parser.add_argument("--extra", default="test", help="an extra of pyproject.toml")
    given = parser.parse_args()
    try:
        install(given.folder, given.extra)
    except SetupFailed as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"Error: {error.strerror} ({error.filename}). Run it in a folder of your own.\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted; `make setup` goes on with what has been fetched\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
