"""Write the outputs of the commands in `assignment.md`.

A block that begins with `$ rebalance-lab assign` is followed by what that prints in 80 columns; a block of TOML is the
file `group.toml` of the commands after it. Where only figures matter, a table has those of several commands. A test
compares.
"""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from comparison.cli.assign import assign
from docs.generators.pages import filled, markdown_table

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = Path(__file__).parents[1] / "assignment.md"
_BLOCK = re.compile(r"^```(toml)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = "$ rebalance-lab assign "
_STATIC = "--members C0@I0,C1@I1,C2@I2 --topics t0=3,t1=3"
#: What breaks a condition of roundrobin's, and what it is called.
_CONDITIONS = {
    "leave C0": "a member leaves",
    "subscribe C0=t0": "a member changes its subscription",
    "add-partitions t0=1": "a topic grows",
    "restart C0=C5,C1=C3,C2=C4": "nothing: all return in time",
}
_SURPLUS = "assign -s sticky --members C0,C1,C2 --topics t0=2,t1=2,t2=2,t3=2 --then leave C1 --then join C9:t0+t1"
_WHICH = (
    "assign -s range,roundrobin,sticky,cooperative-sticky --members m0,m1,m2,m3 --topics t0=6,t1=6,t2=6 "
    "--then join m4 --then leave m0"
)
_FIGURES = ("balance", "moved", "unnecessary", "stopped")


def files() -> dict[Path, str]:
    text = filled(PAGE, {"conditions": _conditions(), "surplus": _surplus(), "which": _of(_WHICH)})
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        return {PAGE: _BLOCK.sub(_filled, text)}


def commands(text: str) -> list[str]:
    """All commands of the page whose output it shows."""
    return [_command(block[2]) for block in _BLOCK.finditer(text) if block[2].startswith(_COMMAND)]


def _conditions() -> str:
    """One change of static members in each row, by two strategies."""
    command = f"assign -s roundrobin -s sticky {_STATIC}"
    rows = []
    for change, says in _CONDITIONS.items():
        of_strategies = _moments(f"{command} --then {change}")
        moved = [str(moments[-1]["moved"]) for moments in of_strategies.values()]
        rows.append((says, f"`--then {change}`", str(of_strategies["roundrobin"][-1]["minimum"]), *moved))
    headings = ("what is broken", "", "had to move", "moved by roundrobin", "by sticky")
    first = next(iter(_CONDITIONS))
    return f"{markdown_table(headings, rows)}\n\nThe first row:\n\n    rebalance-lab {command} --then {first}\n"


def _surplus() -> str:
    ((*_, last),) = _moments(_SURPLUS).values()
    return f"    rebalance-lab {_SURPLUS}\n\nIn the end {last['moved']} move where {last['minimum']} had to.\n"


def _of(command: str) -> str:
    """A row for each strategy, with the figures of each step."""
    of_strategies = _moments(command)
    rows = [
        (strategy, *(str(moment[figure]) for moment in moments[1:] for figure in _FIGURES))
        for strategy, moments in of_strategies.items()
    ]
    steps = [str(moment["step"]) for moment in next(iter(of_strategies.values()))[1:]]
    headings = (
        "strategy",
        *(f"{step}: {each}" if not n else each for step in steps for n, each in enumerate(_FIGURES)),
    )
    return f"{markdown_table(headings, rows)}\n\n    rebalance-lab {command}\n"


def _moments(command: str) -> dict[str, Sequence[dict[str, Any]]]:
    """{strategy: its moments, the start first} by the command's own document."""
    found = json.loads(_printed([*shlex.split(command)[1:], "--format", "json"]))
    return {strategy: told["moments"] for strategy, told in found["strategies"].items()}


def _command(block: str) -> str:
    """The first line, and those that it continues on."""
    found = re.match(r"(?:.*\\\n)*.*\n", block)
    assert found is not None
    return found[0]


def _filled(block: re.Match[str]) -> str:
    kind, content = block.groups()
    if kind:
        Path("group.toml").write_text(content, encoding="utf-8")
    if kind or not content.startswith(_COMMAND):
        return block[0]
    command = _command(content)
    arguments = shlex.split(command.removeprefix(_COMMAND).replace("\\\n", " "))
    return f"```\n{command}{_printed(arguments)}```"


def _printed(arguments: Sequence[str]) -> str:
    done = CliRunner().invoke(assign, arguments, standalone_mode=False, env={"COLUMNS": "80"})
    if done.exception is not None:
        raise done.exception
    return done.stdout
