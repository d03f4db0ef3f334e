"""A server and the archive of its classes: made by the real JVM, used by the next server, ignored if it is broken."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from kernel.platform.jre import find_java
from kernel.platform.ports import free_ports
from kernel.zookeeper.server import ServerConfig, ServerProcess, archive_of
from kernel.zookeeper.training import train


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REBALANCE_LAB_CACHE", str(tmp_path / "cache"))


def options_of_served(folder: Path) -> list[str]:
    """The command line of a server that has served."""
    server = ServerProcess(folder, ServerConfig(number=1, client_port=free_ports(1)[0]))
    try:
        server.launch()
        server.wait_ready(60)
        return psutil.Process(server.pid).cmdline()
    finally:
        server.stop()


def test_server_serves_without_an_archive_that_is_broken(tmp_path: Path) -> None:
    archive = archive_of(find_java())
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"not an archive")
    assert f"-XX:AOTCache={archive}" in options_of_served(tmp_path / "server")


def test_archive_is_made_once_and_used_by_the_next_server(tmp_path: Path) -> None:
    assert train().startswith("archived ZooKeeper's classes in ")
    assert train() == f"ZooKeeper's classes are archived in {archive_of(find_java())}"
    assert f"-XX:AOTCache={archive_of(find_java())}" in options_of_served(tmp_path / "server")
    log = (tmp_path / "server" / "zookeeper.log").read_text(encoding="utf-8")
    assert "aot" not in log.lower()
