"""How a group and its changes are written: on the command line, and in the `then` of a file.

members  C0,C1                       member ids
         C0@I0                       with a group.instance.id
         C0:2                        with two streams (threads of the ZooKeeper consumer)
         C0:t0+t1                    subscribed to these topics; to all without
topics   t0=3,t1=3                   with their numbers of partitions
steps    join C3:t1, leave C1, add-partitions t0=2, subscribe C1=t0,t1, restart C0=C5
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from comparison.assigning.group import (
    PARTITIONS_MAX,
    STREAMS_MAX,
    AddPartitions,
    Change,
    Group,
    GroupMember,
    Join,
    Leave,
    Restart,
    Step,
    Subscribe,
    changed,
)
from kernel.decimals import decimal
from kernel.errors import ConfigurationError
from kernel.suggestions import unknown
from kernel.topic_names import topic_name_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

_MEMBER = re.compile(r"[^\s,:=+@*]{1,200}")
_MEMBER_FORM = "NAME, NAME@INSTANCE, NAME:STREAMS or NAME:TOPIC+TOPIC"


def parse_topics(text: str) -> dict[str, int]:
    """{topic: its partitions}. Raises `ConfigurationError`."""
    sizes: dict[str, int] = {}
    for part in _parts(text):
        name, equals, count = part.partition("=")
        if not equals or not count:
            raise ConfigurationError(f"{part!r} is not a topic with its partitions. Write NAME=NUMBER")
        name = checked_topic(name)
        if name in sizes:
            raise ConfigurationError(f"topic {name!r} is given twice. Leave one out")
        sizes[name] = checked_count(count, 0, PARTITIONS_MAX, f"partitions of {name}")
    return sizes


def parse_members(text: str, topics: Collection[str], present: Iterable[str] = ()) -> tuple[GroupMember, ...]:
    """New members; those without topics subscribe to all. Raises `ConfigurationError`."""
    members: list[GroupMember] = []
    for part in _parts(text):
        head, *details = part.split(":")
        name, at, instance_id = head.partition("@")
        if name in topics and members and members[-1].topics != tuple(topics):
            raise ConfigurationError(f"{name!r} is a topic. Write the topics of a member as NAME:TOPIC+TOPIC")
        member = GroupMember(name=checked_name(name), topics=tuple(topics))
        if at:
            member = replace(member, instance_id=checked_name(instance_id))
        for detail in details:
            if decimal(detail) is not None and detail not in topics:
                streams = checked_count(detail, 1, STREAMS_MAX, f"streams of {name}")
                member = replace(member, streams=streams)
            else:
                member = replace(member, topics=parse_subscription(detail, topics))
        members.append(member)
    if not members:
        raise ConfigurationError(f"no member in {text!r}. Write {_MEMBER_FORM}, separated by commas")
    check_new(members, present)
    return tuple(members)


def check_new(members: Iterable[GroupMember], present: Iterable[str] = ()) -> None:
    """Raises `ConfigurationError` if a member has the name or the instance id of another one."""
    names, instances = set(present), set[str]()
    for member in members:
        if member.name in names:
            raise ConfigurationError(f"member {member.name!r} is in the group already. Choose another name")
        if member.instance_id in instances:
            raise ConfigurationError(f"instance id {member.instance_id!r} is given twice. Each member has its own")
        names.add(member.name)
        instances |= {member.instance_id} if member.instance_id else set()


def parse_subscription(text: str, topics: Collection[str]) -> tuple[str, ...]:
    """Topics, separated by `+` or commas; none of an empty text. Raises `ConfigurationError`."""
    chosen = [name for name in re.split(r"[+,]", text) if name.strip()]
    return tuple(dict.fromkeys(known("topic", name.strip(), topics) for name in chosen))


def parse_step(verb: str, rest: str, group: Group) -> tuple[Step, Group]:
    """A change of this group, and the group after it. Raises `ConfigurationError`."""
    if verb not in STEPS:
        raise ConfigurationError(unknown("step", verb, list(STEPS)))
    change = STEPS[verb](rest, group)
    return Step(f"{verb} {rest}".strip(), change), changed(group, change)


def with_subscriptions(group: Group, given: Iterable[str]) -> Group:
    """The group after `NAME=TOPIC,TOPIC` for each of some members. Raises `ConfigurationError`."""
    for text in given:
        group = changed(group, _subscribe(text, group))
    return group


def _join(text: str, group: Group) -> Change:
    members = parse_members(text, list(group.sizes), group.by_name)
    taken = {member.instance_id for member in group.members if member.instance_id}
    for member in members:
        if member.instance_id in taken:
            raise ConfigurationError(f"instance id {member.instance_id!r} is in the group already. Choose another one")
    return Join(members)


def _leave(text: str, group: Group) -> Change:
    names = [known("member", name, group.by_name) for name in _parts(text)]
    if not names:
        raise ConfigurationError("nobody leaves. Write leave NAME,NAME")
    return Leave(tuple(names))


def _add_partitions(text: str, group: Group) -> Change:
    more = {known("topic", name, group.sizes): count for name, count in parse_topics(text).items()}
    if not more or not all(more.values()):
        raise ConfigurationError("no partitions are added. Write how many more: add-partitions TOPIC=NUMBER")
    return AddPartitions(more)


def _subscribe(text: str, group: Group) -> Subscribe:
    name, equals, topics = text.partition("=")
    if not equals:
        raise ConfigurationError(f"{text!r} is not a subscription. Write NAME=TOPIC,TOPIC")
    return Subscribe(known("member", name.strip(), group.by_name), parse_subscription(topics, list(group.sizes)))


def _restart(text: str, group: Group) -> Change:
    new_names: dict[str, str] = {}
    for part in _parts(text):
        old, equals, new = part.partition("=")
        if not equals:
            raise ConfigurationError(f"{part!r} does not say under which id it comes back. Write restart OLD=NEW")
        new_names[known("member", old.strip(), group.by_name)] = checked_name(new.strip())
    for new in new_names.values():
        if new in group.by_name or list(new_names.values()).count(new) > 1:
            raise ConfigurationError(f"{new!r} is the id of another member. Choose a new one")
    if not new_names:
        raise ConfigurationError("nobody restarts. Write restart OLD=NEW")
    return Restart(new_names)


STEPS: Mapping[str, Callable[[str, Group], Change]] = {
    "join": _join,
    "leave": _leave,
    "add-partitions": _add_partitions,
    "subscribe": _subscribe,
    "restart": _restart,
}


def known(what: str, name: str, names: Collection[str]) -> str:
    """The name. Raises `ConfigurationError` if it is not one of them."""
    if name not in names:
        raise ConfigurationError(unknown(what, name, names))
    return name


def checked_name(name: str) -> str:
    """A member or instance id. Raises `ConfigurationError`."""
    if not _MEMBER.fullmatch(name):
        raise ConfigurationError(f"{name!r} is not the name of a member. Write {_MEMBER_FORM}, separated by commas")
    return name


def checked_topic(name: str) -> str:
    """A topic's name. Raises `ConfigurationError`."""
    if topic_name_problem(name):
        raise ConfigurationError(f"{name!r} is not a topic's name. Use letters, digits, dots, dashes and underscores")
    return name


def checked_count(given: str, least: int, most: int, what: str) -> int:
    """A number. Raises `ConfigurationError`."""
    number = decimal(given)
    if number is None or not least <= number <= most:
        raise ConfigurationError(f"{given!r} is not a number of {what}. Use one between {least} and {most}")
    return number


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
