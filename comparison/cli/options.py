"""Options that several commands have in the same words."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from comparison.cli.complaints import OneOf
from comparison.near_paths import RUNS
from comparison.scenarios.plan.links import DEFAULT, PRESETS, canonical
from comparison.scenarios.plan.parameters import SEED_MAX
from comparison.scenarios.plan.plugins import load
from kernel.designs import DESIGN_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def with_options(*options: Decorator) -> Decorator:
    """Several options as one decorator; help lists them in this order."""

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


#: Of the commands that run designs.
design_option = click.option(
    "--design",
    "designs",
    multiple=True,
    metavar="NAME",
    help=f"{', '.join(DESIGN_NAMES)}, or all. Repeat it, or separate with commas.  [default: zookeeper, eager]",
)
#: Of every command that prints what it has found.
form_option = click.option(
    "--format", "form", type=OneOf(["text", "json"]), default="text", show_default=True, help="Output format."
)
#: Of every command that reports its progress.
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print only the result, warnings and errors.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be run, and exit.")
output_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=RUNS,
    show_default=True,
    help="Folder for traces and reports.",
)


#: Of the commands that take --simulated; `chosen_links` says what was given.
link_option = click.option(
    "--link",
    "links",
    multiple=True,
    metavar="LINK",
    help=f"Delays of packets in a simulated run: {', '.join(PRESETS)}, 1ms±0.5, member-broker=1ms±0.5, cost=20us, ... "
    f"(docs/simulation.md). May be repeated.  [default: {DEFAULT}]",
)


def chosen_links(given: Sequence[str], *, simulated: bool) -> str | None:
    """What --link says, as the parameter `links`; None if it is not given.

    Raises a usage error for runs that are not simulated, and `ConfigurationError`.
    """
    if given and not simulated:
        raise click.UsageError(f"--link {given[0]} has no effect on real processes. Add --simulated, or leave it out")
    return canonical(given) if given else None


#: Of the commands for use by hand.
bootstrap_option = click.option(
    "--bootstrap-server", "bootstrap", help="HOST:PORT[,HOST:PORT...].  [default: the brokers started by `broker`]"
)
zookeeper_option = click.option(
    "--zookeeper", "connect", help="HOST:PORT[,HOST:PORT...][/chroot].  [default: the one started by `zookeeper start`]"
)


def port_option(default: int) -> Decorator:
    return click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=default,
        show_default=True,
        help="Port to listen on; 0 picks a free one.",
    )


def settings_option(whose: str) -> Decorator:
    return click.option(
        "--set",
        "-c",
        "--config",
        "pairs",
        multiple=True,
        metavar="KEY=VALUE",
        help=f"A {whose} setting. May be repeated.",
    )


def refuse_beside(option: str, *others: str) -> None:
    """Raise a usage error for those of the current command's options that would have no effect beside `option`."""
    context = click.get_current_context()
    given = [
        next(option for option in each.opts if option.startswith("--"))
        for each in context.command.params
        if each.name in others and context.get_parameter_source(each.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"{' and '.join(given)} would have no effect with {option}. Leave out one of them")


#: May be repeated; plugins are loaded while options are parsed, before any name is looked up.
plugin_option = click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE|MODULE",
    is_eager=True,
    expose_value=False,
    callback=lambda _, __, names: [load(name) for name in names],
    help="Python file or module with your own steps and faults (docs/own-scenarios.md). May be repeated.",
)


def with_seed(command: list[str], given: int | None) -> tuple[list[str], int]:
    """The command that repeats this one, and its seed: the given one, or a random one that is added to the command."""
    if given is not None:
        return command, given
    seed = random.SystemRandom().randint(0, SEED_MAX)
    end = command.index("--") if "--" in command else len(command)  # arguments after `--` are no options
    return [*command[:end], "--seed", str(seed), *command[end:]], seed
