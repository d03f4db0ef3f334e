"""`rebalance-lab topic`: create, grow, recreate, list, describe and delete topics."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

import click

from comparison.cli.by_hand import bootstrap_of, state_option
from comparison.cli.documents import print_found
from comparison.cli.options import bootstrap_option, form_option, settings_option, with_options
from comparison.interruptible import run
from comparison.screen.counted import counted
from comparison.screen.printable import printable
from comparison.topic_admin import TopicAdmin
from kernel.client.bootstrap import addresses
from kernel.client.client import ClusterClient
from kernel.settings import split_pairs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from comparison.topic_admin import SettingDescription, TopicDescription

T = TypeVar("T")


#: Of all topic commands.
topic_options = with_options(bootstrap_option, state_option)


@click.group(
    epilog="""\b
Examples:
  rebalance-lab topic create orders --partitions 6
  rebalance-lab topic list
  rebalance-lab topic describe orders
  rebalance-lab topic add-partitions orders 2
  rebalance-lab topic recreate orders
  rebalance-lab topic delete orders"""
)
def topic() -> None:
    """Create, grow, recreate, list, describe and delete topics."""


@topic.command(
    epilog="""\b
Examples:
  rebalance-lab topic create orders --partitions 6
  rebalance-lab topic create orders --replication-factor 3 \\
      --set max.message.bytes=20000"""
)
@click.argument("name")
@click.option(
    "--partitions", type=click.IntRange(1), help="Number of partitions.  [default: the broker's num.partitions]"
)
@click.option(
    "--replication-factor",
    type=click.IntRange(1),
    help="Number of replicas.  [default: the broker's default.replication.factor]",
)
@settings_option("topic")
@form_option
@topic_options
def create(
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    pairs: tuple[str, ...],
    form: str,
    bootstrap: str | None,
) -> None:
    """Create a topic and wait until every partition has a leader."""
    text = bootstrap_of(bootstrap)

    async def made(admin: TopicAdmin) -> int:
        return await admin.create(
            name,
            partitions=partitions or -1,
            replication_factor=replication_factor or -1,
            configs=split_pairs(pairs),
        )

    number = _with_admin(text, made)
    created = f"created {name} with {counted(number, 'partition')}"
    print_found(form, {"topic": name, "partitions": number}, [created])
    if pairs:
        for setting in _with_admin(text, lambda admin: admin.settings(name)):
            if setting.note:
                click.echo(f"warning: {_setting_text(setting)}", err=True)


@topic.command(name="list")
@form_option
@topic_options
def list_topics(form: str, bootstrap: str | None) -> None:
    """List the topics and their numbers of partitions, without internal topics."""
    found = _with_admin(bootstrap_of(bootstrap), TopicAdmin.list)
    sizes = [{"topic": name, "partitions": size} for name, size in found.items()]
    print_found(form, sizes, (f"{printable(name)}: {counted(size, 'partition')}" for name, size in found.items()))
    if not found and form == "text":
        click.echo("no topics; create one with `rebalance-lab topic create NAME`", err=True)


@topic.command()
@click.argument("name")
@form_option
@topic_options
def describe(name: str, form: str, bootstrap: str | None) -> None:
    """Show a topic's partitions (leader, replicas, first and next offset) and its settings."""
    found = _with_admin(bootstrap_of(bootstrap), lambda admin: admin.describe(name))
    print_found(form, asdict(found), _lines(found))


@topic.command(name="add-partitions")
@click.argument("name")
@click.argument("more", type=click.IntRange(1))
@form_option
@topic_options
def add_partitions(name: str, more: int, form: str, bootstrap: str | None) -> None:
    """Add MORE partitions to a topic, and wait until each has a leader.

    Records stay where they are; records with the same key may go to another partition from now on.
    """
    number = _with_admin(bootstrap_of(bootstrap), lambda admin: admin.add_partitions(name, more))
    print_found(form, {"topic": name, "partitions": number}, [f"{name} has {counted(number, 'partition')} now"])


@topic.command()
@click.argument("name")
@click.option("--partitions", type=click.IntRange(1), help="Number of partitions.  [default: as many as it had]")
@form_option
@topic_options
def recreate(name: str, partitions: int | None, form: str, bootstrap: str | None) -> None:
    """Delete a topic with all its records, and create it again with the same replicas and settings."""
    number = _with_admin(bootstrap_of(bootstrap), lambda admin: admin.recreate(name, partitions=partitions))
    print_found(form, {"topic": name, "partitions": number}, [f"recreated {name} with {counted(number, 'partition')}"])


@topic.command()
@click.argument("name")
@topic_options
def delete(name: str, bootstrap: str | None) -> None:
    """Delete a topic with all its records."""
    _with_admin(bootstrap_of(bootstrap), lambda admin: admin.delete(name))
    click.echo(f"deleted {name}")


def _lines(found: TopicDescription) -> Iterator[str]:
    summary = f"{printable(found.name)}: {counted(len(found.partitions), 'partition')}"
    yield summary + (f", id {found.topic_id}" if found.topic_id else "")
    for each in found.partitions:
        leader = f"leader {each.leader}" if each.leader >= 0 else "no leader"
        replicas = ",".join(map(str, each.replicas))
        in_sync = ",".join(map(str, each.in_sync))
        known = each.begin_offset is not None and each.end_offset is not None
        offsets = f"{each.begin_offset} to {each.end_offset}" if known else "unknown"
        yield f"  {each.number}: {leader}, replicas {replicas}, in sync {in_sync}, offsets {offsets}"
    yield from (f"  {_setting_text(setting)}" for setting in found.settings)


def _setting_text(setting: SettingDescription) -> str:
    return printable(f"{setting.name}={setting.value}") + (f" ({setting.note})" if setting.note else "")


def _with_admin(bootstrap: str, work: Callable[[TopicAdmin], Awaitable[T]]) -> T:
    async def asked() -> T:
        client = ClusterClient(addresses(bootstrap), "rebalance-lab")
        try:
            return await work(TopicAdmin(client))
        finally:
            await client.close()

    return run(asked())
