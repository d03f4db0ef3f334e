"""`-v` and `--log-level`, on every command."""

from __future__ import annotations

import click

from comparison.cli.complaints import OneOf
from comparison.logs import LEVEL_VARIABLE, LEVELS, set_level

_LEVEL, _VERBOSE = "log_level", "rebalance_lab.verbose"


def with_log_options(command: click.Command) -> click.Command:
    """Give a command and its subcommands the options, once."""
    if all(parameter.name != _LEVEL for parameter in command.params):
        command.params += [_verbose_option(), _level_option()]
    if isinstance(command, click.Group):
        for subcommand in command.commands.values():
            with_log_options(subcommand)
    return command


def is_verbose() -> bool:
    """Whether -v was given to the command that is running."""
    return bool(click.get_current_context().meta.get(_VERBOSE))


def _verbose_option() -> click.Option:
    def callback(context: click.Context, _parameter: click.Parameter, count: int) -> None:
        if count:
            context.meta[_VERBOSE] = True
            set_level("INFO" if count == 1 else "DEBUG")

    text = "Log decisions to standard error, in the words of Kafka's clients; -vv also logs what is sent."
    return click.Option(["-v", "--verbose"], count=True, expose_value=False, callback=callback, help=text)


def _level_option() -> click.Option:
    def callback(_context: click.Context, _parameter: click.Parameter, level: str | None) -> None:
        if level:
            set_level(level)

    return click.Option(
        ["--log-level", _LEVEL],
        type=OneOf(LEVELS, case_sensitive=False),
        expose_value=False,
        callback=callback,
        help=f"Lowest level that is logged.  [env: {LEVEL_VARIABLE}]",
    )
