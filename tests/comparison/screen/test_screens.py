"""What commands print as tables has every figure in full, whatever the width of the screen."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from comparison.cli.main import cli
from comparison.cli.watch import _View
from comparison.group_readers.columns import GroupSeen, Keeper, MemberRow, Part, PartitionRow
from comparison.report.sweep.terminal import render_sweep
from comparison.report.terminal import render
from kernel.values import TopicPartition
from tests.support.commands.called import output_of
from tests.support.runs.results import every_design
from tests.support.runs.sweeps import data_of, plan_of, result_of

WIDTHS = (40, 47, 60, 72, 80, 120, 200)
#: No table needs more.
ENDLESS = 2_000
CRASH = Path(__file__).parents[1] / "report" / "crash"
_FIGURE = re.compile(r"[0-9][0-9,.]*")


def commanded(*arguments: str) -> Callable[[int], str]:
    def shown(width: int) -> str:
        return output_of(cli, *arguments, columns=width)

    return shown


def result(width: int) -> str:
    text = render(every_design(), Console(width=width))
    return re.sub(r"[0-9]+(?=\sms\sper\sletter)", "", text)  # a chart has as many letters as fit


def sweep(width: int) -> str:
    plan = plan_of("scenario=crash", "members=4,8,16,32,64,128", "partitions=12,24,48,96,192", "design=eager,consumer")
    data = data_of(plan, lambda run: result_of({"converge_ms": 1_234_567.0 + len(run.folder)}))
    console = Console(file=io.StringIO(), width=width)
    render_sweep(data, console)
    return printed(console)


def watched(keeper: Keeper) -> Callable[[int], str]:
    partitions = tuple(
        PartitionRow(partition=TopicPartition("orders", number), current=123_456, end=234_567_890, owner=f"m-{number}")
        for number in range(4)
    )
    member = MemberRow(member="consume-92d85f0d-569c-4d9e-8cc7", host="/127.0.0.1", client="consume")
    group = GroupSeen(group="g", keeper=keeper, partitions=partitions, members=(member,), coordinator="h:9092 (1)")

    def shown(width: int) -> str:
        console = Console(file=io.StringIO(), width=width, height=200, force_terminal=True, color_system=None)
        view = _View("text", list(Part), console)
        view.show([group])
        view.end()
        time_of_day = re.compile(r"\d\d:\d\d:\d\d")
        return time_of_day.sub("", printed(console))

    return shown


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console.file.getvalue())


SCREENS: dict[str, Callable[[int], str]] = {
    "a result": result,
    "a sweep": sweep,
    "a group in ZooKeeper": watched(Keeper.ZOOKEEPER),
    "a group with a coordinator": watched(Keeper.COORDINATOR),
    "scenarios": commanded("scenarios"),
    "rebalances": commanded("diagram", str(CRASH), "--list"),
    "assign": commanded(
        *("assign", "-s", "all", "--members", "C0,C1,C2@with-an-instance-id", "--topics", "t0=12,t1=7,orders=31"),
        *("--then", "join", "C4", "--then", "leave", "C1"),
    ),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SCREENS)
def test_every_figure_is_printed_in_full(name: str, width: int) -> None:
    text = SCREENS[name](width)
    expected = Counter(_FIGURE.findall(SCREENS[name](ENDLESS)))
    assert expected
    assert expected <= Counter(_FIGURE.findall(text)), "labels are repeated, figures are not cut"
    assert max(map(len, text.splitlines())) <= width
