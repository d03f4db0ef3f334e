"""Which ZooKeeper a command uses: `--zookeeper embedded | docker[:3] | HOST:PORT[,HOST:PORT...][/chroot]`.

`docker` starts as many servers as the run needs, `docker:3` always an ensemble of three.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from kernel.errors import Unavailable, UserError
from kernel.zookeeper.counters import server_mode
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.servers import NUMBERS, Limits, connect_string

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator
    from pathlib import Path

    from kernel.zookeeper.servers import QuorumLinks, Server, Servers

HELP = "embedded (default), docker, docker:3, or HOST:PORT[,HOST:PORT...][/chroot] of a running one"


_DOCKER_ENSEMBLE = "docker:3"


class TargetKind(StrEnum):
    """The three kinds of `--zookeeper`."""

    EMBEDDED = "embedded"
    DOCKER = "docker"
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class ZooKeeperTarget:
    """A parsed `--zookeeper`."""

    kind: TargetKind
    addresses: tuple[tuple[str, int], ...] = ()  #: only for a running one
    chroot: str = ""  #: "" or a path that begins with a slash
    servers: int = 1  #: at least so many; only for those that are started

    @property
    def ours(self) -> bool:
        """Whether it is started for the run, so that every fault can be injected and its transaction log is at hand."""
        return self.kind is not TargetKind.RUNNING

    @property
    def connect_string(self) -> str:
        """The connect string for sessions; only for a running ZooKeeper."""
        assert self.kind is TargetKind.RUNNING
        return ",".join(f"{_bracketed(host)}:{port}" for host, port in self.addresses) + self.chroot


@dataclass(frozen=True, slots=True)
class ZooKeeperHandle:
    """A running ZooKeeper. `servers` are its processes if they are ours, for fault injection."""

    connect_string: str
    servers: tuple[Server, ...]
    kind: TargetKind
    addresses: tuple[tuple[str, int], ...]  #: of each server's client port, for the counters


def parse_target(text: str) -> ZooKeeperTarget:
    """Parse a `--zookeeper`. Raises `UserError` if it has none of the forms."""
    text = text.strip()
    if text == _DOCKER_ENSEMBLE:
        return ZooKeeperTarget(TargetKind.DOCKER, servers=len(NUMBERS))
    if text in (TargetKind.EMBEDDED, TargetKind.DOCKER):
        return ZooKeeperTarget(TargetKind(text))
    hosts, slash, rest = text.partition("/")
    chroot = f"/{rest}".rstrip("/") if slash else ""
    addresses = tuple(_address(part, text) for part in hosts.split(","))
    if "//" in chroot or any(part in (".", "..") for part in chroot.split("/")):
        raise UserError(
            f"--zookeeper {text!r}: {chroot!r} is not a valid ZooKeeper path. Use names with / between them"
        )
    return ZooKeeperTarget(TargetKind.RUNNING, addresses, chroot)


@contextmanager
def open_zookeeper(spec: str | ZooKeeperTarget, run_dir: Path) -> Iterator[ZooKeeperHandle]:
    """Start a ZooKeeper and stop it afterwards, or check that a running one serves.

    Raises `UserError` if the target is invalid, `EnvironmentFault` if it cannot be started, `Unavailable` if a running
    one does not serve.
    """
    target = parse_target(spec) if isinstance(spec, str) else spec
    if not target.ours:
        require_serving(target)
        yield ZooKeeperHandle(target.connect_string, (), target.kind, target.addresses)
        return
    started = make_servers(target, run_dir)
    started.start()
    try:
        addresses = tuple((server.host, server.client_port) for server in started.servers)
        yield ZooKeeperHandle(connect_string(started.servers), started.servers, target.kind, addresses)
    finally:
        started.stop()


def make_servers(
    target: ZooKeeperTarget,
    run_dir: Path,
    *,
    limits: Limits | None = None,
    ensemble: bool = False,
    quorum_links: QuorumLinks | None = None,
    given_up: threading.Event | None = None,
) -> Servers:
    """The servers to start for a target that is `ours`; three if it or the caller asks for an ensemble."""
    servers = len(NUMBERS) if ensemble else target.servers
    if target.kind is TargetKind.DOCKER:
        # Imported late: the client library is slow to import, and few users need it.
        from kernel.zookeeper.containers.zookeeper import DockerZooKeeper

        return DockerZooKeeper(run_dir, servers=servers, limits=limits, quorum_links=quorum_links, given_up=given_up)
    return EmbeddedZooKeeper(run_dir, servers=servers, limits=limits, quorum_links=quorum_links, given_up=given_up)


def require_serving(target: ZooKeeperTarget) -> None:
    """Raise `Unavailable` unless a server serves, or listens but does not allow four-letter words."""
    silent = []
    for host, port in target.addresses:
        if server_mode(host, port) is not None or _listens(host, port):
            return
        silent.append(f"{host}:{port}")
    raise Unavailable(
        f"no ZooKeeper serves at {', '.join(silent)}. Is it running, and is the address right? "
        "Without --zookeeper, an embedded one is started."
    )


def _listens(host: str, port: int) -> bool:
    """Whether a server responds but does not allow `srvr`; one that allows it and says nothing does not serve."""
    from kernel.zookeeper.counters import four_letter

    try:
        return "not in the whitelist" in four_letter(host, port, "srvr")
    except Unavailable:
        return False


def _address(part: str, text: str) -> tuple[str, int]:
    found = re.fullmatch(r"\s*(?:\[([0-9a-fA-F:.]+)\]|([\w.-]+))(?::(\d{1,5}))?\s*", part, re.ASCII)
    if found is None:
        raise UserError(f"--zookeeper {text!r}: {part!r} is not HOST:PORT. Give {HELP}")
    if found.group(3) is None:
        raise UserError(f"--zookeeper {text!r}: {part!r} has no port. Add it; ZooKeeper's own default is 2181")
    port = int(found.group(3))
    if not 0 < port < 65536:
        raise UserError(f"--zookeeper {text!r}: {port} is not a port. Use 1 to 65535")
    return found.group(1) or found.group(2), port


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
