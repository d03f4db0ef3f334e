"""Shared by the commands for use by hand: the state folder, the default servers, and how they stop."""

from __future__ import annotations

import os
from pathlib import Path

import click

from comparison.cli.state import STATE_VARIABLE, read_state, states
from kernel.client.bootstrap import addresses
from kernel.errors import ConfigurationError, EnvironmentFault, Unavailable, UserError
from kernel.zookeeper.target import TargetKind, parse_target, require_serving


def _keep_state(_context: click.Context, _parameter: click.Parameter, folder: Path | None) -> None:
    if folder is not None:
        os.environ[STATE_VARIABLE] = str(folder.absolute())  # inherited by servers started in the background


#: Each folder has its own set of servers.
state_option = click.option(
    "--state",
    "state_folder",  # not `state`: a command may have an option of its own with that parameter
    type=click.Path(path_type=Path, file_okay=False),
    callback=_keep_state,
    expose_value=False,
    is_eager=True,
    help=f"State folder: which servers were started, and their data.  [env: {STATE_VARIABLE}]",
)


def zookeeper_at(text: str) -> str:
    """The connect string of `--zookeeper HOST:PORT[,HOST:PORT...][/chroot]`. Raises `UserError` for anything else."""
    target = parse_target(text)
    if target.kind is not TargetKind.RUNNING:
        raise UserError(
            f"--zookeeper {text} is not the address of a server. Give HOST:PORT of a running one; "
            "`rebalance-lab zookeeper start` starts one"
        )
    return target.connect_string


def report_silence(connect: str, wait_ms: int | None = None) -> None:
    """Report on standard error that a ZooKeeper does not answer yet, and the timeout. Takes up to 3 s."""
    try:
        require_serving(parse_target(connect))
    except Unavailable:
        setting = "zookeeper.connection.timeout.ms"
        how_long = f"({setting})" if wait_ms is None else f"up to {wait_ms / 1000:g} s ({setting})"
        click.echo(f"no ZooKeeper answers at {connect} yet; waiting {how_long}", err=True)


def started_zookeeper() -> str:
    """The address of the server that `zookeeper start` started. Raises `EnvironmentFault` when none runs."""
    state = read_state("zookeeper")
    if state is None or not state.running:
        raise EnvironmentFault(
            "no ZooKeeper. Start one with `rebalance-lab zookeeper start`, or give --zookeeper HOST:PORT"
        )
    return state.address


def started_brokers() -> str:
    """The addresses of the brokers started by `rebalance-lab broker`. Raises `EnvironmentFault` when none runs."""
    running = [state.address for state in states("broker-") if state.running]
    if not running:
        raise EnvironmentFault("no broker. Start one with `rebalance-lab broker`, or give --bootstrap-server HOST:PORT")
    return ",".join(running)


def bootstrap_of(given: str | None) -> str:
    """The checked text of --bootstrap-server, or the brokers started by `rebalance-lab broker`."""
    text = given or started_brokers()
    try:
        addresses(text)
    except ValueError as error:
        raise ConfigurationError(f"--bootstrap-server {text!r}: {error}. Give HOST:PORT[,HOST:PORT]") from error
    return text
