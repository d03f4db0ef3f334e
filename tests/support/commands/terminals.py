"""A user's terminals: commands run as processes, with their state in a separate folder."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from comparison.cli.state import STATE_VARIABLE
from tests.support.commands.forked import ForkedCommand, Streams

LIMIT_S = 300

Command = ForkedCommand | subprocess.Popen[str]


def started_by_a_shell(
    arguments: tuple[str, ...],
    folder: Path,
    environment: Mapping[str, str],
    streams: Streams,
    *,
    is_typed_into: bool = False,
) -> subprocess.Popen[str]:
    """A command that loads all it needs, as those of users do."""
    assert isinstance(streams.output, Path)
    with streams.given.open() as given, streams.output.open("a") as output, streams.errors.open("a") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "rebalance_lab", *arguments],
            stdin=subprocess.PIPE if is_typed_into else given,
            stdout=output,
            stderr=errors,
            text=True,
            cwd=folder,
            env=dict(environment),
        )


class Terminals:
    """Commands of one user, whose state files are in one folder; `start` says how a process comes to be."""

    def __init__(
        self,
        folder: Path,
        start: Callable[[tuple[str, ...], Path, Mapping[str, str], Streams], Command] = ForkedCommand,
    ) -> None:
        self._folder = folder
        self._start = start
        self._environment = {**os.environ, STATE_VARIABLE: str(folder / "state")}
        self._open: list[Command] = []
        self._files = folder.parent / f"{folder.name}-terminals"
        self._files.mkdir()
        self._numbers = itertools.count()

    def run(self, *arguments: str, given: str | Path = Streams.given) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; `given` is the text, or the file, that is its standard input."""
        if isinstance(given, str):
            text, given = given, self._file("in")
            given.write_text(text)
        output, errors = self._file("out"), self._file("err")
        child = self._start(arguments, self._folder, self._environment, Streams(output, errors, given))
        try:
            code = child.wait(LIMIT_S)
        finally:
            child.kill()
        return subprocess.CompletedProcess(arguments, code, output.read_text(), errors.read_text())

    def open(self, *arguments: str) -> tuple[Command, Path]:
        """Start a command that runs until it is stopped; its output goes to a file."""
        output = self._file("out")
        child = self._start(arguments, self._folder, self._environment, Streams(output, output))
        self._open.append(child)
        return child, output

    def type_into(self, *arguments: str) -> tuple[subprocess.Popen[str], Path]:
        """The same, but the process is one that a shell starts, and its standard input a pipe."""
        output = self._file("out")
        streams = Streams(output, output)
        child = started_by_a_shell(arguments, self._folder, self._environment, streams, is_typed_into=True)
        self._open.append(child)
        return child, output

    def close(self) -> None:
        for child in self._open:
            child.kill()
            child.wait(LIMIT_S)
            if isinstance(child, subprocess.Popen) and child.stdin is not None:
                child.stdin.close()
        self.run("broker", "stop")
        self.run("zookeeper", "stop")

    def _file(self, kind: str) -> Path:
        return self._files / f"{next(self._numbers)}.{kind}"


@contextmanager
def beside_servers(folder: Path, *of_broker: str) -> Iterator[Terminals]:
    """Terminals of a user who has started ZooKeeper, and a broker with these arguments."""
    with closing(Terminals(folder)) as terminals:
        for command in (("zookeeper", "start"), ("broker", *of_broker)):
            started = terminals.run(*command, "--detach", "--port", "0")
            assert started.returncode == 0, started.stderr
        yield terminals
