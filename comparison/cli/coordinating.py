"""`rebalance-lab broker coordinator`: which broker coordinates a group, and why that one."""

from __future__ import annotations

import click
import msgspec

from comparison.cli.by_hand import bootstrap_of, state_option
from comparison.cli.documents import print_found
from comparison.cli.options import bootstrap_option, form_option
from comparison.cli.state import states
from comparison.exits import Exit
from comparison.group_readers.cluster import open_client
from comparison.group_readers.coordinator import lookup_facts
from comparison.group_readers.idle_reasons import lookup_failure
from comparison.interruptible import run
from comparison.screen.printable import printable
from coordinator.client.calls import find_coordinator
from coordinator.groups.placement import partition_of
from kernel.client.bootstrap import addresses
from kernel.errors import UserError
from kernel.topic_names import OFFSETS_TOPIC

_TIMEOUT_MS = 10_000


@click.command(
    epilog="""\b
Examples:
  rebalance-lab broker coordinator g
  rebalance-lab broker coordinator g --partitions 50   only the partition

\b
The hash code of the name of the group, modulo the number of partitions of
__consumer_offsets, is its partition there;
the broker that leads it coordinates the group. While a lost broker's session
lasts, that is still the lost one.
Like any lookup of a coordinator, this makes the cluster create
__consumer_offsets if it does not exist yet."""
)
@click.argument("group")
@bootstrap_option
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    help="Contact no broker; compute the partition, given this many partitions of __consumer_offsets.",
)
@form_option
@state_option
def coordinator(group: str, bootstrap: str | None, partitions: int | None, form: str) -> int:
    """Show which broker coordinates a group; exit code 1 if none does.

    The pid is shown if the broker was started by `broker` and is running.
    """
    if partitions is not None:
        if bootstrap is not None:
            raise UserError("--partitions asks no broker. Leave out --bootstrap-server")
        found = _Found(group, partition_of(group, partitions), partitions)
    else:
        found = run(_found(group, bootstrap_of(bootstrap)))
    print_found(form, found, [_line(found)])
    return Exit.NOT_AS_EXPECTED if found.error else Exit.AS_EXPECTED


class _Found(msgspec.Struct):
    """Who coordinates a group; None is what nobody was asked, or what nobody knows."""

    group: str
    partition: int | None
    partitions: int | None
    broker: int | None = None
    address: str | None = None
    pid: int | None = None  #: of a broker started by `broker`
    error: str = ""  #: why there is no coordinator


async def _found(group: str, bootstrap: str) -> _Found:
    client = await open_client(addresses(bootstrap))
    try:
        found = await find_coordinator(await client.any_connection(), group, timeout_ms=_TIMEOUT_MS)
        facts = await lookup_facts(client, group, found)
    finally:
        await client.close()
    partitions = (facts.topics or {}).get(OFFSETS_TOPIC) or None
    partition = partition_of(group, partitions) if partitions else None
    if found.error:
        return _Found(group, partition, partitions, error=lookup_failure(facts))
    address = f"{found.host}:{found.port}"
    started = {state.address: state.pid for state in states("broker-") if state.running}
    return _Found(group, partition, partitions, found.node_id, address, started.get(address))


def _line(found: _Found) -> str:
    who = f"broker {found.broker} at {found.address}" if found.address is not None else ""
    parts = [
        f"partition {found.partition} of {found.partitions}" if found.partitions is not None else "",
        f"none: {found.error}" if found.error else who,
    ]
    pid = f" (pid {found.pid})" if found.pid is not None else ""
    return printable(f"{found.group}: {', '.join(filter(None, parts))}{pid}")
