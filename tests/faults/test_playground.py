"""`rebalance-lab playground` as its user sees it: an address, a page, a report; and nothing left, however it ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from comparison.exits import Exit
from kernel.waiting import wait_until
from tests.support.commands.ended import all_ended

pytestmark = pytest.mark.faults


class Command:
    """The command, running in a folder, and its page."""

    def __init__(self, folder: Path) -> None:
        self._errors = folder / "errors"
        self._runs = folder / "runs"
        options = ["--design", "eager", "--members", "2", "--partitions", "2", "-o", str(self._runs)]
        with self._errors.open("w") as errors, (folder / "output").open("w") as output:
            self.child = subprocess.Popen(
                [sys.executable, "-m", "comparison.cli.main", "playground", *options], stdout=output, stderr=errors
            )
        wait_until(lambda: "\n" in (folder / "output").read_text(), 60, self.said)
        self.address = (folder / "output").read_text().splitlines()[0]

    def said(self) -> str:
        return " ".join(self._errors.read_text().split())

    def asked(self, path: str, sent: object = None) -> str:
        data = None if sent is None else json.dumps(sent).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.read().decode())

    def until_it_runs(self) -> None:
        traces = lambda: self._runs.glob("*-playground/playground/eager/trace/runner.jsonl")  # noqa: E731
        wait_until(lambda: any('"steady"' in path.read_text() for path in traces()), 120, self.said)

    def stop_on_the_page(self) -> None:
        def accepted() -> bool:
            return bool(json.loads(self.asked("command", {"type": "stop"}))["accepted"])

        wait_until(accepted, 30, "the game to take commands")

    def descendants(self) -> list[psutil.Process]:
        found = psutil.Process(self.child.pid).children(recursive=True)
        assert len(found) > 4, "members, brokers and ZooKeeper run"
        return found


def is_spark(process: psutil.Process) -> bool:
    try:
        return "org.apache.spark.deploy.SparkSubmit" in process.cmdline()
    except psutil.Error:
        return False  # it has ended


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    made = Command(tmp_path)
    yield made
    made.child.kill()
    made.child.wait()


def test_what_was_played_gets_an_analysis_and_a_report_that_the_page_serves(command: Command, tmp_path: Path) -> None:
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]+/", command.address)
    assert "<title>" in command.asked("")
    command.until_it_runs()
    children = command.descendants()
    command.stop_on_the_page()
    wait_until(lambda: "Ctrl-C closes it" in command.said(), 240, command.said)
    assert all_ended(children)
    assert "playground" in command.asked("report.html")
    command.child.send_signal(signal.SIGINT)
    assert command.child.wait(30) == Exit.AS_EXPECTED, command.said()
    result: dict[str, Any] = json.loads((tmp_path / "runs/latest/result.json").read_text())
    assert [(run["scenario"], run["design"], run["outcome"]) for run in result["runs"]] == [
        ("playground", "eager", "complete")
    ]
    assert result["verdict"] == "as expected"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_ends_while_it_is_played_leaves_no_process(command: Command, number: signal.Signals) -> None:
    command.until_it_runs()
    children = command.descendants()
    command.child.send_signal(number)
    expected = -signal.SIGKILL if number == signal.SIGKILL else Exit.INTERRUPTED
    assert command.child.wait(60) == expected, command.said()
    wait_until(lambda: all_ended(children), 30, "the children to end with their parent")
    if number != signal.SIGKILL:
        assert "to analyse the traces: rebalance-lab analyze" in command.said()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_ends_during_the_analysis_leaves_no_process(command: Command, number: signal.Signals) -> None:
    command.until_it_runs()
    command.stop_on_the_page()

    def analysing() -> list[psutil.Process]:
        found = psutil.Process(command.child.pid).children(recursive=True)
        return found if any(map(is_spark, found)) else []

    children = wait_until(analysing, 120, command.said)
    command.child.send_signal(number)
    expected = -signal.SIGKILL if number == signal.SIGKILL else Exit.INTERRUPTED
    assert command.child.wait(60) == expected, command.said()
    wait_until(lambda: all_ended(children), 60, "the analysis to end with its parent")
