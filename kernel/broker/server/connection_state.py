"""The states of a served connection."""

from __future__ import annotations

from enum import Enum


class ConnectionState(Enum):
    """What a connection is waiting for."""

    IDLE = "no request is pending, no bytes are buffered"
    PARTIAL = "no request is pending, part of a frame is buffered"
    QUEUED = "a request, or a long run of heartbeats, waits for its turn of the loop"
    WAITING = "a request waits for its response"
    UNREAD = "the client does not read its responses"
    CLOSED = "closed, or closing once everything has been sent"


# Module-level names: each request compares them several times.
IDLE, PARTIAL, QUEUED, WAITING, UNREAD, CLOSED = ConnectionState
