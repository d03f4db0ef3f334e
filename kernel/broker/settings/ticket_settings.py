"""A broker's settings named after tickets (`kernel.ticket_settings`)."""

from __future__ import annotations

from kernel.ticket_settings import fault, fix

#: No scenario comes to where they matter.
_START = "broker --set"

TICKET_SETTINGS = (
    fault(
        9752,
        "the session of a new member begins with its first SyncGroup or Heartbeat, and not when its JoinGroup is "
        "answered (2.1.1 to 2.4.1)",
        "Only to see it: a process that dies in between keeps its partitions, and the next rebalance waits for it.",
        _START,
    ),
    fix(
        19233,
        "a member of a consumer group may join again with epoch 0 at any time, as since 4.2.0",
        "It spares a member whose answers were lost the wait for the end of its own session.",
        _START,
    ),
    fix(
        19449,
        (
            "a member of a consumer group that may keep what it was to give up has it back in the same heartbeat, as "
            "since 4.2.0"
        ),
        "It spares the member one heartbeat without these partitions.",
        _START,
    ),
    fix(
        19720,
        "a static member that returns to a consumer group with the classic protocol loses its pattern, as since 4.2.0",
        "Without it such a member gets partitions of topics that it has not subscribed to, and nobody reads them.",
        _START,
    ),
    fix(
        20434,
        "a consumer group assigns anew when most of its members prefer another assignor, as since 4.4.0",
        "Without it another group.remote.assignor has no effect before the next change of the group.",
        _START,
    ),
    fix(
        20442,
        "the assignment's epoch of a consumer group that its last member has left is the group's, as since 4.4.0",
        "Without it the description of an empty group shows an assignment an epoch behind; nothing waits for it.",
        _START,
    ),
)
