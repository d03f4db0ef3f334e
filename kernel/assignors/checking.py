"""Check the assignments of plugged-in assignors before the group acts on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.code_places import users_place
from kernel.errors import RebalanceLabError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.assignors.subscription import Assignor, MemberSubscription
    from kernel.values import TopicPartition


#: What bugs in a purely computing function raise. A result that is not a mapping of lists raises one of them in the
#: check.
_BUGS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    RuntimeError,
    TypeError,
    ValueError,
)


class BadAssignment(RebalanceLabError):
    """A plugged-in assignor's assignment is invalid; the message says where."""


def checked(name: str, assign: Assignor) -> Assignor:
    """The strategy with a check: raises `BadAssignment` if it fails or its assignment is invalid.

    An assignment must name exactly the members of the group. Each partition in it must exist, occur only once, and
    belong to a topic to which its member subscribes. Partitions may be left out.
    """

    def checked_assign(
        partitions_per_topic: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]
    ) -> dict[str, list[TopicPartition]]:
        try:
            answer = assign(partitions_per_topic, subscriptions)
            fault = fault_of(answer, partitions_per_topic, subscriptions)
        except _BUGS as error:
            place = f" ({place})" if (place := users_place(error)) else ""
            raise BadAssignment(
                f"assignment strategy {name!r} failed: {type(error).__name__}: {error}{place}"
            ) from error
        if fault:
            raise BadAssignment(f"assignment strategy {name!r} {fault}")
        return answer

    return checked_assign


def fault_of(
    answer: Mapping[str, list[TopicPartition]],
    partitions_per_topic: Mapping[str, int],
    subscriptions: Mapping[str, MemberSubscription],
) -> str:
    """What is wrong with an assignment; empty if it is valid."""
    if missing := sorted(subscriptions.keys() - answer.keys()):
        return f"left out {missing[0]!r}: every member needs a list, even if it is empty"
    if strangers := sorted(answer.keys() - subscriptions.keys()):
        return f"named {strangers[0]!r}, which is not a member of the group"
    owner: dict[TopicPartition, str] = {}
    for member, partitions in answer.items():
        for tp in partitions:
            topic, partition = tp
            if not 0 <= partition < partitions_per_topic.get(topic, 0):
                return f"gave {member!r} {topic}-{partition}, which does not exist"
            if topic not in subscriptions[member].topics:
                return f"gave {member!r} {topic}-{partition}, but it does not subscribe to {topic}"
            if tp in owner:
                return f"gave {topic}-{partition} to {owner[tp]!r} and to {member!r}"
            owner[tp] = member
    return ""
