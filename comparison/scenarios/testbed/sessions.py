"""Ends a ZooKeeper session from outside, knowing only its id.

A server makes a session's password from its id, with Java's random numbers (`ZooKeeperServer.generatePasswd` of
ZooKeeper 3.9), so whoever knows the id can take the session over, and close it.
"""

from __future__ import annotations

import struct

from kernel.errors import Unavailable
from kernel.runtime import REAL, Runtime
from kernel.zookeeper.end_session import SessionCredentials, end_session

_SUPER_SECRET = 0xB3415C00
_PASSWORD_BYTES = 16
#: `java.util.Random`, a linear congruence over 48 bits.
_MULTIPLIER, _ADDEND, _MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1
_TIMEOUT_S = 10.0


def password_of(session_id: int) -> bytes:
    """The password that every server makes for a session."""
    seed = ((session_id ^ _SUPER_SECRET) ^ _MULTIPLIER) & _MASK
    words = []
    for _ in range(_PASSWORD_BYTES // 4):
        seed = (seed * _MULTIPLIER + _ADDEND) & _MASK
        words.append(seed >> 16)
    return struct.pack("<4I", *words)


async def expire_from_outside(connect_string: str, session_id: int, runtime: Runtime = REAL) -> None:
    """End a session: its ephemeral znodes are deleted, and its client learns that it has expired.

    Raises `Unavailable` if no server confirms it.
    """
    signed = session_id - (1 << 64) if session_id >= 1 << 63 else session_id
    credentials = SessionCredentials(signed, password_of(signed))
    if not await runtime.edge(end_session)(connect_string, credentials, timeout_s=_TIMEOUT_S):
        raise Unavailable(f"no server at {connect_string} ended session 0x{session_id:x}")
