"""Embedded servers: ready, stopped, never left behind; and their errors when they cannot start."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from kernel.errors import EnvironmentFault
from kernel.waiting import wait_until
from kernel.zookeeper.counters import read_counters, server_mode
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.errors import NodeExists
from kernel.zookeeper.server import PortInUse, ServerProcess, StartGivenUp
from kernel.zookeeper.servers import Limits, QuorumPorts, followers_of, leader_of
from kernel.zookeeper.txnlog import read_ensemble
from tests.support.commands.ended import has_ended
from tests.support.zookeeper.sessions import opened

#: Starts a server from a thread that ends at once (the parent-death signal is tied to threads), then waits.
PARENT = """
import signal, sys, threading, time
from pathlib import Path
from kernel.zookeeper.embedded import EmbeddedZooKeeper
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background would ignore it
zookeeper = EmbeddedZooKeeper(Path(sys.argv[1]))
thread = threading.Thread(target=zookeeper.start)
thread.start()
thread.join()
try:
    print(zookeeper.servers[0].pid, flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("running" if zookeeper.servers[0].running else "gone", flush=True)
    raise
"""


def test_a_server_is_ready_keeps_its_log_in_the_run_folder_and_ends_when_stopped(tmp_path):
    with EmbeddedZooKeeper(tmp_path) as zookeeper:
        (server,) = zookeeper.servers
        assert zookeeper.connect_string == f"127.0.0.1:{server.client_port}"
        wait_until(lambda: server.mode() == "standalone", 60, "the server to say its mode")
        address = ("127.0.0.1", server.client_port)
        wait_until(
            lambda: read_counters(*address, timeout_s=30).mode == "standalone", 20, "the counters to say it, too"
        )
        assert "Snapshotting" in server.log_path.read_text()
        assert server.log_path.is_relative_to(tmp_path)
        pid = server.pid
    assert not server.running
    assert not psutil.pid_exists(pid)
    assert server_mode("127.0.0.1", server.client_port) is None
    zookeeper.stop()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda how: how.name)
def test_no_server_outlives_its_parent(tmp_path, how):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        cwd=Path(__file__).parents[3],
    )
    with parent:
        server = psutil.Process(int(parent.stdout.readline()))
        assert "QuorumPeerMain" in " ".join(server.cmdline())
        os.killpg(parent.pid, how)  # as a Ctrl-C on the terminal does: to the group
        if how is signal.SIGINT:
            assert parent.stdout.readline() == "running\n"
        assert parent.wait(30) != 0
    wait_until(lambda: has_ended(server), 30, "the server to end")


def test_a_port_that_is_in_use_is_named(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortInUse, match=f"port {port}: .*Choose another port"):
            EmbeddedZooKeeper(tmp_path, port=port).start()


def test_a_server_that_ends_by_itself_shows_the_end_of_its_log(tmp_path):
    zookeeper = EmbeddedZooKeeper(tmp_path, limits=Limits(min_session_ms=2000, max_session_ms=1000))
    with pytest.raises(EnvironmentFault, match=r"(?s)ended with exit code 2 .*MB free.*minSessionTimeout must not be"):
        zookeeper.start()
    assert not zookeeper.servers[0].running


def test_a_run_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(EnvironmentFault, match=r"cannot write ZooKeeper's folder .*/file/zookeeper-1: Not a directory"):
        EmbeddedZooKeeper(tmp_path / "file").start()


#: Runs with a limit on the size of files, as on a full disk, and writes until that fails; prints its result.
FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from kernel.errors import RebalanceLabError
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from tests.support.zookeeper.sessions import opened

async def write(zookeeper):
    async with opened(zookeeper.connect_string) as session:
        for n in range(1000):
            await session.create(f"/n{n}", b"x" * 50_000)
            print(f"/n{n}", flush=True)

limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
zookeeper = EmbeddedZooKeeper(Path(sys.argv[1]))
try:
    with zookeeper:
        asyncio.run(write(zookeeper))
except RebalanceLabError as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


def on_a_full_disk(run_dir, limit):
    return subprocess.run(
        [sys.executable, "-c", FULL_DISK, run_dir, str(limit)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=Path(__file__).parents[3],
    )


def test_on_a_full_disk_the_start_fails_with_the_reason(tmp_path):
    nothing = on_a_full_disk(tmp_path / "nothing", 10)
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert "EnvironmentFault: cannot write ZooKeeper's folder" in nothing.stderr
    assert "File too large" in nothing.stderr


def test_when_the_disk_fills_up_writes_fail_and_nothing_acknowledged_is_lost(tmp_path):
    filled = on_a_full_disk(tmp_path, 1_200_000)
    acknowledged = filled.stdout.split()
    assert filled.returncode == 1
    assert "ConnectionLost" in filled.stderr
    assert len(acknowledged) > 10

    async def still_there(connect_string):
        async with opened(connect_string) as session:
            return await session.children("/")

    with EmbeddedZooKeeper(tmp_path) as zookeeper:
        children = asyncio.run(still_there(zookeeper.connect_string))
    assert set(acknowledged) <= {f"/{child}" for child in children}


@pytest.mark.parametrize("servers", [1, 3])
def test_cancelled_start_ends_at_once_and_leaves_no_server(
    servers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ServerProcess, "mode", lambda _: None)  # it is not ready before the start is given up
    given_up = threading.Event()
    zookeeper = EmbeddedZooKeeper(tmp_path, servers=servers, given_up=given_up)
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(zookeeper.start)
        wait_until(lambda: any(server.running for server in zookeeper.servers), 60, "a server to be launched")
        given_up.set()
        with pytest.raises(StartGivenUp):
            starting.result(20)
    assert not any(server.running for server in zookeeper.servers)


def test_an_ensemble_elects_survives_its_leader_and_readmits_it(tmp_path):
    asked = []

    def links(sender: int, receiver: int, real: QuorumPorts) -> QuorumPorts:
        asked.append((sender, receiver))
        return real

    async def write(path):
        async with opened(ensemble.connect_string, retry_forever=True) as session:
            with contextlib.suppress(NodeExists):  # by an attempt whose answer the election cut off
                await session.create(path)

    async def write_and_read(server):
        async with opened(server.address) as session:
            await session.create("/before")
            await asyncio.gather(*(session.get("/before") for _ in range(5)))
        for other in ensemble.servers:
            async with opened(other.address) as session:
                await session.sync("/")

    with EmbeddedZooKeeper(tmp_path, servers=3, quorum_links=links, limits=Limits(sync_limit=60)) as ensemble:
        assert sorted(asked) == [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)]
        leader = leader_of(ensemble.servers)
        followers: Any = wait_until(
            lambda: len(found := followers_of(ensemble.servers)) == 2 and found, 60, "two followers"
        )

        # Every server counts every write, and the reads that it answered itself.
        asyncio.run(write_and_read(followers[0]))
        counted = [
            read_counters("127.0.0.1", server.client_port, timeout_s=30)
            for server in (followers[0], followers[1], leader)
        ]
        assert [counters.per_namespace.get("before", (0, 0)) for counters in counted] == [(5, 1), (0, 1), (0, 1)]

        leader.kill()
        assert leader_of(ensemble.servers) is not leader
        asyncio.run(write("/without"))
        leader.restart()
        wait_until(lambda: leader.mode() == "follower", 60, "the killed leader to follow")
    paths = [txn.path for txn in read_ensemble([server.data_dir for server in ensemble.servers]) if txn.op == "create"]
    assert paths == ["/before", "/without"]
