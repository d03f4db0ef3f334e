"""Choose free loopback ports for servers that must know their port before they bind it.

A port chosen by the system comes from the range that it also uses for outgoing connections, so any client on the
machine may take it before a JVM binds it. These ports come from below that range.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path

LOOPBACK = "127.0.0.1"

_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_000
#: With this many ports below the range, a free one is found quickly.
_CHOICE_MIN = 1_000

_random = random.SystemRandom()


def free_ports(number: int) -> list[int]:
    """Distinct ports that are free now and that no outgoing connection will take."""
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
    """The first port of the range for outgoing connections; 0 if unknown."""
    try:
        return int(_OUTGOING.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 0
