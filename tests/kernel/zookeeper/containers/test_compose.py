"""The compose file: an ensemble, and with the profile `lab` three brokers on it and a runner."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kernel.platform.ports import free_ports
from kernel.waiting import wait_until
from kernel.zookeeper.counters import server_mode
from tests.support.zookeeper.sessions import opened

ROOT = Path(__file__).parents[4]
PROJECT = "rebalance-lab-test"

pytestmark = pytest.mark.docker


class Compose:
    """The compose file's containers, with ports and addresses of their own."""

    def __init__(self, image, **more):
        self._command = [*compose_command(), "-p", PROJECT, "-f", ROOT / "docker" / "compose.yaml"]
        self.ports = free_ports(3)
        self._environment = os.environ | {"ZOOKEEPER_IMAGE": image, "ZOOKEEPER_SUBNET": "10.213.98", **more}
        self._environment |= {f"ZOOKEEPER_PORT_{n}": str(port) for n, port in enumerate(self.ports, start=1)}

    def run(self, *arguments, timeout_s=120):
        done = subprocess.run(
            [*self._command, *arguments],
            env=self._environment,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def modes(self):
        return [server_mode("127.0.0.1", port) for port in self.ports]


def test_the_compose_file_makes_an_ensemble_that_outlives_its_leader(image):
    compose = Compose(image)

    async def write_and_read():
        async with opened(",".join(f"127.0.0.1:{port}" for port in compose.ports), retry_forever=True) as session:
            await session.ensure_path("/n")
            return await session.children("/")

    try:
        compose.run("up", "-d")
        wait_until(
            lambda: sorted(str(mode) for mode in compose.modes()) == ["follower", "follower", "leader"],
            60,
            lambda: f"a leader and two followers, got {compose.modes()}",
        )
        leader = compose.modes().index("leader") + 1
        compose.run("kill", f"zookeeper-{leader}")
        wait_until(lambda: "leader" in compose.modes(), 30, lambda: f"a new leader, got {compose.modes()}")
        assert asyncio.run(write_and_read()) == ["n", "zookeeper"]
    finally:
        compose.run("down", "-v", "-t", "2")


@pytest.mark.long
def test_the_profile_lab_runs_a_scenario_and_brokers_on_the_ensemble(engine, image, lab_image):
    """The runner judges by the servers' logs: an `unknown` verdict would end it with another code than 0."""
    compose = Compose(image, LAB_IMAGE=lab_image, SCENARIO="crash")
    lab = ("--profile", "lab")
    try:
        compose.run(*lab, "up", "-d", "--no-build", timeout_s=180)
        at_broker = (*lab, "exec", "-T", "broker-1", "rebalance-lab")
        compose.run(*at_broker, "topic", "create", "orders", "--partitions", "3")
        assert "in sync 2,3,1" in compose.run(*at_broker, "topic", "describe", "orders")
        runner = engine.containers.get(compose.run(*lab, "ps", "-q", "runner").strip())
        ended = runner.wait(timeout=180)
        assert ended["StatusCode"] == 0, runner.logs().decode()
        assert b"as the model says" in runner.logs()
    finally:
        compose.run(*lab, "down", "-v", "-t", "2")


def compose_command():
    version = ["docker", "compose", "version"]
    if shutil.which("docker") and subprocess.run(version, check=False, capture_output=True).returncode == 0:
        return version[:2]
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    pytest.skip("neither 'docker compose' nor docker-compose is installed")
