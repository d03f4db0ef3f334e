"""Which ZooKeeper a command uses: `--zookeeper embedded | docker | HOST:PORT[,HOST:PORT...][/chroot]`."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from kernel.errors import Unavailable, UserError
from kernel.zookeeper.counters import server_mode
from kernel.zookeeper.embedded import EmbeddedZooKeeper, ZooKeeperEnsemble

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator
    from pathlib import Path

    from kernel.zookeeper.server import ServerProcess

HELP = "embedded (default), docker, or HOST:PORT[,HOST:PORT...][/chroot] of one that runs"


class TargetKind(StrEnum):
    """Where the ZooKeeper comes from."""

    EMBEDDED = "embedded"
    DOCKER = "docker"
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class ZooKeeperTarget:
    """A parsed `--zookeeper`."""

    kind: TargetKind
    addresses: tuple[tuple[str, int], ...] = ()  #: of a running one
    chroot: str = ""  #: "" or a path that begins with a slash

    @property
    def connect_string(self) -> str:
        """What a session is opened with; only for a running ZooKeeper."""
        assert self.kind is TargetKind.RUNNING
        return ",".join(f"{_bracketed(host)}:{port}" for host, port in self.addresses) + self.chroot


@dataclass(frozen=True, slots=True)
class ZooKeeperHandle:
    """A ZooKeeper that serves. `servers` are the processes, where they are ours to do faults to."""

    connect_string: str
    servers: tuple[ServerProcess, ...]
    kind: TargetKind
    addresses: tuple[tuple[str, int], ...]  #: of each server's client port, for the counters


def parse_target(text: str) -> ZooKeeperTarget:
    """Raises `UserError`, with what is wrong, for anything that is not of the three forms."""
    text = text.strip()
    if text in (TargetKind.EMBEDDED, TargetKind.DOCKER):
        return ZooKeeperTarget(TargetKind(text))
    hosts, slash, rest = text.partition("/")
    chroot = f"/{rest}".rstrip("/") if slash else ""
    addresses = tuple(_address(part, text) for part in hosts.split(","))
    if "//" in chroot or any(part in (".", "..") for part in chroot.split("/")):
        raise UserError(f"--zookeeper {text!r}: {chroot!r} is not a path that ZooKeeper could have")
    return ZooKeeperTarget(TargetKind.RUNNING, addresses, chroot)


@contextmanager
def open_zookeeper(
    spec: str | ZooKeeperTarget, run_dir: Path, *, ensemble: bool = False, given_up: threading.Event | None = None
) -> Iterator[ZooKeeperHandle]:
    """Start what the target asks for, or check that a running one answers; stop afterwards what was started.

    `ensemble` asks for three servers where we start them. Raises `UserError` for a target that makes no
    sense, `EnvironmentFault` when one cannot be started here, `Unavailable` when a running one does not serve,
    `StartGivenUp` when another thread sets `given_up` while an embedded one starts.
    """
    target = parse_target(spec) if isinstance(spec, str) else spec
    match target.kind:
        case TargetKind.RUNNING:
            require_serving(target)
            yield ZooKeeperHandle(target.connect_string, (), target.kind, target.addresses)
        case TargetKind.EMBEDDED:
            kind = ZooKeeperEnsemble if ensemble else EmbeddedZooKeeper
            with kind(run_dir, given_up=given_up) as embedded:
                addresses = tuple(("127.0.0.1", server.client_port) for server in embedded.servers)
                yield ZooKeeperHandle(embedded.connect_string, embedded.servers, target.kind, addresses)
        case TargetKind.DOCKER:
            # Only here: most users have neither an engine nor the client library's start-up time to spare.
            from kernel.zookeeper.container import DockerZooKeeper

            with DockerZooKeeper() as container:
                yield ZooKeeperHandle(container.connect_string, (), target.kind, container.addresses)


def require_serving(target: ZooKeeperTarget) -> None:
    """Raise `Unavailable` unless a server serves, or listens where four-letter words are not allowed."""
    silent = []
    for host, port in target.addresses:
        if server_mode(host, port) is not None or _listens(host, port):
            return
        silent.append(f"{host}:{port}")
    raise Unavailable(
        f"no ZooKeeper serves at {', '.join(silent)}: is it running, is the address right? "
        "Without --zookeeper, an embedded one is started."
    )


def _listens(host: str, port: int) -> bool:
    """Whether a server is there that does not allow `srvr`; one that allows it and says nothing is not serving."""
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
        raise UserError(f"--zookeeper {text!r}: {part!r} has no port (ZooKeeper's own default is 2181)")
    port = int(found.group(3))
    if not 0 < port < 65536:
        raise UserError(f"--zookeeper {text!r}: {port} is not a port (1 to 65535)")
    return found.group(1) or found.group(2), port


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
