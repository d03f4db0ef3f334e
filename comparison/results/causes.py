"""Why nothing was delivered from a partition for a while."""

from __future__ import annotations

from enum import StrEnum


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
