"""Choose free loopback ports for servers that must know their port before they bind it.

A port chosen by the system comes from the range that it also uses for outgoing connections, so any client on the
machine may take it before a JVM binds it. These ports come from below that range.

A server that is stopped and started again needs its port again. `ReservedPorts` keeps it for as long.
"""

from __future__ import annotations

import errno
import random
import socket
import sys
from pathlib import Path

from kernel.errors import EnvironmentFault

LOOPBACK = "127.0.0.1"

_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_000
#: With this many ports below the range, a free one is found quickly.
_CHOICE_MIN = 1_000

#: How long a connection to ourselves may take.
_LOOPBACK_S = 5.0
#: Why a port cannot be bound although others can.
_TAKEN = frozenset({errno.EADDRINUSE, errno.EACCES})

#: Whether `ReservedPorts` can keep ports on this system.
KEPT = sys.platform == "linux"

_random = random.SystemRandom()


class ReservedPorts:
    """Distinct free ports that nobody else gets until `release`; on systems other than Linux they are only free now.

    A socket is bound to each, and does not listen, so that connections are refused while no server does. Linux lets
    servers listen beside it if they set SO_REUSEADDR, as those of asyncio and Java do.
    """

    def __init__(self, number: int) -> None:
        self._sockets: list[socket.socket] = []
        try:
            while len(self._sockets) < number:
                probe = socket.socket()
                self._sockets.append(probe)
                if not _bound(probe):
                    self._sockets.pop().close()
            self.numbers = [int(probe.getsockname()[1]) for probe in self._sockets]
        except BaseException:
            self.release()
            raise
        for probe in self._sockets:  # only now: two sockets that have it both get the port
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if not KEPT:
            self.release()

    def release(self) -> None:
        """Release the ports. Idempotent."""
        while self._sockets:
            self._sockets.pop().close()


def free_ports(number: int) -> list[int]:
    """Distinct ports that are free now and that no outgoing connection will take."""
    reserved = ReservedPorts(number)
    reserved.release()
    return reserved.numbers


def require_loopback() -> None:
    """Raise `EnvironmentFault` if this machine's programs cannot reach each other on its loopback address."""
    try:
        with socket.socket() as listener, socket.socket() as client:
            listener.bind((LOOPBACK, 0))  # Linux lets bind even while the interface is down
            listener.listen(1)
            client.settimeout(_LOOPBACK_S)
            client.connect(listener.getsockname())
    except OSError as error:
        raise EnvironmentFault(
            f"{LOOPBACK} cannot be used: {error.strerror or error}. Bring the loopback interface up, as "
            "`ip link set lo up` does"
        ) from error


def _bound(probe: socket.socket) -> bool:
    end = _outgoing_from()
    port = _random.randrange(_LOWEST, end) if end - _LOWEST >= _CHOICE_MIN else 0
    try:
        probe.bind((LOOPBACK, port))
    except OSError as error:
        if not port or error.errno not in _TAKEN:
            raise
        return False
    return True


def _outgoing_from() -> int:
    """The first port of the range for outgoing connections; 0 if unknown."""
    try:
        return int(_OUTGOING.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 0
