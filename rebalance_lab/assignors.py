"""For assignment strategies of your own; docs/writing-an-assignor.md explains them.

A strategy is a function of this type, which an installed package offers by an entry point in the group
`rebalance_lab.assignors`. `assignor` finds one by its name, and `assign_at_random` is the example.
"""

from __future__ import annotations

from kernel.assignors.checking import BadAssignment
from kernel.assignors.random_choice import assign_at_random
from kernel.assignors.registry import assignor
from kernel.assignors.subscription import Assignor, MemberSubscription, members_in_order
from kernel.values import TopicPartition

__all__ = [
    "Assignor",
    "BadAssignment",
    "MemberSubscription",
    "TopicPartition",
    "assign_at_random",
    "assignor",
    "members_in_order",
]
