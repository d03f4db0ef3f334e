"""Real Kafka brokers as child processes on loopback, without Kafka's scripts. They end with us.

    with RealBroker("1.1.1", folder, zookeeper=chroot) as broker:
        broker.create_topic("t", 4)
        broker.bootstrap, broker.port, broker.node_id

0.8.2.2, 1.1.1 and 3.9.1 need a ZooKeeper (a missing chroot is created); 4.1.1 is broker and controller in one and takes
none. A broker is ready when it is in its own Metadata response: it answers ApiVersions before it has registered in
ZooKeeper, and creating topics fails until then. Settings have Kafka's names and override those here. The log is
`<folder>/broker.log`.
"""

from __future__ import annotations

import base64
import json
import socket
import struct
import subprocess
import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

from comparison.originals import jars
from comparison.originals.java import OPTIONS, logging_options
from kernel.errors import EnvironmentFault, Unavailable, UserError
from kernel.platform.jre import find_java
from kernel.platform.ports import LOOPBACK, free_ports
from kernel.platform.processes import start_child, stop_child
from kernel.waiting import WaitTimeout, wait_until
from kernel.wire.codec import decode_response, encode_request
from kernel.wire.errors import ErrorCode, error_name
from kernel.wire.versions import Api
from kernel.zookeeper import paths
from kernel.zookeeper.chroot import split_chroot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

#: Usually about a second, three for 4.1.1.
_START_S = 90.0
_ANSWER_S = 60.0
#: A broker that is starting may accept a connection and not answer.
_SERVING_S = 5.0
_STOP_S = 10.0

#: The heap that each version needs, and the versions that take no ZooKeeper.
_HEAP_MB = {"0.8.2.2": 192, "1.1.1": 256, "3.9.1": 320, "4.1.1": 384}
_WITHOUT_ZOOKEEPER = ("4.1.1",)

#: One node, few threads, no waiting for other brokers, no automatic topics.
_SETTINGS = {
    "auto.create.topics.enable": "false",
    "log.cleaner.enable": "false",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "num.io.threads": "2",
    "num.network.threads": "2",
}
_SINCE_1_0 = {
    "group.initial.rebalance.delay.ms": "0",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
}
_SINCE_4_0 = {
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
}


