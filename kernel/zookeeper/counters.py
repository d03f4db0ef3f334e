"""What a server says of itself: the four-letter words, and the counters that a trace is checked against.

Of `mntr`, on 3.9, the per-namespace counters are the ones that count operations and nothing else: one for
each successful operation, by the first component of the path (under a chroot that is the chroot's first
component), without pings and without operations that failed. All latencies and packet counts include pings.
See `Counters` for how they map to traced operations.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kernel.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PER_NAMESPACE = re.compile(r"zk_cnt_(.+)_(read|write)_per_namespace")

#: What a watch can see, by the names of the trace's `zk_notified`.
WATCH_EVENTS = ("created", "changed", "children", "deleted")


@dataclass(frozen=True, slots=True)
class Counters:
    """One server's counters, at one moment.

    `per_namespace` maps the first component of a path to (reads, writes). Reads are successful getData,
    exists and getChildren that this server answered. Writes are changes that this server *applied*: every
    member of an ensemble applies every change, a part of a transaction counts for itself, and so does every
    ephemeral znode that a closing or expiring session takes along. `sync` counts nowhere.

    `watches_fired` maps created, changed, children and deleted to how many watches this server has fired.
    Each is one notification, but for deleted: a session that watches a znode's data and its children has two
    watches fired by its deletion and gets one notification.
    """

    mode: str  #: standalone, leader, follower; "" while the server does not serve
    per_namespace: Mapping[str, tuple[int, int]]
    watch_count: int
    watches_fired: Mapping[str, int]
    sessions: int
    znodes: int
    ephemerals: int
    raw: Mapping[str, str] = field(repr=False)

    def of(self, namespace: str) -> tuple[int, int]:
        """(reads, writes) below the first path component `namespace`; zeros when nothing happened there."""
        return self.per_namespace.get(namespace.strip("/"), (0, 0))


def totals(servers: Iterable[Counters]) -> dict[str, tuple[int, int]]:
    """(reads, writes) of a whole ensemble by namespace: each read was answered once, each write applied by all.

    A server that was cut off or stopped has applied fewer; the one that has applied most tells.
    """
    summed: dict[str, tuple[int, int]] = {}
    for counters in servers:
        for namespace, (reads, writes) in counters.per_namespace.items():
            reads_before, writes_before = summed.get(namespace, (0, 0))
            summed[namespace] = (reads_before + reads, max(writes_before, writes))
    return summed


def four_letter(host: str, port: int, word: str, *, timeout_s: float = 3.0) -> str:
    """Send one of ZooKeeper's four-letter words and return the whole answer.

    Raises `Unavailable` when nobody answers within the timeout.
    """
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as connection:
            connection.sendall(word.encode("ascii"))
            chunks = []
            while chunk := connection.recv(65536):
                chunks.append(chunk)
    except OSError as error:
        raise Unavailable(f"no ZooKeeper answers {word!r} at {host}:{port}: {error}") from error
    return b"".join(chunks).decode("utf-8", "replace")


def server_mode(host: str, port: int, *, timeout_s: float = 3.0) -> str | None:
    """standalone, leader or follower; None while the server is up and does not serve (no quorum), or is down."""
    try:
        answer = four_letter(host, port, "srvr", timeout_s=timeout_s)
    except Unavailable:
        return None
    found = re.search(r"^Mode: (\w+)", answer, re.MULTILINE)
    return found.group(1) if found else None


def read_counters(host: str, port: int, *, timeout_s: float = 3.0) -> Counters:
    """Ask a server for `mntr`.

    Raises `Unavailable` when nobody answers, or when the server does not allow the word
    (4lw.commands.whitelist must name it).
    """
    answer = four_letter(host, port, "mntr", timeout_s=timeout_s)
    raw = dict(line.split("\t", 1) for line in answer.splitlines() if "\t" in line)
    if "zk_server_state" not in raw:
        raise Unavailable(
            f"ZooKeeper at {host}:{port} does not tell its counters ({answer.strip() or 'empty answer'}): "
            "is mntr in its 4lw.commands.whitelist?"
        )
    return Counters(
        mode=raw["zk_server_state"],
        per_namespace=_per_namespace(raw),
        watch_count=_whole(raw, "zk_watch_count"),
        watches_fired={event: _whole(raw, f"zk_sum_node_{event}_watch_count") for event in WATCH_EVENTS},
        sessions=_whole(raw, "zk_num_alive_connections"),
        znodes=_whole(raw, "zk_znode_count"),
        ephemerals=_whole(raw, "zk_ephemerals_count"),
        raw=raw,
    )


def _per_namespace(raw: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    counted: dict[str, dict[str, int]] = {}
    for name, value in raw.items():
        if found := _PER_NAMESPACE.fullmatch(name):
            counted.setdefault(found.group(1), {})[found.group(2)] = int(float(value))
    return {namespace: (by_kind.get("read", 0), by_kind.get("write", 0)) for namespace, by_kind in counted.items()}


def _whole(raw: Mapping[str, str], name: str) -> int:
    return int(float(raw.get(name, "0")))
