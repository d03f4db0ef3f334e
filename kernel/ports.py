"""Loopback ports for servers that are told their port before they bind it.

A port that the system hands out for the asking comes from the range that it also takes for outgoing connections: by
the time a JVM binds it, any client on the machine may have it. So these come from below that range.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path

LOOPBACK = "127.0.0.1"

_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_000
#: Of so many ports below the range a free one is soon found.
_CHOICE_MIN = 1_000

_random = random.SystemRandom()


def free_ports(number: int) -> list[int]:
    """Different ports on which nobody listens at this moment and which no outgoing connection will take."""
    probes: list[socket.socket] = []
    try:
        while len(probes) < number:
            probe = socket.socket()
            probes.append(probe)
            if not _bound(probe):
                probes.pop().close()
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def _bound(probe: socket.socket) -> bool:
    end = _outgoing_from()
    port = _random.randrange(_LOWEST, end) if end - _LOWEST >= _CHOICE_MIN else 0
    try:
        probe.bind((LOOPBACK, port))
    except OSError:
        if not port:
            raise
        return False
    return True


def _outgoing_from() -> int:
    """Where the range for outgoing connections begins; 0 where the system does not say."""
    try:
        return int(_OUTGOING.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 0
