"""A user's terminals: commands run as processes, with their state in a separate folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

from comparison.cli.state import STATE_VARIABLE


class Terminals:
    """Commands of one user, whose state files are in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = {**os.environ, STATE_VARIABLE: str(folder / "state")}
        self._open: list[subprocess.Popen[str]] = []

    def run(self, *arguments: str, given: str | IO[str] | None = None) -> subprocess.CompletedProcess[str]:
        source: dict[str, Any] = {"input": given} if isinstance(given, str) else {"stdin": given or subprocess.DEVNULL}
        return subprocess.run(
            [sys.executable, "-m", "rebalance_lab", *arguments],
            **source,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            cwd=self._folder,
            env=self._environment,
        )

    def open(self, *arguments: str) -> tuple[subprocess.Popen[str], Path]:
        """Start a command that runs until it is stopped; its output goes to a file."""
        output = self._folder / f"out-{len(self._open)}.jsonl"
        with output.open("w") as file:
            child = subprocess.Popen(
                [sys.executable, "-m", "rebalance_lab", *arguments],
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=self._folder,
                env=self._environment,
            )
        self._open.append(child)
        return child, output

    def close(self) -> None:
        for child in self._open:
            child.kill()
            child.communicate()
        self.run("broker", "stop")
        self.run("zookeeper", "stop")