class RealBroker:
    """One broker; `with` starts and stops it. `start` after `stop` or `kill` keeps its port and data."""

    def __init__(
        self,
        version: str,
        folder: Path,
        *,
        zookeeper: str | None = None,
        node_id: int = 1,
        settings: Mapping[str, str] | None = None,
        java_options: Sequence[str] = (),
    ) -> None:
        """`java_options` replace ours, which are for a quick start and little memory, including the heap."""
        if version not in jars.VERSIONS:
            raise UserError(f"no broker {version}. Use one of {', '.join(jars.VERSIONS)}")
        if (zookeeper is None) != (version in _WITHOUT_ZOOKEEPER):
            raise UserError(f"{version} takes {'no' if version in _WITHOUT_ZOOKEEPER else 'a'} ZooKeeper")
        self.version = version
        self.folder = folder
        self.zookeeper = zookeeper
        self.node_id = node_id
        self.port, self._controller_port = free_ports(2)
        self.log_path = folder / "broker.log"
        self._settings = {**self._own_settings(), **(settings or {})}
        self._java_options = java_options or (f"-Xmx{_HEAP_MB[version]}m", *OPTIONS)
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._child is not None, "the broker was not started"
        return self._child.pid

    # -- life --------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start the broker and wait until it has joined its cluster.

        Raises `OriginalsUnavailable`, `EnvironmentFault` when it does not start (with the end of its log), and
        `Unavailable` when no ZooKeeper answers.
        """
        (self.folder / "logs").mkdir(parents=True, exist_ok=True)
        file = self.folder / "server.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in self._settings.items()), encoding="utf-8")
        if self.version in _WITHOUT_ZOOKEEPER and not any((self.folder / "logs").iterdir()):
            self._format()
        if self.zookeeper is not None:
            # The previous process's node stays for a session timeout, and a broker that finds it fails.
            wait_until(lambda: not self._registered(), _START_S, f"the old node of broker {self.node_id} to expire")
        self._child = self._launch("kafka.Kafka", str(file))
        try:
            wait_until(self._serving, _START_S, f"Kafka {self.version} to serve")
        except WaitTimeout:
            raise self._failed(f"does not serve after {_START_S:g} s") from None
        return self

    def stop(self) -> None:
        """SIGTERM, then SIGKILL after ten seconds. Idempotent."""
        if self._child is not None:
            stop_child(self._child, grace_s=_STOP_S)

    def kill(self) -> None:
        """SIGKILL; its node stays in ZooKeeper until its session expires. Idempotent."""
        assert self._child is not None, "the broker was not started"
        self._child.kill()
        self._child.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- topics ------------------------------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int, *, brokers: Sequence[int] = ()) -> None:
        """Create a topic with one replica per partition, round-robin on `brokers` (default: this one), and wait."""
        placed = brokers or (self.node_id,)
        replicas = {partition: placed[partition % len(placed)] for partition in range(partitions)}
        if self.zookeeper is None:
            self._create_by_request(name, replicas)
        else:
            self._create_by_znode(name, replicas)
        wait_until(
            lambda: set(self.leaders(name)) == set(replicas), 30, f"leaders of all {partitions} partitions of {name}"
        )

    def leaders(self, topic: str) -> dict[int, int]:
        """{partition: leader} of the partitions with a leader, from this broker's metadata. Raises OSError."""
        answer = self._ask(Api.Metadata, 0, {"topics": [{"name": topic}]})
        (found,) = answer.topics
        return {
            p.partition_index: p.leader_id for p in found.partitions if p.leader_id >= 0 and p.error_code.value == 0
        }

    def _create_by_znode(self, name: str, replicas: Mapping[int, int]) -> None:
        """Write the nodes that Kafka's own tool writes; the controller elects the leaders."""
        body = {"version": 1, "partitions": {str(partition): [node] for partition, node in replicas.items()}}
        with self._zookeeper_client() as (client, root):
            client.create(root + paths.topic(name), json.dumps(body, separators=(",", ":")).encode())

    def _create_by_request(self, name: str, replicas: Mapping[int, int]) -> None:
        assignments = [{"partition_index": p, "broker_ids": [node]} for p, node in replicas.items()]
        wanted = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": assignments}
        answer = self._ask(Api.CreateTopics, 2, {"topics": [wanted], "timeout": 10_000})
        refused = [error_name(topic.error_code) for topic in answer.topics if topic.error_code is not ErrorCode.none]
        if refused:
            raise UserError(f"Kafka {self.version} refused to create topic {name}: {refused[0]}")

    # -- inside ------------------------------------------------------------------------------------------------------

    def _own_settings(self) -> dict[str, str]:
        settings = {**_SETTINGS, "log.dirs": str(self.folder / "logs")}
        listener = f"PLAINTEXT://{LOOPBACK}:{self.port}"
        if self.version == "0.8.2.2":
            settings |= {"host.name": LOOPBACK, "port": str(self.port)}
        else:
            settings |= {**_SINCE_1_0, "listeners": listener}
        if self.zookeeper is not None:
            return settings | {
                "broker.id": str(self.node_id),
                "zookeeper.connect": self.zookeeper,
                "zookeeper.connection.timeout.ms": "30000",
                "zookeeper.session.timeout.ms": "30000",  # no pause of a busy machine ends it
            }
        return settings | {
            **_SINCE_4_0,
            "process.roles": "broker,controller",
            "node.id": str(self.node_id),
            "controller.quorum.voters": f"{self.node_id}@{LOOPBACK}:{self._controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{listener},CONTROLLER://{LOOPBACK}:{self._controller_port}",
            "advertised.listeners": listener,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }

    def _launch(self, *arguments: str) -> subprocess.Popen[bytes]:
        class_path = ":".join(str(jar) for jar in jars.class_path(self.version))
        options = [*self._java_options, *logging_options("WARN")]
        with self.log_path.open("ab") as log:
            return start_child(
                [str(find_java().path), *options, "-cp", class_path, *arguments],
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )

    def _format(self) -> None:
        """Create a cluster id and an empty metadata log, which KRaft needs to start."""
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        child = self._launch(
            "kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "--config=server.properties"
        )
        try:
            code = child.wait(_START_S)
        except subprocess.TimeoutExpired:
            child.kill()
            code = child.wait()
        if code != 0:
            raise self._failed("does not format its storage")

    def _serving(self) -> bool:
        assert self._child is not None
        if self._child.poll() is not None:
            raise self._failed(f"ended with exit code {self._child.returncode}")
        try:
            answer = self._ask(Api.Metadata, 0, {"topics": []}, _SERVING_S)
        except OSError:
            return False
        if self.version == "0.8.2.2":
            return self._registered()  # before the first topic its metadata lists no broker, not even itself
        return self.node_id in {broker.node_id for broker in answer.brokers}

    def _registered(self) -> bool:
        with self._zookeeper_client() as (client, root):
            return client.exists(root + paths.broker(self.node_id)) is not None

    @contextmanager
    def _zookeeper_client(self) -> Iterator[tuple[KazooClient, str]]:
        """A client without the chroot, which may not exist, and the chroot."""
        assert self.zookeeper is not None
        servers, root = split_chroot(self.zookeeper)
        client = KazooClient(servers)
        try:
            client.start()
            yield client, root
        except KazooTimeoutError:
            raise Unavailable(f"no ZooKeeper answers at {servers}") from None
        finally:
            client.stop()
            client.close()

    def _ask(self, api: Api, version: int, body: Mapping[str, Any], timeout_s: float = _ANSWER_S) -> Any:
        """Send one request on a connection of its own. Raises OSError."""
        deadline = time.monotonic() + timeout_s
        with socket.create_connection((LOOPBACK, self.port), timeout_s) as connection:
            connection.sendall(encode_request(api, version, 1, "rebalance-lab", body))
            (size,) = struct.unpack(">i", _read(connection, 4, deadline))
            return decode_response(api, version, _read(connection, size, deadline))[1]

    def _failed(self, what: str) -> EnvironmentFault:
        self.stop()
        tail = "\n".join(self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
        return EnvironmentFault(f"Kafka {self.version} {what}; the end of its log {self.log_path}:\n{tail}")


def _read(connection: socket.socket, size: int, deadline: float) -> bytes:
    data = b""
    while len(data) < size:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionResetError("the broker closed the connection")
        data += piece
    return data
