"""Commands called in this process, without a shell."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from comparison.cli.main import main
from comparison.logs import LEVEL_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def _own_log_level() -> Iterator[None]:
    """A command hands its level on to its children by the environment, which is that of all later tests here."""
    before = os.environ.get(LEVEL_VARIABLE)
    try:
        yield
    finally:
        os.environ.pop(LEVEL_VARIABLE, None)
        if before is not None:
            os.environ[LEVEL_VARIABLE] = before


def code_of(*arguments: object) -> int:
    """The exit code of `rebalance-lab` with these arguments; what it prints is captured by `capsys`."""
    with _own_log_level(), pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def output_of(command: click.Command, *arguments: object, code: int = 0, columns: int = 80) -> str:
    """What one command prints on a terminal of that width before it ends with that code; raises what it raises."""
    with _own_log_level():
        done = CliRunner(env={"COLUMNS": str(columns)}).invoke(
            command, [str(argument) for argument in arguments], standalone_mode=False
        )
    if done.exception is not None:
        raise done.exception
    assert (done.return_value or 0) == code, done.output
    return done.output
