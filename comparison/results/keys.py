"""What values in results and tables are found by: views, windows, changes, outcomes of runs, and names of requests."""

from __future__ import annotations

#: The five lines that are swept: three of ownership over time, two of records over their numbers.
BELIEVED, AUTHORITY, DELIVERING = "believed", "authority", "delivering"
SERIALS, OFFSETS = "serials", "offsets"
OVER_TIME = (BELIEVED, AUTHORITY, DELIVERING)

#: The number of the window that is the whole run; changes count from 0.
WHOLE_RUN = -1
#: The change that brings a group to the size to be measured; it is not measured itself.
FORMING = "form"
#: Changes that only bring the group to the size to be measured.
SIZING = (FORMING, "grow")
#: The change that is a member's restart.
RESTART = "restart"

#: How an attempt to rebalance ended, as in the trace: it claimed everything, or met another member's claim.
OK, CONFLICT = "ok", "conflict"

#: Who leads a partition whose topic has been deleted, as in the trace.
LEADER_DURING_DELETE = -2

#: The pseudo phase that is a whole rebalance, from its start to its end.
WHOLE = "rebalance"
#: The outcome of a run that went to its end.
COMPLETE = "complete"

#: The requests by which members of a classic group rebalance.
GROUP_REQUESTS = ("JoinGroup", "SyncGroup", "LeaveGroup")
#: Those by which members say that they live, or ask for what is new, as long as a group lasts.
PERIODIC_REQUESTS = ("Heartbeat", "ConsumerGroupHeartbeat", "AwaitCommand")
#: Those by which a group's authority makes a change. Heartbeats are none, but where assignments come in their answers:
#: there all are counted, with and without one.
AUTHORITY_REQUESTS = (*GROUP_REQUESTS, "ConsumerGroupHeartbeat", "AwaitCommand", "FindCoordinator", "OffsetFetch")


def place_of(process: str) -> str:
    """Where a process of a run is deployed: `m1` for `m1`, and for `m1.2`, which was started in its place."""
    return process.partition(".")[0]
