"""Consumers and a broker that trace into one folder by hand: it is analysed, drawn and shown like any run."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from comparison.exits import Exit
from kernel.waiting import wait_until
from tests.support.commands.terminals import Terminals, beside_servers
from tests.support.runs.seen_runs import analysed_inline


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    quick = ("--set", "num.partitions=4", "--set", "group.initial.rebalance.delay.ms=0")
    with beside_servers(tmp_path, "--trace", "mine", *quick) as terminals:
        yield terminals


def delivered(output: Path) -> int:
    """How many records a consumer has shown so far."""
    whole, _, _ = output.read_text().rpartition("\n")
    events = [json.loads(line) for line in whole.splitlines() if line.startswith("{")]
    return sum(event["count"] for event in events if event["event"] == "records")


def test_what_was_played_by_hand_is_analysed_drawn_and_shown(terminals: Terminals, tmp_path: Path) -> None:
    assert terminals.run("produce", "--topic", "t", "--count", "8", "--rate", "1000").returncode == 0
    arguments: tuple[str, ...] = ("consume", "--design", "eager", "--group", "g", "--topic", "t", "--format", "json")
    arguments += ("--trace", "mine", "--set", "heartbeat.interval.ms=300", "--set", "auto.offset.reset=earliest")
    members, outputs = [], []
    for number in (1, 2):
        child, output = terminals.open(*arguments)
        wait_until(
            lambda output=output, number=number: f'"generation":{number},' in output.read_text(),
            60,
            lambda output=output: f"a generation: {output.read_text()}",
        )
        members.append(child)
        outputs.append(output)
    refused = terminals.run(*arguments[:2], "static", *arguments[3:], "--set", "group.instance.id=a")
    assert refused.returncode == Exit.USAGE
    assert "is a run of the design eager, not static" in refused.stderr
    wait_until(
        lambda: sum(map(delivered, outputs)) == 8,
        60,
        lambda: f"8 records: {[output.read_text() for output in outputs]}",
    )
    for child in members:
        child.send_signal(signal.SIGINT)
    assert [child.wait(60) for child in members] == [0, 0]
    assert terminals.run("broker", "stop").returncode == 0

    folder = tmp_path / "mine"
    (run,) = analysed_inline(folder).runs
    assert (run.scenario, run.design, run.problems, run.missing_events) == ("by-hand", "eager", [], 0)
    assert run.metrics["delivered"] == 8
    assert run.metrics["two_delivering_partition_s"] == 0
    assert run.metrics["unowned_authority_partition_s"] is not None  # from the broker's trace
    listed = terminals.run("diagram", "mine", "--list")
    assert listed.returncode == 0, listed.stderr
    assert "m1: " in listed.stdout
    assert terminals.run("diagram", "mine", "-o", "mine.svg").returncode == 0
    reported = terminals.run("report", "mine")
    assert reported.returncode == 0, reported.stderr
    assert "by-hand" in (folder / "report.html").read_text()
    assert json.loads((folder / "run.json").read_text())["traces"][0]["process"] == "broker-1"


def test_watch_adds_what_zookeeper_says(terminals: Terminals, tmp_path: Path) -> None:
    assert terminals.run("produce", "--topic", "t", "--count", "8", "--rate", "1000").returncode == 0
    watching, seen = terminals.open("watch", "--group", "z", "--trace", "old", "--interval", "0.1")
    consuming, output = terminals.open(
        *("consume", "--design", "zookeeper", "--group", "z", "--topic", "t", "--trace", "old"),
        *("--set", "auto.offset.reset=smallest", "--set", "auto.commit.interval.ms=200"),
    )

    def is_committed() -> bool:
        owned = [line.split() for line in seen.read_text().rsplit("\n\n", 1)[-1].splitlines()]
        return [row[3:6] for row in owned if row and row[0] == "z"] == [["2", "2", "0"]] * 4

    def is_followed() -> bool:
        """The observer watches in the background: its trace may have the owners later than the screen."""
        return (tmp_path / "old" / "trace" / "observer-1.jsonl").read_text().count('"authority_named"') >= 4

    wait_until(
        lambda: is_committed() and is_followed(), 60, lambda: f"all offsets: {seen.read_text()}{output.read_text()}"
    )
    for child in (consuming, watching):
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 0
    assert "warning" not in seen.read_text()

    (run,) = analysed_inline(tmp_path / "old").runs
    assert (run.design, run.problems) == ("zookeeper", [])
    assert run.metrics["unowned_authority_partition_s"] is not None
    assert run.metrics["commits"] >= 4
    assert run.metrics["stale_writes"] == 0
    described = terminals.run("describe", "old", "--offsets")
    rows = [line.split() for line in described.stdout.splitlines() if line.startswith("z ")]
    assert [row[3] for row in rows] == ["2"] * 4
    assert all(row[6].startswith("z_") for row in rows)
    assert "note" not in described.stdout
    refused = terminals.run("watch", "--group", "z", "--once", "--trace", "old")
    assert refused.returncode == Exit.USAGE
