"""Maps TCP connections to processes, so that a shared proxy can cut off one process."""

from __future__ import annotations

import psutil


def ports_of_process(pid: int) -> frozenset[int]:
    """The local ports of a process's TCP connections; empty if it has ended."""
    try:
        connections = psutil.Process(pid).net_connections(kind="tcp")
    except psutil.NoSuchProcess:
        return frozenset()
    return frozenset(connection.laddr.port for connection in connections if connection.laddr)
