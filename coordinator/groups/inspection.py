"""Describing and listing groups: DescribeGroups and ListGroups as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from coordinator.groups.classic.states import GroupState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from enum import Enum

    from coordinator.groups.classic.group import Group


class MemberDescription(NamedTuple):
    """One member as DescribeGroups shows it."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group as DescribeGroups shows it; an absent one is Dead (from v6 on also GROUP_ID_NOT_FOUND)."""

    state: GroupState = GroupState.DEAD
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[MemberDescription, ...] = ()


def describe(group: Group | None) -> GroupDescription:
    """Protocol and subscriptions show only in Stable; assignments are the latest, until a sync phase fails."""
    if group is None or group.state is GroupState.DEAD:
        return GroupDescription()
    stable = group.state is GroupState.STABLE
    return GroupDescription(
        state=group.state,
        protocol_type=group.protocol_type or "",
        protocol_name=(group.protocol_name or "") if stable else "",
        members=tuple(
            MemberDescription(
                member.id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.metadata(group.protocol_name) if stable else b"",
                member.assignment,
            )
            for member in group.members.values()
        ),
    )


GROUP_TYPE = "classic"  #: what ListGroups v5 shows, and filters by (KIP-848)
CONSUMER_GROUP_TYPE = "consumer"


class ListedGroup(NamedTuple):
    """One row of ListGroups."""

    group_id: str
    protocol_type: str
    state: Enum  #: GroupState, or ConsumerGroupState of a group of the `consumer` design
    type: str = GROUP_TYPE


def listed(
    groups: Iterable[Group], states: Iterable[str] = (), types: Iterable[str] = ()
) -> Iterator[ListedGroup | None]:
    """Groups whose state and type are among the given ones (no filter: all); letter case does not matter.

    The groups are those at the first `next`; each row shows its group's state when the row is made. A group in another
    state is None, so that a filter that matches few of many groups does not check them all in one turn.
    """
    wanted_states = {state.lower() for state in states}
    wanted_types = {kind.lower() for kind in types}
    if wanted_types and GROUP_TYPE not in wanted_types:
        return
    for group in tuple(groups):
        is_wanted = not wanted_states or group.state.value.lower() in wanted_states
        yield ListedGroup(group.id, group.protocol_type or "", group.state) if is_wanted else None
