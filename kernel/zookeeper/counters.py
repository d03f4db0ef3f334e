"""Read a server's four-letter words, and the counters against which a trace is checked.

In `mntr` of 3.9, only the per-namespace counters count just operations: each successful operation, by the first
component of its path (with a chroot, the chroot's first component), without pings and failed operations. Latencies and
packet counts include pings. `Counters` says how the counters relate to traced operations.
"""

from __future__ import annotations

import re
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The longest response, `mntr`, has some lines for each first component of a path.
RESPONSE_MAX = 4 << 20
_PER_NAMESPACE = re.compile(r"zk_cnt_(.+)_(read|write)_per_namespace")


@dataclass(frozen=True, slots=True)
class Counters:
    """A snapshot of a server's counters.

    `per_namespace` maps the first component of a path to (reads, writes). Reads are the successful getData, exists
    and getChildren that this server answered. Writes are the changes that it *applied*. Each server of an ensemble
    applies all changes; each part of a transaction counts, and so does each ephemeral znode that is deleted with its
    session. `sync` is not counted.
    """

    mode: str  #: standalone, leader, follower; "" while the server does not serve
    per_namespace: Mapping[str, tuple[int, int]]
    watch_count: int


def four_letter(host: str, port: int, word: str, *, timeout_s: float = 3.0) -> str:
    """Send one of ZooKeeper's four-letter words and return the whole response.

    Raises `Unavailable` if no server responds within the timeout, or the response is too long to be one.
    """
    deadline_s = time.monotonic() + timeout_s
    response = bytearray()
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as connection:
            connection.sendall(word.encode("ascii"))
            while chunk := connection.recv(65536):
                response += chunk
                if len(response) > RESPONSE_MAX:
                    raise Unavailable(
                        f"what answers {word!r} at {host}:{port} is no ZooKeeper: it sends more than {RESPONSE_MAX} "
                        "bytes. Is the address right?"
                    )
                # The timeout is for all of it, not for each byte.
                connection.settimeout(max(0.001, deadline_s - time.monotonic()))
    except OSError as error:
        raise Unavailable(f"no ZooKeeper answers {word!r} at {host}:{port}: {error}") from error
    return response.decode("utf-8", "replace")


def server_mode(host: str, port: int, *, timeout_s: float = 3.0) -> str | None:
    """standalone, leader or follower; None while the server is down or does not serve (no quorum)."""
    try:
        answer = four_letter(host, port, "srvr", timeout_s=timeout_s)
    except Unavailable:
        return None
    found = re.search(r"^Mode: (\w+)", answer, re.MULTILINE)
    return found.group(1) if found else None


def read_counters(host: str, port: int, *, timeout_s: float = 3.0) -> Counters:
    """Read the counters of a server with `mntr`.

    Raises `Unavailable` if the server does not respond or does not allow the word (4lw.commands.whitelist).
    """
    return counters_in(four_letter(host, port, "mntr", timeout_s=timeout_s), f"{host}:{port}")


def counters_in(answer: str, address: str) -> Counters:
    """The counters in a response to `mntr`. Raises `Unavailable` if the server at this address does not report them."""
    raw = dict(line.split("\t", 1) for line in answer.splitlines() if "\t" in line)
    if "zk_server_state" not in raw:
        raise Unavailable(
            f"ZooKeeper at {address} does not report its counters ({answer.strip() or 'empty answer'}): "
            "is mntr in its 4lw.commands.whitelist?"
        )
    return Counters(
        mode=raw["zk_server_state"],
        per_namespace=_per_namespace(raw),
        watch_count=int(float(raw.get("zk_watch_count", "0"))),
    )


def _per_namespace(raw: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    counted: dict[str, dict[str, int]] = {}
    for name, value in raw.items():
        if found := _PER_NAMESPACE.fullmatch(name):
            counted.setdefault(found.group(1), {})[found.group(2)] = int(float(value))
    return {namespace: (by_kind.get("read", 0), by_kind.get("write", 0)) for namespace, by_kind in counted.items()}
