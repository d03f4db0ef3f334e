"""The compose file's ensemble."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kernel.ports import free_ports
from kernel.waiting import wait_until
from kernel.zookeeper.counters import server_mode
from tests.support.zookeeper import opened

ROOT = Path(__file__).parents[4]


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
