"""Error codes of the two APIs of the `server` design.

The meanings are those of the broker-side coordinator of 2015 (KAFKA-1334 to KAFKA-2464, never released); 0.9.0 reused
some of its numbers for other errors. An error that today's Kafka also has uses today's number; the others use 2015's
number plus 20000.
"""

from __future__ import annotations

from enum import IntEnum


class ServerError(IntEnum):
    """docs/server-protocol.md says what a member does about each."""

    UNKNOWN_SERVER_ERROR = -1  #: the coordinator failed; the member is not at fault
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3  #: an offset of a partition that does not exist
    OFFSET_METADATA_TOO_LARGE = 12  #: more than the broker's offset.metadata.max.bytes
    COORDINATOR_LOAD_IN_PROGRESS = 14  #: the coordinator is loading the group: retry soon
    COORDINATOR_NOT_AVAILABLE = 15  #: the broker is stopping, or could not write: find the coordinator and retry
    NOT_COORDINATOR = 16  #: another broker coordinates the group: find it
    ILLEGAL_GENERATION = 22  #: a commit in a generation that is over, or a generation that never existed
    INCONSISTENT_GROUP_PROTOCOL = 23  #: the group id is in use by a classic group (JoinGroup)
    UNKNOWN_CONSUMER = 25  #: a commit by a consumer that is not a member of the generation
    INVALID_REQUEST = 42  #: an id, a number or a list that no member may send
    INCONSISTENT_STRATEGY = 20_023  #: the member requires another strategy than the coordinator's
    UNKNOWN_STRATEGY = 20_024  #: the member requires a strategy that this coordinator does not know
    PARTITION_NOT_ASSIGNED = 20_027  #: an offset of a partition that the sender does not own
