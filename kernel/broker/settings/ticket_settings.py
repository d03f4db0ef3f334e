"""A broker's settings named after tickets: known faults of Kafka's group coordinators, to be brought back or mended.

`fault.kafka.N` brings back what KAFKA-N has fixed by 4.1.1, `fix.kafka.N` mends what 4.1.1 still has. All are off:
this broker is as 4.1.1. `docs/coordinator-weaknesses.md` has each with its releases, its test and how to see it.
"""

from __future__ import annotations

from kernel.settings import Setting, boolean


def fault(ticket: int, doc: str, advice: str, shown_by: str) -> Setting:
    """Of something that Kafka has fixed: as it was before."""
    return _named("fault", ticket, doc, advice, shown_by)


def fix(ticket: int, doc: str, advice: str, shown_by: str) -> Setting:
    """Of something that 4.1.1 has: as a later release mends it."""
    return _named("fix", ticket, doc, advice, shown_by)


def _named(kind: str, ticket: int, doc: str, advice: str, shown_by: str) -> Setting:
    name = f"{kind}.kafka.{ticket}"
    return Setting(
        name=name,
        parse=boolean,
        default=False,
        doc=doc,
        advice=advice,
        source=f"KAFKA-{ticket}",
        shown_by=f"{shown_by} {name}=true",
    )


_START, _JOIN = "broker --set", "run join --design consumer --set"

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
        "run asymmetric-cut --design consumer --set",
    ),
    fix(
        19449,
        "a member of a consumer group that shall keep what it was to give up has it back in the same heartbeat, as "
        "since 4.2.0",
        "It spares the member one heartbeat without these partitions.",
        _JOIN,
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
        _JOIN,
    ),
)
