"""Commits and fetches of offsets: who may make them in a group of the `consumer` design.

The epoch is checked, not the ownership: a healthy member whose epoch is changing is refused too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.errors import Error

if TYPE_CHECKING:
    from coordinator.groups.consumer.group import ConsumerGroup
    from coordinator.groups.consumer.member import ConsumerMember

COMMITS_WITH_EPOCHS = 9  #: the first version of OffsetCommit that carries a member's epoch


def commit_refusal(group: ConsumerGroup, member_id: str, epoch: int, version: int) -> Error | None:
    """Of OffsetCommit. Without a member it is an administrator's, for groups that have none."""
    if epoch < 0 and not group.members:
        return None
    member = group.members.get(member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    if version < COMMITS_WITH_EPOCHS and member.classic is None:
        return Error.UNSUPPORTED_VERSION
    return _epoch_refusal(member, epoch)


def transactional_commit_refusal(group: ConsumerGroup, member_id: str, epoch: int) -> Error | None:
    """Of TxnOffsetCommit, whose clients know classic errors only. A producer may keep its group to itself."""
    if epoch < 0 and (not member_id or not group.members):
        return None
    member = group.members.get(member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    return None if member.epoch == epoch else Error.ILLEGAL_GENERATION


def fetch_refusal(group: ConsumerGroup, member_id: str | None, epoch: int) -> Error | None:
    """Of OffsetFetch 9; without a member anybody may fetch. Kafka fails if the epoch comes without a member."""
    if member_id is None:
        return None if epoch < 0 else Error.UNKNOWN_SERVER_ERROR
    member = group.members.get(member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    return _epoch_refusal(member, epoch)


def _epoch_refusal(member: ConsumerMember, epoch: int) -> Error | None:
    """To a member of the classic protocol its epoch is its generation."""
    if member.epoch == epoch:
        return None
    return Error.STALE_MEMBER_EPOCH if member.classic is None else Error.ILLEGAL_GENERATION
