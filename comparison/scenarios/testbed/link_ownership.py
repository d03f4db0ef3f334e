"""Which TCP connections belong to which process: how a proxy that all share can cut off one of them."""

from __future__ import annotations

import psutil


def ports_of_process(pid: int) -> frozenset[int]:
    """The local ports of a process's TCP connections; empty when it is gone."""
    try:
        connections = psutil.Process(pid).net_connections(kind="tcp")
    except psutil.NoSuchProcess:
        return frozenset()
    return frozenset(connection.laddr.port for connection in connections if connection.laddr)
