"""What the two APIs of the `server` design answer when they refuse.

The meanings are those of the broker-side coordinator of 2015 (KAFKA-1334 to KAFKA-2464, never released), of which
0.9.0 gave some numbers to other errors. Where a Kafka of today has an error of the same meaning, the number is that
one's; the others have 2015's number behind 20000.
"""

from __future__ import annotations

from enum import IntEnum


class ServerError(IntEnum):
    """docs/server-protocol.md says what a member does about each."""

    UNKNOWN_SERVER_ERROR = -1  #: the coordinator failed at something that is not the member's doing
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3  #: an offset of a partition that does not exist
    OFFSET_METADATA_TOO_LARGE = 12  #: more than the broker's offset.metadata.max.bytes
    COORDINATOR_LOAD_IN_PROGRESS = 14  #: it has just become the coordinator: ask again in a moment
    COORDINATOR_NOT_AVAILABLE = 15  #: the broker stops, or could not write: look for the coordinator, ask again
    NOT_COORDINATOR = 16  #: another broker is: look for it
    ILLEGAL_GENERATION = 22  #: a commit of a generation that is over, or a generation that never was
    INCONSISTENT_GROUP_PROTOCOL = 23  #: the group id is in use by a classic group (JoinGroup)
    UNKNOWN_CONSUMER = 25  #: a commit of somebody who is no member of the generation
    INVALID_REQUEST = 42  #: an id, a number or a list that no member may send
    INCONSISTENT_STRATEGY = 20_023  #: the member insists on another strategy than the coordinator's
    UNKNOWN_STRATEGY = 20_024  #: the member insists on a strategy that this coordinator does not know
    PARTITION_NOT_ASSIGNED = 20_027  #: an offset of a partition that another member owns, or nobody
