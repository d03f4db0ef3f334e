"""What a served connection is at."""

from __future__ import annotations

from enum import Enum


class ConnectionState(Enum):
    """One at a time."""

    QUIET = "nothing is at work, nothing is kept"
    PARTIAL = "nothing is at work, the beginning of a frame is kept"
    QUEUED = "a request, or a long row of heartbeats, waits for its turn"
    WAITING = "a request waits for its answer"
    UNREAD = "the client does not read its answers"
    CLOSED = "closed, or closing once everything is sent"


# Names of their own: they are looked at several times for each request.
QUIET, PARTIAL, QUEUED, WAITING, UNREAD, CLOSED = ConnectionState
