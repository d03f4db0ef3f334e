"""Servers in containers: they serve, break and heal as the embedded ones do, and leave their transaction log."""

from __future__ import annotations

import asyncio
import sys

import pytest

from kernel.errors import EnvironmentFault
from kernel.waiting import wait_until
from kernel.zookeeper.containers.ownership import LABEL, owner
from kernel.zookeeper.containers.server import ServerContainer
from kernel.zookeeper.containers.zookeeper import DockerZooKeeper
from kernel.zookeeper.counters import read_counters
from kernel.zookeeper.servers import followers_of, leader_of
from kernel.zookeeper.target import TargetKind, open_zookeeper
from kernel.zookeeper.txnlog import read_ensemble
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.sessions import opened, successes


def ours(engine):
    filters = {"label": f"{LABEL}={owner()}"}
    found = [*engine.containers.list(all=True, filters=filters), *engine.networks.list(filters=filters)]
    return [each.id for each in found]


@pytest.mark.docker
def test_a_container_serves_counts_as_the_embedded_one_does_and_leaves_its_log(engine, local_image, tmp_path):
    tracer = ListTracer()

    async def conversation(connect_string):
        async with opened(connect_string, timeout_ms=700) as session:
            negotiated_ms = session.negotiated_timeout_ms
        async with opened(connect_string, tracer) as session:  # outlives the pauses of a busy machine
            await session.create("/n", b"x")
            await asyncio.gather(*(session.get("/n") for _ in range(10)))
        return negotiated_ms

    with open_zookeeper("docker", tmp_path) as handle:
        assert handle.kind is TargetKind.DOCKER
        assert asyncio.run(conversation(handle.connect_string)) == 700
        assert read_counters(*handle.addresses[0]).per_namespace["n"] == successes(tracer) == (10, 1)
        assert len(ours(engine)) == 1
    assert ours(engine) == []
    (server,) = handle.servers
    assert isinstance(server, ServerContainer)
    assert [each.path for each in read_ensemble([server.data_dir]) if each.op == "create"] == ["/n"]
    assert "binding to port" in server.log_path.read_text(encoding="utf-8")


@pytest.mark.docker
def test_an_ensemble_of_containers_survives_every_fault_of_its_servers(engine, local_image, tmp_path):
    async def write(connect_string, name):
        async with opened(connect_string, retry_forever=True) as session:
            await session.ensure_path(f"/{name}")

    with DockerZooKeeper(tmp_path, servers=3) as zookeeper:
        assert len(ours(engine)) == 4  # three containers and their network
        connect_string = zookeeper.connect_string
        for name, break_, heal in (
            ("kill", lambda server: server.kill(), lambda server: server.restart()),
            ("freeze", lambda server: server.pause(), lambda server: server.resume()),
            ("disconnect", lambda server: server.disconnect(), lambda server: server.connect()),
        ):
            leader = leader_of(zookeeper.servers)
            break_(leader)
            assert leader.mode() is None
            others = [server for server in zookeeper.servers if server is not leader]
            assert leader_of(others) is not leader
            asyncio.run(write(connect_string, name))
            heal(leader)
            wait_until(lambda: len(followers_of(zookeeper.servers)) == 2, 30, "all three to serve again")
        assert zookeeper.connect_string == connect_string
    assert ours(engine) == []
    written = [each.path for each in read_ensemble([server.data_dir for server in zookeeper.servers])]
    assert [path for path in written if path] == ["/kill", "/freeze", "/disconnect"]


@pytest.mark.docker
def test_unavailable_image_is_named_with_the_remedy(engine, tmp_path):
    with pytest.raises(EnvironmentFault, match=r"(?s)no image localhost:1/none:1 .*docker/build_image.py"):
        DockerZooKeeper(tmp_path, servers=3, image="localhost:1/none:1").start()
    assert ours(engine) == []


def test_without_an_engine_the_fault_says_so_and_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(EnvironmentFault, match=r"no Docker engine answers .*omit --zookeeper docker"):
        DockerZooKeeper(tmp_path).start()


def test_without_testcontainers_the_fault_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "testcontainers.core.container", None)
    with pytest.raises(EnvironmentFault, match="pip install testcontainers"):
        DockerZooKeeper(tmp_path).start()
