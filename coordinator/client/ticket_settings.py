"""A classic member's settings named after tickets (`kernel.ticket_settings`)."""

from __future__ import annotations

from kernel.ticket_settings import fault

_JOIN = "run join --design cooperative --set"

TICKET_SETTINGS = (
    fault(
        12984,
        "a leader with cooperative-sticky lets members keep what they claim, whoever else claims it (2.4.0 to 2.8.0)",
        "Only to see it: after a member has missed a rebalance, partitions have two owners in one generation.",
        _JOIN,
    ),
    fault(
        14639,
        "a leader with cooperative-sticky counts only the claims of the highest generation (2.8.1 to 3.4.0)",
        "Only to see it: what a member that has missed a rebalance still reads is assigned to another at once.",
        _JOIN,
    ),
    fault(
        13419,
        "a member whose generation is refused (ILLEGAL_GENERATION) forgets its member id too (0.9 to 3.1)",
        "Only to see it: it joins as a new member, and the group waits for its former self until that one's session "
        "ends.",
        _JOIN,
    ),
    fault(
        13891,
        "a member whose SyncGroup is refused because a rebalance has begun gives up all that it has (3.3.0 and 3.3.1)",
        "Only to see it: a rebalance that follows another one closely stops partitions that stay where they are.",
        _JOIN,
    ),
)
