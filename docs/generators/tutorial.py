"""Play docs/tutorial.md with real processes, and rewrite the outputs that it shows: `make tutorial`.

`make tutorial ARGS=--check` compares instead, as the test does. Servers listen on free ports, and have their data in a
temporary folder; the page shows the ports that a user has, and the folders of a user called `you`.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from comparison.cli.state import STATE_VARIABLE
from docs.generators.tutorial_page import SHELL, Block, Step, blocks_of, normalised, rewritten, trimmed
from kernel.platform.ports import free_ports
from kernel.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PAGE = Path(__file__).parents[1] / "tutorial.md"
#: The ports that the page names.
PORTS = (2181, 9092, 9093, 9094)
#: What listens on a port of its own if none is given.
DEFAULT_PORTS = {("zookeeper", "start"): 2181, ("broker",): 9092}
HOME = "/home/you"
#: Longer than everything that is waited for takes on a busy machine.
PATIENCE_S = 180.0
#: What a command says while a group's coordinator or a partition's leader has not taken over yet.
_TOO_EARLY = r"^note: |offsets unknown"
_PID = re.compile(r"\bpid[ =](\d+)")


class NotAsOnThePage(Exception):
    """What a block shows differs from the page in something that is the same in every run."""


@dataclass(slots=True)
class _Running:
    """The command of a terminal."""

    process: subprocess.Popen[bytes]
    output: Path
    shown: int = 0  #: bytes

    def text(self) -> str:
        """Whole lines since the last ones that were shown."""
        written = self.output.read_bytes()[self.shown :]
        return written[: written.rfind(b"\n") + 1].decode()


class Player:
    """A user with several terminals. Blocks are played in order; `close` ends all that was started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "tutorial"
        self._folder.mkdir()
        self._state = folder / "state"
        self._ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        self._terminals: dict[str, _Running] = {}
        self._pids: dict[str, int] = {}  #: of the page -> real
        self._started = 0
        self._environment = {**os.environ, STATE_VARIABLE: str(self._state), "COLUMNS": "80", "NO_COLOR": "1"}

    def play(self, block: Block) -> list[Step]:
        """The block's steps with what they really showed, in the page's ports and folders, and with real pids."""
        if block.terminal == SHELL:
            played = [Step(step.typed, self._run(step.command, block.options)) for step in block.steps]
        else:
            played = [Step(step.typed, self._type(block, step)) for step in block.steps]
        for step, now in zip(block.steps, played, strict=True):
            there, here = (_PID.findall("\n".join(each.shown)) for each in (step, now))
            if len(there) == len(here):
                self._pids |= dict(zip(there, map(int, here), strict=True))
        return played

    def with_real_pids(self, lines: Iterable[str]) -> list[str]:
        """Typed lines with the pids of this run."""
        return [re.sub(r"(kill -9 )(\d+)", lambda m: f"{m[1]}{self._pids[m[2]]}", line) for line in lines]

    def close(self) -> None:
        """Servers last, since leaving a group takes them."""
        for how, patience_s in ((signal.SIGINT, 30.0), (signal.SIGKILL, 30.0)):
            for running in reversed(self._terminals.values()):
                if running.process.poll() is None:
                    running.process.send_signal(how)
                    try:
                        running.process.wait(patience_s)
                    except subprocess.TimeoutExpired:
                        continue

    # -- commands that run to their end ------------------------------------------------------------------------------

    def _run(self, command: str, options: dict[str, str]) -> list[str]:
        if command.startswith("kill -9 "):
            return self._kill(command.split()[-1])
        shown: list[str] = []

        def done() -> bool:
            nonlocal shown
            ended = subprocess.run(
                self._real(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=PATIENCE_S,
                check=False,
                cwd=self._folder,
                env=self._environment,
            )
            shown = self._of_the_page(ended.stdout).splitlines()
            if _has(shown, _TOO_EARLY):
                return False
            if "until" in options:
                return _has(shown, options["until"])
            if ended.returncode != int(options.get("exit", 0)):
                raise NotAsOnThePage(f"{command} ended with {ended.returncode}: {ended.stdout}")
            return True

        wait_until(done, PATIENCE_S, lambda: f"{command}: {options.get('until')} in {shown}")
        return shown

    def _kill(self, pid: str) -> list[str]:
        """Only a command of one of the terminals."""
        real = self._pids.get(pid)
        for running in self._terminals.values():
            if running.process.pid == real and running.process.poll() is None:
                running.process.kill()
                running.process.wait(PATIENCE_S)
                return []
        raise NotAsOnThePage(f"kill -9 {pid}: no terminal runs it")

    # -- terminals ---------------------------------------------------------------------------------------------------

    def _type(self, block: Block, step: Step) -> list[str]:
        if step.command:
            self._start(block.terminal, step.command)
        running = self._terminals[block.terminal]
        if step.is_interrupt:
            running.process.send_signal(signal.SIGINT)
            running.process.wait(PATIENCE_S)
        elif "exit" in block.options:  # it ends by itself
            running.process.wait(PATIENCE_S)
        until = block.options.get("until", "")

        def reached() -> bool:
            if _has(self._said(running), until):
                return True
            if running.process.poll() is None:
                return False
            raise NotAsOnThePage(f"{block.terminal} has ended with {running.process.returncode}: {self._said(running)}")

        wait_until(reached, PATIENCE_S, lambda: f"{until} in {block.terminal}: {self._said(running)}")
        text = running.text()
        running.shown += len(text.encode())
        return self._of_the_page(text).splitlines()

    def _start(self, terminal: str, command: str) -> None:
        before = self._terminals.pop(terminal, None)
        if before is not None and before.process.poll() is None:
            self._terminals[terminal] = before
            raise NotAsOnThePage(f"{terminal} is busy, and cannot run {command}")
        self._started += 1
        output = self._folder.parent / f"{self._started}-{terminal}.out"
        with output.open("wb") as file:
            process = subprocess.Popen(
                self._real(command),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env=self._environment,
            )
        self._terminals[terminal] = _Running(process, output)

    def _said(self, running: _Running) -> list[str]:
        """Whole lines since the last ones that were shown."""
        return self._of_the_page(running.text()).splitlines()

    # -- between the page and this machine ---------------------------------------------------------------------------

    def _real(self, command: str) -> list[str]:
        name, *arguments = shlex.split(command)
        if name != "rebalance-lab":
            return [name, *arguments]
        for start, port in DEFAULT_PORTS.items():
            rest = tuple(arguments[len(start) :])
            is_server = tuple(arguments[: len(start)]) == start and (not rest or rest[0].startswith("-"))
            if is_server and "--port" not in arguments:
                arguments += ["--port", str(port)]
        arguments = [re.sub(r"^(?:127\.0\.0\.1:)?(\d{4})\b", self._free_port, each) for each in arguments]
        return [sys.executable, "-m", "comparison.cli.main", *arguments]

    def _free_port(self, match: re.Match[str]) -> str:
        return match[0].replace(match[1], str(self._ports.get(int(match[1]), match[1])))

    def _of_the_page(self, text: str) -> str:
        for there, here in self._ports.items():
            # In a table the next column stays where it was.
            shorter = " " * (len(str(here)) - len(str(there)))
            text = re.sub(rf"(?<=:){here}( \(\d+\))?(?= {{2,}})", rf"{there}\1{shorter}", text)
            text = re.sub(rf"(?<=[:=\"-]){here}\b", str(there), text)
        text = text.replace(str(self._state), f"{HOME}/.local/state/rebalance-lab")
        return re.sub(r" +$", "", text.replace(str(self._folder), f"{HOME}/tutorial"), flags=re.MULTILINE)


def _has(lines: list[str], pattern: str) -> bool:
    return any(re.search(pattern, line) for line in normalised(lines, {})) if pattern else True


def differences(block: Block, played: list[Step]) -> str:
    """How what was shown differs from the page; '' if it does not."""
    found = []
    for step, now in zip(block.steps, played, strict=True):
        there = normalised(step.shown, block.options)
        here = normalised(trimmed(now.shown, block.options), block.options)
        if there != here:
            compared = difflib.unified_diff(there, here, "the page", "this run", lineterm="")
            found += [f"line {block.first}: {step.command or step.typed or block.terminal}", *compared, *now.shown]
    return "\n".join(found)


def play(page: str, folder: Path, chapters: int | None = None, *, compare: bool) -> Iterator[Block]:
    """Play the page, or its first chapters; each block as it is in this run, with real pids.

    Raises `NotAsOnThePage` if a block cannot be played, or if `compare` and what it shows differs.
    """
    blocks = blocks_of(page)
    names = list(dict.fromkeys(block.chapter for block in blocks))[:chapters]
    player = Player(folder)
    try:
        for block in blocks:
            if block.chapter not in names:
                break
            played = player.play(block)
            if compare and (problem := differences(block, played)):
                raise NotAsOnThePage(problem)
            steps = [Step(player.with_real_pids(step.typed), trimmed(step.shown, block.options)) for step in played]
            yield replace(block, steps=steps)
    finally:
        player.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--chapters", type=int, help="only the first chapters")
    chosen = parser.parse_args()
    played: list[Block] = []
    page = PAGE.read_text()
    try:
        with tempfile.TemporaryDirectory() as folder:
            for block in play(page, Path(folder), chosen.chapters, compare=chosen.check):
                played.append(block)  # noqa: PERF402  # what was played before an error is written
    finally:
        if not chosen.check:
            PAGE.write_text(rewritten(page, played))


if __name__ == "__main__":
    main()
