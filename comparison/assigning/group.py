"""A group and its changes, as values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Larger groups would make nobody wiser, and the command slow.
MEMBERS_MAX, STREAMS_MAX, TOPICS_MAX, PARTITIONS_MAX, STEPS_MAX = 2_000, 100, 1_000, 20_000, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """One member of the group. Its name stands for its member id, by which strategies sort."""

    name: str
    topics: tuple[str, ...]
    instance_id: str | None = None
    streams: int = 1  #: threads, in the strategies of the ZooKeeper consumer


@dataclass(frozen=True, slots=True)
class Group:
    """Topics with their numbers of partitions, and members in the order in which they joined."""

    sizes: Mapping[str, int]
    members: tuple[GroupMember, ...]

    @property
    def by_name(self) -> dict[str, GroupMember]:
        return {member.name: member for member in self.members}


@dataclass(frozen=True, slots=True)
class Join:
    """Members that join at the same time."""

    members: tuple[GroupMember, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """Members that leave at the same time; whether they leave in order or crash makes no difference here."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """More partitions for topics; a topic of size 0 is created by it."""

    more: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A member replaces its subscription."""

    name: str
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Restart:
    """Members that come back under new member ids before the group rebalances."""

    new_names: Mapping[str, str]


Change = Join | Leave | AddPartitions | Subscribe | Restart


@dataclass(frozen=True, slots=True)
class Step:
    """A change, and how it was written."""

    text: str
    change: Change


@dataclass(frozen=True, slots=True)
class Plan:
    """A group and what happens to it, in order."""

    group: Group
    steps: tuple[Step, ...] = ()
    strategies: tuple[str, ...] = field(default=())


def changed(group: Group, change: Change) -> Group:
    """The group after a change. Raises `ConfigurationError` if it would have too many members or partitions."""
    match change:
        case Join(members):
            after = replace(group, members=(*group.members, *members))
        case Leave(names):
            after = replace(group, members=tuple(each for each in group.members if each.name not in names))
        case AddPartitions(more):
            after = replace(group, sizes={topic: size + more.get(topic, 0) for topic, size in group.sizes.items()})
        case Subscribe(name, topics):
            after = replace(
                group, members=tuple(replace(m, topics=topics) if m.name == name else m for m in group.members)
            )
        case Restart(new_names):
            after = replace(group, members=tuple(replace(m, name=new_names.get(m.name, m.name)) for m in group.members))
    return checked_size(after)


def checked_size(group: Group) -> Group:
    """The group. Raises `ConfigurationError` if it is too large for this command."""
    for count, most, what in (
        (len(group.members), MEMBERS_MAX, "members"),
        (sum(member.streams for member in group.members), MEMBERS_MAX, "streams"),
        (len(group.sizes), TOPICS_MAX, "topics"),
        (sum(group.sizes.values()), PARTITIONS_MAX, "partitions"),
    ):
        if count > most:
            raise ConfigurationError(f"{count} {what} are too many. `assign` takes at most {most}")
    return group
