"""A broker's identity from its data folder alone: which id a start gets, and what is refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from kernel.broker.cluster.identity import (
    BrokerAlreadyRunning,
    DamagedIdentity,
    Identity,
    Meta,
    WrongCluster,
    check_cluster,
    claim,
    meta_text,
    parse_meta,
)
from kernel.zookeeper.end_session import SessionCredentials

CLUSTER = "1W9pNtqoQhyh7cXv03h7dQ"


def started(folder: Path, port: int, node_id: int | None = None) -> Identity:
    identity = claim(folder, CLUSTER, f"127.0.0.1:{port}", node_id=node_id)
    assert identity is not None
    return identity


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_empty_folder_has_no_identity(tmp_path: Path) -> None:
    assert claim(tmp_path, CLUSTER, "127.0.0.1:9092") is None


def test_two_brokers_without_an_id_keep_theirs_in_either_order(tmp_path: Path) -> None:
    started(tmp_path, 9092, 1001).release()
    started(tmp_path, 9093, 1002).release()
    for ports in ([9092, 9093], [9093, 9092]):
        again = {port: started(tmp_path, port) for port in ports}
        assert {port: identity.node_id for port, identity in again.items()} == {9092: 1001, 9093: 1002}
        for identity in again.values():
            identity.release()


def test_broker_on_another_port_takes_the_identity_of_a_stopped_one(tmp_path: Path) -> None:
    started(tmp_path, 9092, 1001).release()
    with started(tmp_path, 9093, 1002), started(tmp_path, 9094) as moved:
        assert moved.node_id == 1001
        assert claim(tmp_path, CLUSTER, "127.0.0.1:9095") is None, "both are running: the next one is new"
    # It last listened there.
    assert started(tmp_path, 9094).node_id == 1001


def test_identity_of_a_running_broker_is_not_reused_even_for_its_port(tmp_path: Path) -> None:
    started(tmp_path, 9093, 1002).release()
    with started(tmp_path, 9092, 1001):
        other = started(tmp_path, 9092)
        assert other.node_id == 1002
        before = files(tmp_path)
        with pytest.raises(
            BrokerAlreadyRunning, match=rf"broker 1001 .* is already running \(pid {os.getpid()}, .*127\.0\.0\.1:9092"
        ):
            started(tmp_path, 9099, 1001)
        assert files(tmp_path) == before
        other.release()


def test_latest_identity_that_listened_on_a_port_is_reused(tmp_path: Path) -> None:
    for node_id in (2, 1):
        started(tmp_path, 9092, node_id).release()
    os.utime(tmp_path / "brokers/1/lock", (1000, 1000))
    assert started(tmp_path, 9092).node_id == 2


def test_folder_of_another_cluster_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    started(tmp_path, 9092, 1001).release()
    before = files(tmp_path)
    for cluster_id, said in (("other", "holds cluster other"), (None, "holds no cluster yet")):
        with pytest.raises(WrongCluster, match=rf"belongs to cluster {CLUSTER} .*{said}.* another data folder"):
            check_cluster(tmp_path, cluster_id)
    for node_id in (None, 1001, 7):
        with pytest.raises(WrongCluster):
            claim(tmp_path, "other", "127.0.0.1:9092", node_id=node_id)
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nonsense\n", "version is missing"),
        ("version=1\nnode.id=1\ncluster.id=x\n", "version is 1"),
        ("version=0\nbroker.id=abc\ncluster.id=x\n", "broker.id is 'abc'"),
        ("version=0\nbroker.id=٣\ncluster.id=x\n", "not a number"),
        ("version=0\nbroker.id=1001\n", "cluster.id is missing"),
        (f"version=0\nbroker.id=1002\ncluster.id={CLUSTER}\n", "names broker 1002"),
        ("", "version is missing"),
    ],
)
def test_damaged_meta_properties_is_refused_instead_of_taking_a_new_id(tmp_path: Path, text: str, problem: str) -> None:
    started(tmp_path, 9092, 1001).release()
    path = tmp_path / "brokers/1001/meta.properties"
    path.write_text(text, encoding="utf-8")
    before = files(tmp_path)
    for node_id in (None, 1001):
        with pytest.raises(DamagedIdentity, match=problem) as refused:
            claim(tmp_path, CLUSTER, "127.0.0.1:9092", node_id=node_id)
        assert str(path) in str(refused.value)
    assert files(tmp_path) == before


def test_start_killed_before_it_wrote_its_identity_leaves_none(tmp_path: Path) -> None:
    identity = started(tmp_path, 9092, 1001)
    (tmp_path / "brokers/1001/meta.properties").unlink()
    identity.release()
    assert claim(tmp_path, CLUSTER, "127.0.0.1:9092") is None
    assert started(tmp_path, 9092, 1001).node_id == 1001


def test_meta_properties_is_that_of_3_9_1(tmp_path: Path) -> None:
    recorded = f"#\n#Sun Nov 22 18:28:59 UTC 2026\nbroker.id=1001\nversion=0\ncluster.id={CLUSTER}\n"
    meta = parse_meta(recorded, tmp_path)
    assert meta == Meta(1001, CLUSTER)
    ours, theirs = meta_text(meta).splitlines(), recorded.splitlines()
    assert len(ours[1]) == len(theirs[1]), "the second line is a time"
    assert ours[:1] + ours[2:] == theirs[:1] + theirs[2:]


def test_session_is_kept_for_the_successor_and_readable_only_by_the_user(tmp_path: Path) -> None:
    credentials = SessionCredentials(-(2**63) + 5, bytes(range(16)))
    with started(tmp_path, 9092, 1) as identity:
        assert identity.last_session() is None
        identity.keep_session(SessionCredentials(1, b"old"))
        identity.keep_session(credentials)
    path = tmp_path / "brokers/1/session"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with started(tmp_path, 9092, 1) as successor:
        assert successor.last_session() == credentials
        assert "password" not in repr(credentials)
        for torn in ("", "{", "[]", '{"session":"x","password":""}', '{"session":"1"}'):
            path.write_text(torn)
            assert successor.last_session() is None
