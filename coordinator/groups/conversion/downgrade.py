"""A group of the `consumer` design as a classic one (ClassicGroup.fromConsumerGroup).

Each member gets its target for its assignment, whether it has taken it yet or not: the first rebalance sorts that out.
The generation is the group's epoch, so members at an older epoch are a generation behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.classic.group import Group
from coordinator.groups.classic.member import Member
from coordinator.groups.classic.states import GroupState
from coordinator.groups.consumer_records import ClientKey, CurrentKey, EpochKey, RegexKey, TargetEpochKey, TargetKey
from coordinator.groups.mixed.standing import assignment_of
from coordinator.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE

if TYPE_CHECKING:
    from collections.abc import Collection

    from coordinator.groups.consumer.group import ConsumerGroup
    from coordinator.groups.consumer.topics import Topics
    from coordinator.groups.consumer_records import ConsumerKey


def downgraded(group: ConsumerGroup, leaving: Collection[str], topics: Topics, wall_ms: int) -> Group:
    """In Stable. All members that do not leave use the classic protocol."""
    classic = Group(
        group.id,
        state=GroupState.STABLE,
        state_wall_ms=wall_ms,
        generation=group.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
    )
    for member in group.members.values():
        if member.id not in leaving:
            assert member.classic is not None, "only members of the classic protocol stay"
            classic.admit(
                Member(
                    id=member.id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.classic.session_timeout_ms,
                    protocols=member.classic.protocols,
                )
            )
    classic.choose_protocol()
    for staying in classic.members.values():
        metadata = staying.metadata(classic.protocol_name)
        staying.assignment = assignment_of(group.target_of(staying.id), metadata, topics)
    return classic


def tombstones(group: ConsumerGroup) -> list[ConsumerKey]:
    """All keys of the group, in Kafka's order."""
    members = list(group.members)
    return [
        *(CurrentKey(group.id, member) for member in members),
        *(TargetKey(group.id, member) for member in members),
        TargetEpochKey(group.id),
        *(ClientKey(group.id, member) for member in members),
        *(RegexKey(group.id, regex) for regex in sorted(group.regexes)),
        EpochKey(group.id),
    ]
