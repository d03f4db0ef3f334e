"""Commands called in this process, without a shell."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from comparison.cli.main import main


def code_of(*arguments: object) -> int:
    """The exit code of `rebalance-lab` with these arguments; what it prints is captured by `capsys`."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def output_of(command: click.Command, *arguments: object, code: int = 0, columns: int = 80) -> str:
    """What one command prints on a terminal of that width before it ends with that code; raises what it raises."""
    done = CliRunner(env={"COLUMNS": str(columns)}).invoke(
        command, [str(argument) for argument in arguments], standalone_mode=False
    )
    if done.exception is not None:
        raise done.exception
    assert (done.return_value or 0) == code, done.output
    return done.output
