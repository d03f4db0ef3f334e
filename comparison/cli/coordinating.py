"""`rebalance-lab broker coordinator`: which broker coordinates a group, and why that one."""

from __future__ import annotations

import click

from comparison.cli.by_hand import bootstrap_of, state_option
from comparison.cli.state import states
from comparison.exits import Exit
from comparison.group_readers.cluster import open_client
from comparison.interruptible import run
from comparison.printable import printable
from comparison.scenarios.testbed.cluster_access import addresses
from coordinator.consumer.calls import find_coordinator
from coordinator.groups.placement import partition_of
from kernel.broker.cluster.cluster_view import GROUP_METADATA_TOPIC
from kernel.errors import UserError

_TIMEOUT_MS = 10_000


@click.command(
    epilog="""\b
Examples:
  rebalance-lab broker coordinator g
  rebalance-lab broker coordinator g --partitions 50   only the partition

\b
The hash code of the name of the group, modulo the number of partitions of __consumer_offsets, is its partition there;
the broker that leads it coordinates the group. While a lost broker's session lasts, that is still the lost one.
Like any lookup of a coordinator, this makes the cluster create __consumer_offsets if it does not exist yet."""
)
@click.argument("group")
@click.option(
    "--bootstrap-server", "bootstrap", help="HOST:PORT[,HOST:PORT...].  [default: the brokers started by `broker`]"
)
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    help="Ask no broker: compute the partition, if __consumer_offsets has so many.",
)
@state_option
def coordinator(group: str, bootstrap: str | None, partitions: int | None) -> int:
    """Show which broker coordinates a group; exit code 1 if none does.

    The pid is shown of a broker that was started by `broker` and runs.
    """
    if partitions is not None:
        if bootstrap is not None:
            raise UserError("--partitions asks no broker. Leave out --bootstrap-server")
        click.echo(printable(f"{group}: partition {partition_of(group, partitions)} of {partitions}"))
        return Exit.AS_EXPECTED
    return run(_show(group, bootstrap_of(bootstrap)))


async def _show(group: str, bootstrap: str) -> int:
    client = await open_client(addresses(bootstrap))
    try:
        found = await find_coordinator(await client.any_connection(), group, timeout_ms=_TIMEOUT_MS)
        metadata = await client.refresh([GROUP_METADATA_TOPIC])
        partitions = len(metadata.partitions_of(GROUP_METADATA_TOPIC))
    finally:
        await client.close()
    where = f"partition {partition_of(group, partitions)} of {partitions}, " if partitions else ""
    who = f"broker {found.node_id} at {found.host}:{found.port}" if not found.error else f"none: {found.error}"
    started = {state.address: state.pid for state in states("broker-") if state.running}
    pid = started.get(f"{found.host}:{found.port}")
    click.echo(printable(f"{group}: {where}{who}") + (f" (pid {pid})" if pid else ""))
    return Exit.NOT_AS_EXPECTED if found.error else Exit.AS_EXPECTED
