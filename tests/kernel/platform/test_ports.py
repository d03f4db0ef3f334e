"""Ports for servers that bind them later."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from kernel.platform import ports


def outgoing(folder: Path, text: str) -> Path:
    (folder / "range").write_text(text)
    return folder / "range"


@pytest.mark.parametrize("text", ["32768\t60999\n", "15000\t60999\n"])
def test_ports_are_below_those_of_outgoing_connections(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ports, "_OUTGOING", outgoing(tmp_path, text))
    found = ports.free_ports(20)
    assert len(set(found)) == 20
    assert all(10_000 <= port < int(text.split()[0]) for port in found)


@pytest.mark.parametrize("text", ["1024\t60999\n", "10100 60999", "", "none"])
def test_ports_come_from_the_system_if_there_are_none_below(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ports, "_OUTGOING", outgoing(tmp_path, text))
    assert len(set(ports.free_ports(3))) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a port cannot be kept for a server")
def test_reserved_port_is_its_servers_again_after_a_restart_and_nobody_elses() -> None:
    reserved = ports.ReservedPorts(1)
    (port,) = reserved.numbers
    try:
        for _ in range(2):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((ports.LOOPBACK, port))
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind((ports.LOOPBACK, port))  # as `free_ports` and outgoing connections try it
            with socket.create_server((ports.LOOPBACK, port)):
                socket.create_connection((ports.LOOPBACK, port)).close()
    finally:
        reserved.release()
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # past the connections that were closed
        other.bind((ports.LOOPBACK, port))
        other.listen()


def test_port_with_a_listener_is_not_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with socket.socket() as taken, socket.socket() as listener:
        listener.bind((ports.LOOPBACK, 0))
        listener.listen()
        taken_port = listener.getsockname()[1]
        taken.bind((ports.LOOPBACK, 0))
        one, other = ports.free_ports(2)
        draws = iter([taken_port, taken.getsockname()[1], one, one, other])
        monkeypatch.setattr(ports, "_OUTGOING", outgoing(tmp_path, "32768 60999"))
        monkeypatch.setattr(ports._random, "randrange", lambda *_: next(draws))
        assert ports.free_ports(2) == [one, other]
