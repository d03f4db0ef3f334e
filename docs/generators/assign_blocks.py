"""Write the outputs of the commands in `assignment.md`.

A block that begins with `$ rebalance-lab assign` is followed by what that prints in 80 columns; a block of TOML is the
file `group.toml` of the commands after it. A test compares.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from contextlib import chdir
from pathlib import Path

from click.testing import CliRunner

from comparison.cli.assign import assign

PAGE = Path(__file__).parents[1] / "assignment.md"
_BLOCK = re.compile(r"^```(toml)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = "$ rebalance-lab assign "


def page(text: str) -> str:
    """The page with true outputs."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        return _BLOCK.sub(_filled, text)


def commands(text: str) -> list[str]:
    """All commands of the page."""
    return [_command(block[2]) for block in _BLOCK.finditer(text) if block[2].startswith(_COMMAND)]


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
    done = CliRunner().invoke(assign, arguments, standalone_mode=False, env={"COLUMNS": "80"})
    if done.exception is not None:
        raise done.exception
    return f"```\n{command}{done.stdout}```"


def files() -> dict[Path, str]:
    """The generated pages with their content."""
    return {PAGE: page(PAGE.read_text(encoding="utf-8"))}
