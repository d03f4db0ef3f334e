"""`rebalance-lab watch` in every design, once and live, and on a terminal."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console

from comparison.cli.watch import _View
from comparison.exits import Exit
from comparison.group_readers.columns import GroupSeen, Keeper, Part, PartitionRow
from kernel.values import TopicPartition
from kernel.waiting import wait_until
from tests.support.commands.terminals import Terminals, beside_servers

RESET = {"zookeeper": "smallest", "server": "earliest", "eager": "earliest", "static": "earliest"}


@pytest.fixture(scope="module")
def terminals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminals]:
    quick = ("--set", "num.partitions=2", "--set", "group.initial.rebalance.delay.ms=0")
    with beside_servers(tmp_path_factory.mktemp("watched"), *quick) as terminals:
        assert terminals.run("produce", "--topic", "t", "--count", "4", "--rate", "1000").returncode == 0
        yield terminals


def once(terminals: Terminals, group: str) -> dict[str, Any]:
    """The one place where the group is; {} while it is nowhere, or its coordinator is not found."""
    seen = terminals.run("watch", "--group", group, "--once", "--format", "json")
    if seen.returncode == Exit.INTERNAL:
        return {}
    assert seen.returncode in (Exit.AS_EXPECTED, Exit.NOT_AS_EXPECTED), seen.stderr
    (line,) = seen.stdout.splitlines()
    groups = json.loads(line)["groups"]
    assert len(groups) <= 1, groups
    return groups[0] if groups else {}


@pytest.mark.parametrize("design", ["zookeeper", "server", "eager", "static"])
def test_group_is_shown_where_its_design_keeps_it(terminals: Terminals, design: str) -> None:
    group = f"g-{design}"
    named = ("--set", "group.instance.id=first") if design == "static" else ()
    consuming, output = terminals.open(
        *("consume", "--design", design, "--group", group, "--topic", "t", *named),
        *("--set", f"auto.offset.reset={RESET[design]}", "--set", "auto.commit.interval.ms=200"),
    )
    seen: dict[str, Any] = {}

    def is_whole() -> bool:
        nonlocal seen
        seen = once(terminals, group)
        rows = seen.get("partitions", [])
        return len(rows) == 2 and all(row["current"] == row["end"] == 2 and row["owner"] for row in rows)

    wait_until(is_whole, 60, lambda: f"owners, offsets and log ends of {group}: {seen}\n{output.read_text()}")
    assert seen["keeper"] == ("zookeeper" if design == "zookeeper" else "coordinator")
    (member,) = seen["members"]
    assert member["owned"] == [["t", 0], ["t", 1]]
    assert member["instance"] == ("first" if design == "static" else "")
    if design == "zookeeper":
        assert seen["state"] == "all owned"
        assert {row["owner"] for row in seen["partitions"]} == {f"{member['member']}-0"}
    else:
        assert (seen["state"], seen["strategy"]) == ("Stable", "range")
        assert seen["coordinator"].startswith("127.0.0.1:")
        assert {row["owner"] for row in seen["partitions"]} == {member["member"]}
    consuming.send_signal(signal.SIGINT)
    assert consuming.wait(60) == 0
    left = wait_until(lambda: once(terminals, group), 60, "the group's coordinator")
    assert [row["current"] for row in left["partitions"]] == [2, 2]  # what it has committed stays
    if design == "static":  # as its member does, without a process
        assert left["members"] == seen["members"]
    else:
        assert not left["members"]
        assert not any(row["owner"] for row in left["partitions"])


def test_tables_are_printed_again_when_something_has_changed(terminals: Terminals) -> None:
    watching, output = terminals.open("watch", "--group", "live", "--offsets", "--interval", "0.1")
    wait_until(lambda: "no such group" in output.read_text(), 120, lambda: f"nothing to be seen: {output.read_text()}")
    read = terminals.run(
        *("consume", "--design", "eager", "--group", "live", "--topic", "t", "--max-records", "4"),
        *("--set", "auto.offset.reset=earliest"),
    )
    assert read.returncode == 0, read.stderr

    def last() -> list[list[str]]:
        return [line.split() for line in output.read_text().rsplit("\n\n", 1)[-1].splitlines()[1:]]

    wanted = [["live", "t", number, "2", "2", "0", "-", "-", "-"] for number in ("0", "1")]
    wait_until(lambda: last() == wanted, 120, lambda: f"the offsets of a group without members: {output.read_text()}")
    watching.send_signal(signal.SIGINT)
    assert watching.wait(120) == 0
    blocks = output.read_text().split("\n\n")
    assert len(blocks) == len(dict.fromkeys(blocks))  # never the same twice


def test_unknown_group_and_absent_servers_are_errors(terminals: Terminals, unused_port: int) -> None:
    unknown = terminals.run("watch", "--group", "nobody", "--once")
    assert unknown.stderr.startswith("Error: ")
    assert "'nobody'" in unknown.stderr
    elsewhere = terminals.run("watch", "--group", "nobody", "--once", "--group-state", "--state", "elsewhere")
    assert elsewhere.returncode == Exit.USAGE
    assert "no ZooKeeper. Start one" in elsewhere.stderr
    assert (unknown.returncode, unknown.stdout) == (Exit.NOT_AS_EXPECTED, "no such group\n")
    silent = terminals.run("watch", "--group", "g", "--once", "--bootstrap-server", f"127.0.0.1:{unused_port}")
    assert silent.returncode == Exit.INTERNAL
    assert f"127.0.0.1:{unused_port}" in silent.stderr
    nonsense = terminals.run("watch", "--group", "g", "--once", "--bootstrap-server", "here")
    assert nonsense.returncode == Exit.USAGE


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_is_unavailable_is_not_told_as_absent(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = io.StringIO()
    _View(form, [Part.OFFSETS], Console(file=shown, width=120)).show([], problem="no broker answers")
    told = shown.getvalue() + capsys.readouterr().out
    assert "no broker answers" in told
    assert "no such group" not in told


def test_terminal_shows_the_last_tables_with_what_changed_in_bold() -> None:
    shown = io.StringIO()
    view = _View("text", [Part.OFFSETS], Console(file=shown, force_terminal=True, width=120, height=20))
    for current in (1, 2):
        rows = tuple(
            PartitionRow(partition=TopicPartition("t", number), current=current if number else 9, end=9, owner="a-0")
            for number in range(2)
        )
        view.show([GroupSeen(group="g", keeper=Keeper.ZOOKEEPER, partitions=rows)])
    view.end()
    last = shown.getvalue().rpartition("Owner")[2]
    unchanged, changed = (
        next(line for line in last.splitlines() if f" {number}   {at}" in line) for number, at in ((0, 9), (1, 2))
    )
    assert "\x1b[1;32m" in changed
    assert "\x1b[1;32m" not in unchanged
