"""`rebalance-lab assign`: what strategies give a group on paper, and what they move when it changes."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from comparison.assigning.group import STEPS_MAX, Group, Plan, changed, checked_size
from comparison.assigning.group_file import read_plan
from comparison.assigning.notation import parse_members, parse_step, parse_topics, with_subscriptions
from comparison.assigning.rehearsal import FIGURES, rehearse
from comparison.assigning.strategies import chosen, owners_of
from comparison.cli.options import form_option
from comparison.exits import Exit
from kernel.assignors.registry import ASSIGNORS
from kernel.errors import ConfigurationError, UserError
from kernel.suggestions import placed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comparison.assigning.rehearsal import Moment, Rehearsal
    from comparison.assigning.strategies import Owned
    from kernel.values import TopicPartition

_THEN = "--then"


class _WithSteps(click.Command):
    """Takes a step in quotes, too: `--then "leave C1"` is `--then leave C1`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        apart: list[str] = []
        for place, arg in enumerate(args):
            if arg.startswith(f"{_THEN}="):
                apart += [_THEN, *_verb_and_rest(arg.removeprefix(f"{_THEN}="))]
            elif place and args[place - 1] == _THEN:
                apart += _verb_and_rest(arg)
            else:
                apart.append(arg)
        return super().parse_args(ctx, apart)


def _verb_and_rest(text: str) -> list[str]:
    return text.split(maxsplit=1) or [text]


@click.command(
    cls=_WithSteps,
    epilog="""\b
Examples:
  rebalance-lab assign --members C0,C1 --topics t0=3,t1=3
  rebalance-lab assign -s sticky --members C0,C1 --topics t=4 --then leave C1
  rebalance-lab assign --members C0,C1 --topics t=6,u=2 --then join C2:t
  rebalance-lab assign --members C0,C1 --topics t=3,u=3 --subscribe C0=t
  rebalance-lab assign --members C0@I0,C1 --topics t=4 --then restart C0=C5
  rebalance-lab assign -s thread-range --members C1:2,C2:2 --topics t=5
  rebalance-lab assign group.toml --format json

A member is NAME, NAME@INSTANCE (static), NAME:STREAMS or NAME:TOPIC+TOPIC; by
default it subscribes to all topics. Its name stands for its member id, by
which strategies sort.

\b
Steps, in order:
  join MEMBER,MEMBER
  leave NAME,NAME
  add-partitions TOPIC=HOW-MANY-MORE
  subscribe NAME=TOPIC,TOPIC
  restart OLD=NEW,OLD=NEW  come back under new ids before the group rebalances

Strategies: range, roundrobin, sticky, cooperative-sticky, random and what is
plugged in; uniform and broker-range are those of the brokers in KIP-848,
where the second is called range; thread-range, thread-roundrobin-0.8.2 and
thread-roundrobin-1.1 are those of the ZooKeeper consumer, which divide among
its streams.

\b
docs/assignment.md says what each promises, and has the format of the file.""",
)
@click.argument("file", metavar="[GROUP.toml]", required=False, type=click.Path(path_type=Path))
@click.option(
    "-s",
    "--strategy",
    "strategies",
    multiple=True,
    help="Strategy, or Java class of one; `all` adds brokers' and plug-ins. May be repeated.  [default: Kafka's four]",
)
@click.option("--members", help="Members: NAME,NAME...")
@click.option("--topics", help="Topics with their partitions: NAME=NUMBER,NAME=NUMBER...")
@click.option(
    "--subscribe",
    "subscriptions",
    multiple=True,
    metavar="NAME=TOPIC,TOPIC",
    help="Subscription of a member from the start. May be repeated.",
)
@click.option(_THEN, "steps", nargs=2, multiple=True, metavar="STEP WHAT", help="A change. May be repeated.")
@form_option
def assign(
    file: Path | None,
    strategies: Sequence[str],
    members: str | None,
    topics: str | None,
    subscriptions: Sequence[str],
    steps: Sequence[tuple[str, str]],
    form: str,
) -> int:
    """Show who gets which partition, how even that is, and what moves.

    Uses the same assignors as real members. No server is started or contacted.
    """
    plan = _plan(file, members, topics, subscriptions)
    group, changes = plan.group, list(plan.steps)
    for step in plan.steps:
        group = changed(group, step.change)
    for verb, rest in steps:
        try:
            step, group = parse_step(verb, rest, group)
        except ConfigurationError as error:
            raise ConfigurationError(placed(str(error), f"{_THEN} {verb} {rest}")) from error
        changes.append(step)
    if len(changes) > STEPS_MAX:
        raise UserError(f"{len(changes)} steps are too many. `assign` takes at most {STEPS_MAX}")
    plan = replace(plan, steps=tuple(changes), strategies=chosen(strategies or plan.strategies or ASSIGNORS))
    found = rehearse(plan)
    if form == "json":
        from comparison.cli.documents import print_document

        print_document(as_json(plan, found))
    else:
        from rich.console import Console

        from comparison.cli.assign_tables import print_tables

        print_tables(plan, found, Console(file=sys.stdout, highlight=False))
    return Exit.NOT_AS_EXPECTED if any(each.failed for each in found) else Exit.AS_EXPECTED


def _plan(file: Path | None, members: str | None, topics: str | None, subscriptions: Sequence[str]) -> Plan:
    if file is not None:
        if members is not None or topics is not None:
            raise UserError(f"{file} has members and topics. Leave out --members and --topics")
        plan = read_plan(file)
        return replace(plan, group=with_subscriptions(plan.group, subscriptions)) if subscriptions else plan
    if members is None or topics is None:
        raise UserError("no group is given. Write --members C0,C1 --topics t0=3,t1=3, or the name of a file")
    sizes = parse_topics(topics)
    if not sizes:
        raise UserError("--topics names no topic. Write NAME=NUMBER,NAME=NUMBER")
    group = checked_size(Group(sizes, parse_members(members, list(sizes))))
    return Plan(with_subscriptions(group, subscriptions))


# -- `assign --format json` --------------------------------------------------------------------------------------------


def as_json(plan: Plan, found: Sequence[Rehearsal]) -> dict[str, Any]:
    """Everything that the tables show and more."""
    return {
        **_group(plan.group),
        "steps": [step.text for step in plan.steps],
        "strategies": {
            each.strategy: {
                "failed": each.failed or None,
                "moments": [_moment(each.strategy, moment) for moment in each.moments],
            }
            for each in found
        },
    }


def _group(group: Group) -> dict[str, Any]:
    members = [
        {"member": m.name, "instance": m.instance_id, "streams": m.streams, "topics": m.topics} for m in group.members
    ]
    return {"topics": dict(group.sizes), "members": members}


def _moment(strategy: str, moment: Moment) -> dict[str, Any]:
    owners = owners_of(moment.group, strategy)
    return {
        "step": moment.step or None,
        **_group(moment.group),
        "owned": {owner: by_topic(moment.owned.get(owner, ())) for owner in owners},
        "unowned": by_topic(moment.unowned),
        **{name: getattr(moment.figures, name) for name in FIGURES},
        "moves": [
            {"topic": tp.topic, "partition": tp.partition, "from": owner}
            for tp, owner in sorted(moment.came_from.items())
        ],
        "rounds": [{"revoked": _all(each.revoked), "given": _all(each.given)} for each in moment.rounds],
    }


def _all(owned: Owned) -> dict[str, dict[str, list[int]]]:
    return {owner: by_topic(tps) for owner, tps in owned.items()}


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """{topic: the numbers of its partitions}, sorted."""
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return found
