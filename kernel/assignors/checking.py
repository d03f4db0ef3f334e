"""The answers of assignors that others wrote are looked at before a whole group acts on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.errors import RebalanceLabError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.assignors.subscription import Assignor, MemberSubscription
    from kernel.values import TopicPartition


#: What a function that computes, and no more, raises where its author did not think of the input; an answer that is no
#: mapping of lists is seen by the same when it is looked at.
_MISTAKES = (
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
    """A plugged-in assignor's answer would break the group; the message says where."""


def checked(name: str, assign: Assignor) -> Assignor:
    """The same strategy; a call raises `BadAssignment` when its answer is none, or when it fails.

    Every member has to be named, no other, and each partition has to exist, to be subscribed to by whoever gets it,
    and to be given once. Partitions may be left out.
    """

    def checked_assign(
        partitions_per_topic: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]
    ) -> dict[str, list[TopicPartition]]:
        try:
            answer = assign(partitions_per_topic, subscriptions)
            fault = fault_of(answer, partitions_per_topic, subscriptions)
        except _MISTAKES as error:
            raise BadAssignment(f"assignment strategy {name!r} failed: {type(error).__name__}: {error}") from error
        if fault:
            raise BadAssignment(f"assignment strategy {name!r} {fault}")
        return answer

    return checked_assign


def fault_of(
    answer: Mapping[str, list[TopicPartition]],
    partitions_per_topic: Mapping[str, int],
    subscriptions: Mapping[str, MemberSubscription],
) -> str:
    """What is wrong with an answer; empty when nothing is."""
    if missing := sorted(subscriptions.keys() - answer.keys()):
        return f"left out {missing[0]!r}: every member needs a list, if an empty one"
    if strangers := sorted(answer.keys() - subscriptions.keys()):
        return f"named {strangers[0]!r}, which is no member of the group"
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
