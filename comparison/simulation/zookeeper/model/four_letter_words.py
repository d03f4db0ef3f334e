"""The words that monitors ask a server: `ruok`, `srvr` and `mntr`, with the figures that the lab reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from comparison.simulation.zookeeper.model.server import Server
    from comparison.simulation.zookeeper.model.tree import DataTree

WORDS = ("ruok", "srvr", "mntr")
_VERSION = "3.9.5"
_NOT_SERVING = "This ZooKeeper instance is not currently serving requests\n"


def four_letter_word(server: Server, word: str) -> str:
    """A server's answer to one of `WORDS`."""
    if word == "ruok":
        return "imok"
    if server.mode is None:
        return _NOT_SERVING
    return _srvr(server) if word == "srvr" else _mntr(server)


def _count(tree: DataTree) -> int:
    """A server has its root twice: as "/" and as "", its children's parent."""
    return len(tree.nodes) + 1


def _srvr(server: Server) -> str:
    clients, tree = server.clients, server.history.tree
    lines = [
        f"Zookeeper version: {_VERSION}",
        f"Received: {clients.received}",
        f"Sent: {clients.sent}",
        f"Connections: {clients.connection_count}",
        f"Outstanding: {clients.outstanding}",
        f"Zxid: 0x{tree.applied:x}",
        f"Mode: {server.mode}",
        f"Node count: {_count(tree)}",
    ]
    return "".join(f"{line}\n" for line in lines)


def _mntr(server: Server) -> str:
    clients, tree = server.clients, server.history.tree
    figures: dict[str, object] = {
        "version": _VERSION,
        "server_state": server.mode,
        "packets_received": clients.received,
        "packets_sent": clients.sent,
        "num_alive_connections": clients.connection_count,
        "outstanding_requests": clients.outstanding,
        "znode_count": _count(tree),
        "ephemerals_count": tree.ephemeral_count,
        "watch_count": len(clients.watches),
    }
    for kind, counts in (("read", tree.reads), ("write", tree.writes)):
        figures |= {f"cnt_{namespace}_{kind}_per_namespace": number for namespace, number in counts.items()}
    return "".join(f"zk_{name}\t{figure}\n" for name, figure in figures.items())
