"""`--zookeeper`: what is accepted, what is refused, and a ZooKeeper that is already running."""

from __future__ import annotations

import pytest

from kernel.errors import Unavailable, UserError
from kernel.waiting import wait_until
from kernel.zookeeper.server import ServerProcess
from kernel.zookeeper.target import TargetKind, ZooKeeperTarget, open_zookeeper, parse_target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("embedded", ZooKeeperTarget(TargetKind.EMBEDDED)),
        (" docker ", ZooKeeperTarget(TargetKind.DOCKER)),
        ("docker:3", ZooKeeperTarget(TargetKind.DOCKER, servers=3)),
        ("docker:2181", ZooKeeperTarget(TargetKind.RUNNING, (("docker", 2181),))),
        ("zk1:2181", ZooKeeperTarget(TargetKind.RUNNING, (("zk1", 2181),))),
        (
            "zk1:2181,10.0.0.2:2182/a/b/",
            ZooKeeperTarget(TargetKind.RUNNING, (("zk1", 2181), ("10.0.0.2", 2182)), "/a/b"),
        ),
        ("[::1]:2181", ZooKeeperTarget(TargetKind.RUNNING, (("::1", 2181),))),
        ("h:1/", ZooKeeperTarget(TargetKind.RUNNING, (("h", 1),))),
    ],
)
def test_target_is_understood(text, target):
    assert parse_target(text) == target
    if target.kind is TargetKind.RUNNING:
        assert parse_target(target.connect_string) == target


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is not HOST:PORT"),
        ("Embedded", "has no port"),
        ("zk1", "has no port.*2181"),
        ("zk1:", "is not HOST:PORT"),
        ("zk1:port", "is not HOST:PORT"),
        ("zk1:0", "0 is not a port"),
        ("zk1:65536", "65536 is not a port"),
        ("zk1:2181,", "is not HOST:PORT"),
        ("zk1:2181/a//b", "is not a valid ZooKeeper path"),
        ("zk1:2181/../b", "is not a valid ZooKeeper path"),
        ("zookeeper://zk1:2181", "is not HOST:PORT"),
    ],
)
def test_malformed_target_is_refused_with_the_reason(text, complaint):
    with pytest.raises(UserError, match=complaint):
        parse_target(text)


def test_a_running_zookeeper_is_used_as_it_is_and_not_stopped(zookeeper, tmp_path):
    with open_zookeeper(f"{zookeeper.connect_string}/some", tmp_path) as handle:
        assert handle.connect_string == f"{zookeeper.connect_string}/some"
        assert (handle.servers, handle.kind) == ((), TargetKind.RUNNING)
        assert handle.addresses == (("127.0.0.1", zookeeper.servers[0].client_port),)
    wait_until(lambda: zookeeper.servers[0].mode() == "standalone", 60, "the server to say its mode")


def test_stopped_zookeeper_is_reported_before_anything_else_happens(tmp_path, unused_port):
    with (
        pytest.raises(Unavailable, match=f"no ZooKeeper serves at 127.0.0.1:{unused_port}. Is it running"),
        open_zookeeper(f"127.0.0.1:{unused_port}", tmp_path),
    ):
        pass


def test_an_embedded_one_is_started_in_the_run_folder_and_stopped(tmp_path):
    with open_zookeeper("embedded", tmp_path) as handle:
        (server,) = handle.servers
        assert isinstance(server, ServerProcess)
        assert server.running
        assert server.directory.parent == tmp_path
    assert not server.running
