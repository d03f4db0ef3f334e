"""Spark's master: which addresses are supported, and whether anybody is there, before a JVM is started for it."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from kernel.errors import EnvironmentFault, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.pipeline.spark.options import SparkOptions

CONNECT_TIMEOUT_S = 5.0
#: Where a server of Spark Connect listens unless it is told otherwise.
CONNECT_PORT = 15002
SUPPORTED = (
    "Use local[*], local[N], local-cluster[EXECUTORS,CORES,MB], spark://HOST:PORT, sc://HOST:PORT (Spark Connect), "
    "k8s://https://HOST:PORT, or yarn with HADOOP_CONF_DIR"
)

_LOCAL = re.compile(r"local(?:\[(?P<cores>\*|[1-9][0-9]{0,5})(?:,\s*[1-9][0-9]{0,5})?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*([1-9][0-9]{0,5})\s*,\s*([1-9][0-9]{0,5})\s*,\s*[1-9][0-9]{0,5}\s*\]")
_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:]+\]|[^\s:/,\[\]]+):(?P<port>[0-9]{1,5})")


class MasterKind(Enum):
    LOCAL = "local"  #: tasks run in the driver's JVM
    LOCAL_CLUSTER = "local-cluster"  #: executors are processes on this machine
    STANDALONE = "standalone"
    YARN = "yarn"
    KUBERNETES = "k8s"
    CONNECT = "sc"  #: a server of Spark Connect has the driver


_SERVERS = {MasterKind.CONNECT: "Spark Connect server", MasterKind.KUBERNETES: "Kubernetes API server"}


@dataclass(frozen=True, slots=True)
class Master:
    """A master's URL, understood."""

    url: str
    kind: MasterKind
    cores: int | None = None  #: None if only the cluster knows
    addresses: tuple[tuple[str, int], ...] = ()

    @property
    def is_local(self) -> bool:
        return self.kind is MasterKind.LOCAL


def parse_master(url: str) -> Master:
    """Raises EnvironmentFault for a URL that is wrong or not supported."""
    if parts := _LOCAL.fullmatch(url):
        cores = parts["cores"] or "1"
        return Master(url, MasterKind.LOCAL, _cores_here() if cores == "*" else int(cores))
    if parts := _LOCAL_CLUSTER.fullmatch(url):
        return Master(url, MasterKind.LOCAL_CLUSTER, int(parts[1]) * int(parts[2]))
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "spark":
        return Master(url, MasterKind.STANDALONE, addresses=_addresses(url, rest))
    if separator and scheme == "sc":
        place = rest.partition("/")[0]
        return Master(
            url, MasterKind.CONNECT, addresses=_addresses(url, place if ":" in place else f"{place}:{CONNECT_PORT}")
        )
    if separator and scheme == "k8s":
        return Master(url, MasterKind.KUBERNETES, addresses=_addresses(url, rest.rpartition("://")[2]))
    if url == "yarn":
        if not any(os.environ.get(name) for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR")):
            raise EnvironmentFault("the Spark master is yarn. Set HADOOP_CONF_DIR to the folder of Hadoop's settings")
        return Master(url, MasterKind.YARN)
    raise EnvironmentFault(f"the Spark master {url!r} is not supported. {SUPPORTED}")


def _cores_here() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _addresses(url: str, rest: str) -> tuple[tuple[str, int], ...]:
    found = []
    for each in rest.split(","):
        parts = _ADDRESS.fullmatch(each)
        if parts is None or not 0 < int(parts["port"]) <= 65_535:
            raise EnvironmentFault(f"the Spark master {url!r} is malformed. Use {url.rpartition('://')[0]}://HOST:PORT")
        found.append((parts["host"].strip("[]"), int(parts["port"])))
    return tuple(found)


def check_reachable(master: Master, options: SparkOptions) -> None:
    """Raises Unavailable if nobody listens at a standalone master's address, EnvironmentFault if its workers could not
    answer.
    """
    if not master.addresses:
        return
    reached = _first_listening(master)
    if master.kind is MasterKind.CONNECT:
        return
    if options.driver_host is None and not ipaddress.ip_address(reached).is_loopback:
        raise EnvironmentFault(
            f"executors of {master.url} cannot reach a driver on loopback. Give --driver-host, the address of this "
            "machine as they see it"
        )


def _first_listening(master: Master) -> str:
    """The IP address of the first master that listens; of several, one is active and the others stand by."""
    complaints = []
    for host, port in master.addresses:
        try:
            with socket.create_connection((host, port), _each_s(master.addresses)) as connection:
                return str(connection.getpeername()[0]).partition("%")[0]
        except OSError as error:
            complaints.append(f"{host}:{port}: {error.strerror or 'no answer'}")
    server = _SERVERS.get(master.kind, "Spark master")
    raise Unavailable(
        f"no {server} at {master.url} ({'; '.join(complaints)}). Start it, or correct --master; "
        "without --master the analysis runs on this machine"
    )


def _each_s(addresses: Sequence[object]) -> float:
    """A time limit for each, so that all together stay below two of them."""
    return max(1.0, 2 * CONNECT_TIMEOUT_S / (len(addresses) + 1))
