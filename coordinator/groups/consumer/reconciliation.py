"""How a member gets from the partitions that it has to those that it shall have: revoke first, then take.

A member keeps what is in its target, gives up the rest, and takes what nobody has. It never waits for members whose
partitions it does not need, and nobody waits for it but those who need its partitions: there is no barrier
(CurrentAssignmentBuilder, 4.1.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from coordinator.groups.consumer.states import TRANSITIONS, ConsumerMemberState, Finding
from coordinator.groups.partitions import NONE, Partitions, both, overlap, partitions, together, without

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.groups.consumer.member import ConsumerMember
    from coordinator.groups.partitions import TopicId


class MemberFenced(Exception):  # a refusal of the request, not a failure
    """The member must give up everything and join again (FENCED_MEMBER_EPOCH)."""


class Goal(NamedTuple):
    """Where a member shall get to."""

    epoch: int  #: of the target assignment
    target: Partitions
    is_free: Callable[[TopicId, int], bool]  #: whether no member has the partition


def reconciled(member: ConsumerMember, goal: Goal, owned: Partitions | None) -> ConsumerMember:
    """The member after a heartbeat that reports `owned` (None: it reports nothing). Raises `MemberFenced`."""
    match member.state:
        case ConsumerMemberState.STABLE:
            return member if member.epoch == goal.epoch else _compared(member, member.epoch, goal, owned)
        case ConsumerMemberState.UNREVOKED_PARTITIONS:
            if _may_own(owned, member.revoking):
                return member
            return _compared(member, member.epoch + 1, goal, owned)
        case ConsumerMemberState.UNRELEASED_PARTITIONS:
            return _compared(member, member.epoch, goal, owned)
        case ConsumerMemberState.UNKNOWN:
            if owned is None or owned:
                raise MemberFenced
            return _compared(member, goal.epoch, goal, owned)


def _may_own(owned: Partitions | None, given_up: Partitions) -> bool:
    return owned is None or overlap(owned, given_up)


def _compared(member: ConsumerMember, epoch: int, goal: Goal, owned: Partitions | None) -> ConsumerMember:
    """Compare the member with its target; `epoch` is its epoch as long as it has to give something up."""
    keeps = both(member.assigned, goal.target)
    gives_up = without(member.assigned, keeps)
    misses = without(goal.target, keeps)
    takes = partitions((topic, (n for n in numbers if goal.is_free(topic, n))) for topic, numbers in misses.items())
    if gives_up and _may_own(owned, gives_up):
        finding, takes = Finding.MUST_REVOKE, NONE
    else:
        finding, gives_up, epoch = Finding.COMPLETE if takes == misses else Finding.MUST_WAIT, NONE, goal.epoch
    return member._replace(
        state=TRANSITIONS[member.state][finding],
        epoch=epoch,
        previous_epoch=member.epoch,
        assigned=together(keeps, takes),
        revoking=gives_up,
    )
