"""ZooKeeper in Docker: the local image, one server through testcontainers, three by the compose file."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernel.errors import EnvironmentFault
from kernel.ports import free_ports
from kernel.waiting import wait_until
from kernel.zookeeper import container
from kernel.zookeeper.container import LABEL, DockerZooKeeper, owner, remove_abandoned
from kernel.zookeeper.counters import read_counters, server_mode
from kernel.zookeeper.target import TargetKind, open_zookeeper
from tests.support.tracers import ListTracer
from tests.support.zookeeper import opened, successes

ROOT = Path(__file__).parents[3]
IMAGE = "rebalance-lab/zookeeper:test"


@pytest.fixture(scope="module")
def engine():
    """A client of the Docker engine; without one the test is skipped with a reason."""
    try:
        client = container.engine()
    except EnvironmentFault as fault:
        pytest.skip(str(fault))
    yield client
    client.close()


@pytest.fixture(scope="module")
def image(engine):
    """The local image, built without a registry; removed afterwards."""
    subprocess.run([sys.executable, ROOT / "docker" / "build_image.py", "--tag", IMAGE], check=True, timeout=120)
    yield IMAGE
    engine.images.remove(IMAGE, force=True)


def ours(engine):
    return [found.id for found in engine.containers.list(all=True, filters={"label": f"{LABEL}={owner()}"})]


@pytest.mark.docker
def test_a_container_serves_counts_as_the_embedded_one_does_and_is_removed(engine, image, tmp_path, monkeypatch):
    tracer = ListTracer()

    async def conversation(connect_string):
        async with opened(connect_string, tracer, timeout_ms=700) as session:
            await session.create("/n", b"x")
            await asyncio.gather(*(session.get("/n") for _ in range(10)))
            return session.negotiated_timeout_ms

    monkeypatch.setenv(container.IMAGE_VARIABLE, image)
    with open_zookeeper("docker", tmp_path) as handle:
        assert handle.kind is TargetKind.DOCKER
        assert asyncio.run(conversation(handle.connect_string)) == 700
        assert read_counters(*handle.addresses[0]).per_namespace["n"] == successes(tracer) == (10, 1)
        assert len(ours(engine)) == 1
    assert ours(engine) == []


@pytest.mark.docker
def test_a_container_that_a_killed_run_left_behind_is_removed_by_the_next(engine, image):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    boot = owner().split("/", maxsplit=1)[0]
    abandoned = engine.containers.create(image, labels={LABEL: f"{boot}/{gone.pid}/1.00"})
    elsewhere = engine.containers.create(image, labels={LABEL: f"another-boot/{gone.pid}/1.00"})
    try:
        assert remove_abandoned(engine) == [abandoned.id]
    finally:
        elsewhere.remove(force=True)


@pytest.mark.docker
def test_unavailable_image_is_named_with_the_remedy(engine):
    with pytest.raises(EnvironmentFault, match=r"(?s)no image localhost:1/none:1 .*docker/build_image.py"):
        DockerZooKeeper("localhost:1/none:1").start()
    assert ours(engine) == []


@pytest.mark.docker
def test_the_compose_file_makes_an_ensemble_that_outlives_its_leader(image):
    compose = compose_command()
    ports = free_ports(3)
    environment = os.environ | {"ZOOKEEPER_IMAGE": image, "ZOOKEEPER_SUBNET": "10.213.98"}
    environment |= {f"ZOOKEEPER_PORT_{n}": str(port) for n, port in enumerate(ports, start=1)}

    def run(*arguments):
        subprocess.run(
            [*compose, "-p", "rebalance-lab-test", "-f", ROOT / "docker" / "compose.yaml", *arguments],
            env=environment,
            check=True,
            capture_output=True,
            timeout=120,
        )

    def modes():
        return [server_mode("127.0.0.1", port) for port in ports]

    async def write_and_read():
        async with opened(",".join(f"127.0.0.1:{port}" for port in ports), retry_forever=True) as session:
            await session.ensure_path("/n")
            return await session.children("/")

    try:
        run("up", "-d")
        wait_until(
            lambda: sorted(str(mode) for mode in modes()) == ["follower", "follower", "leader"],
            60,
            lambda: f"a leader and two followers, got {modes()}",
        )
        leader = modes().index("leader") + 1
        run("kill", f"zookeeper-{leader}")
        wait_until(lambda: "leader" in modes(), 30, lambda: f"a new leader, got {modes()}")
        assert asyncio.run(write_and_read()) == ["n", "zookeeper"]
    finally:
        run("down", "-v", "-t", "2")


def compose_command():
    version = ["docker", "compose", "version"]
    if shutil.which("docker") and subprocess.run(version, check=False, capture_output=True).returncode == 0:
        return version[:2]
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    pytest.skip("neither 'docker compose' nor docker-compose is installed")


def test_without_an_engine_the_fault_says_so_and_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(EnvironmentFault, match=r"no Docker engine answers .*omit --zookeeper docker"):
        DockerZooKeeper().start()


def test_without_testcontainers_the_fault_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "testcontainers.core.container", None)
    with pytest.raises(EnvironmentFault, match="pip install testcontainers"):
        DockerZooKeeper().start()
