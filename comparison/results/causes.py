"""Why nothing was delivered from a partition for a while, and how long that must be to be seen."""

from __future__ import annotations

from enum import StrEnum

#: A run's course is cut into so many intervals at most, of whole multiples of the shortest one, in nanoseconds.
INTERVALS_MAX, INTERVAL_NS_MIN = 600, 100_000_000


def interval_ns(span_ns: int) -> int:
    """The length of an interval of a run's course; a standstill that is not longer than one is not seen."""
    return max(1, -(-span_ns // (INTERVALS_MAX * INTERVAL_NS_MIN))) * INTERVAL_NS_MIN


class Cause(StrEnum):
    """Why nothing was delivered for a while, as far as the trace knows; of several, the first one here."""

    PAUSED = "paused"  #: the application had paused the partition
    NO_LEADER = "no leader"  #: no broker led it
    REBALANCE = "rebalance"  #: its owner was in a rebalance, or nobody owned it while the group was in one
    FROZEN = "frozen"  #: a fault had frozen its owner
    SLOW = "slow record"  #: a fault had its owner take long over a record
    NO_OWNER = "no owner"  #: no member claimed it
    FAULT = "fault"  #: another fault of its owner
    REFUSED = "fetch refused"  #: a broker refused to let it be fetched, or could not be reached
    UNKNOWN = "unknown"


#: What each says of a partition, in a sentence.
WORDS = {
    Cause.PAUSED: "the application had paused it",
    Cause.NO_LEADER: "no broker led it",
    Cause.REBALANCE: "its owner or its group was in a rebalance",
    Cause.FROZEN: "its owner was frozen",
    Cause.SLOW: "its owner took long over a record",
    Cause.NO_OWNER: "no member claimed it",
    Cause.FAULT: "its owner had a fault",
    Cause.REFUSED: "a broker refused to let it be fetched, or could not be reached",
    Cause.UNKNOWN: "the trace does not say why",
}
