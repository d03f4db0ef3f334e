"""Three servers: old reads, own writes, sync, moved sessions, elections, and what is committed stays."""

from __future__ import annotations

import random

import pytest

from comparison.simulation.zookeeper.model.four_letter_words import four_letter_word
from comparison.simulation.zookeeper.model.protocol import Code, Create, Exists, GetData, Multi, SetData, Sync
from tests.support.zookeeper.model_ensemble import ModelClient, ModelEnsemble


@pytest.fixture
def ensemble() -> ModelEnsemble:
    return ModelEnsemble(3)


def test_greatest_number_leads_where_logs_are_equal(ensemble: ModelEnsemble) -> None:
    assert ensemble.leader == 3
    assert ensemble.followers == [1, 2]


def test_follower_that_lags_answers_with_what_was(ensemble: ModelEnsemble) -> None:
    writer, reader = ensemble.client(3), ensemble.client(1)
    writer.ask(Create("/a", b"old"))
    reader.ask(GetData("/a", watch=True))
    ensemble.hold(1)
    writer.ask(SetData("/a", b"new"))
    assert reader.ask(GetData("/a"))[0] == b"old"
    assert reader.take() == []
    ensemble.heal()
    assert reader.take() == [("DATA_CHANGED", "/a")]
    assert reader.ask(GetData("/a"))[0] == b"new"


def test_client_sees_its_own_writes_behind_a_lag(ensemble: ModelEnsemble) -> None:
    client = ensemble.client(1)
    ensemble.hold(1)
    client.send(Create("/a", b""))
    client.send(Exists("/a"))
    ensemble.settle()
    assert client.replies == []
    ensemble.heal()
    assert [reply.code for reply in client.replies] == [Code.OK, Code.OK]


def test_sync_brings_what_was_committed_before(ensemble: ModelEnsemble) -> None:
    writer, reader = ensemble.client(3), ensemble.client(1)
    ensemble.hold(1)
    writer.ask(Create("/a", b""))
    reader.send(Sync("/"))
    reader.send(Exists("/a"))
    ensemble.settle()
    assert reader.replies == []
    ensemble.heal()
    assert [reply.code for reply in reader.replies] == [Code.OK, Code.OK]
    assert reader.replies[0].answer == "/"


def test_server_behind_refuses_a_client_that_has_seen_more(ensemble: ModelEnsemble) -> None:
    client = ensemble.client(3)
    ensemble.hold(1)
    client.ask(Create("/a", b""))
    client.connect(1)
    assert not client.is_connected
    assert not client.is_expired
    ensemble.heal()
    client.connect(1)
    ensemble.settle()
    assert client.is_connected


def test_write_over_the_former_server_ends_that_connection(ensemble: ModelEnsemble) -> None:
    client = ensemble.client(1)
    moved = ModelClient(ensemble, client.session_id, client.password).connect(2)
    ensemble.settle()
    assert moved.is_connected
    client.send(Create("/a", b""))
    ensemble.settle()
    assert client.replies == []
    assert not client.is_connected
    assert moved.ask(Exists("/a")) == Code.NO_NODE


def test_follower_keeps_a_session_alive_for_its_leader(ensemble: ModelEnsemble) -> None:
    client = ensemble.client(1, timeout_ms=2000)
    for _ in range(10):
        ensemble.advance(1000)
        client.ping()
    assert client.is_connected
    ensemble.advance(3000)
    assert not client.is_connected


def test_follower_answers_reads_of_a_session_that_is_over(ensemble: ModelEnsemble) -> None:
    """It does not know, until the end of the session has reached it."""
    client = ensemble.client(1, timeout_ms=2000)
    client.ask(Create("/e", b"", ephemeral=True))
    ensemble.hold(1)
    other = ensemble.client(3, timeout_ms=60_000)
    ensemble.advance(2600)
    assert other.ask(Exists("/e")) == Code.NO_NODE
    assert client.ask(Exists("/e")).ephemeral_owner == client.session_id


def test_leader_without_a_majority_ends_all_connections(ensemble: ModelEnsemble) -> None:
    client = ensemble.client(3, timeout_ms=30_000)
    ensemble.kill(1)
    assert client.ask(Create("/a", b"")) == "/a"
    ensemble.kill(2)
    ensemble.advance(500)
    assert not client.is_connected
    assert ensemble.servers[3].mode is None
    client.connect(3)
    assert not client.is_connected


def test_survivors_elect_the_one_with_the_longer_log(ensemble: ModelEnsemble) -> None:
    writer = ensemble.client(3, timeout_ms=30_000)
    ensemble.hold(2)
    assert writer.ask(Create("/a", b"")) == "/a"
    ensemble.kill(3)
    ensemble.advance(2000)
    assert ensemble.leader == 1
    ensemble.heal()
    ensemble.advance(2000)
    writer.connect(2)
    ensemble.settle()
    assert writer.is_connected
    assert writer.ask(Exists("/a")).version == 0


def test_session_and_its_znodes_outlive_an_election(ensemble: ModelEnsemble) -> None:
    client = ensemble.client(1, timeout_ms=4000)
    client.ask(Create("/e", b"", ephemeral=True))
    ensemble.kill(3)
    assert not client.is_connected
    ensemble.advance(2000)
    assert ensemble.leader == 2
    client.connect(1)
    ensemble.settle()
    assert client.is_connected
    assert client.ask(Exists("/e")).ephemeral_owner == client.session_id
    client.ask(Create("/a", b""))
    assert client.zxid == 2 << 32 | 1, "the first change of the second epoch"
    client.disconnect()
    ensemble.advance(5000)
    assert ensemble.client(2).ask(Exists("/e")) == Code.NO_NODE


def test_write_without_a_majority_is_forgotten_once_another_leads(ensemble: ModelEnsemble) -> None:
    client = ensemble.client(3, timeout_ms=30_000)
    ensemble.cut(3)
    client.send(Create("/lost", b""))
    ensemble.advance(5000)
    assert client.replies == []
    assert ensemble.leader == 2
    other = ensemble.client(1)
    assert other.ask(Create("/kept", b"")) == "/kept"
    ensemble.heal()
    ensemble.advance(5000)
    assert ensemble.servers[3].mode == "follower"
    client.connect(3)
    ensemble.settle()
    assert client.ask(Exists("/lost")) == Code.NO_NODE
    assert client.ask(Exists("/kept")).version == 0


def test_cut_follower_gives_up_after_the_sync_limit(ensemble: ModelEnsemble) -> None:
    client = ensemble.client(1, timeout_ms=30_000)
    ensemble.cut(1)
    ensemble.advance(2500)
    assert client.is_connected
    ensemble.advance(1500)
    assert not client.is_connected
    ensemble.heal()
    ensemble.advance(5000)
    assert ensemble.servers[1].mode == "follower"


def test_restarted_server_gets_what_it_missed(ensemble: ModelEnsemble) -> None:
    ensemble.kill(2)
    client = ensemble.client(1)
    for number in range(5):
        client.ask(Create(f"/n{number}", b""))
    ensemble.restart(2)
    ensemble.advance(3000)
    assert ensemble.servers[2].mode == "follower"
    assert ensemble.client(2).ask(Exists("/n4")).version == 0


def test_counters_are_those_that_the_lab_reads(ensemble: ModelEnsemble) -> None:
    client = ensemble.client(1)
    client.ask(Create("/a", b""))
    client.ask(Multi((SetData("/a", b"x"), Create("/a/b", b""))))
    client.ask(Exists("/a", watch=True))
    client.ask(Exists("/none", watch=True))
    ensemble.settle()
    lines = dict(line.split("\t") for line in four_letter_word(ensemble.servers[1], "mntr").splitlines())
    assert lines["zk_server_state"] == "follower"
    assert (lines["zk_cnt_a_read_per_namespace"], lines["zk_cnt_a_write_per_namespace"]) == ("1", "3")
    assert "zk_cnt_none_read_per_namespace" not in lines
    assert lines["zk_watch_count"] == "2"
    assert "Mode: leader" in four_letter_word(ensemble.servers[3], "srvr")
    assert four_letter_word(ensemble.servers[2], "ruok") == "imok"


@pytest.mark.parametrize("seed", range(20))
def test_trees_are_equal_after_random_faults(seed: int) -> None:
    """Whatever is lost and elected: what was acknowledged is there, and all servers have the same tree in the end."""
    chosen = random.Random(seed)
    ensemble = ModelEnsemble(3)
    acknowledged: list[str] = []
    clients = [ModelClient(ensemble, timeout_ms=60_000) for _ in ensemble.servers]
    for step in range(120):
        client = chosen.choice(clients)
        action = chosen.choice(("write", "write", "write", "connect", "fault", "heal", "wait"))
        if action == "write" and client.is_connected:
            client.send(Create(f"/n{step}", b""))
            ensemble.settle()
            acknowledged += [str(reply.answer) for reply in client.replies]
            client.replies.clear()
        elif action == "connect" and (server := chosen.choice((1, 2, 3))) not in ensemble.dead:
            client.connect(server)
            ensemble.settle()
            if client.is_expired:
                clients[clients.index(client)] = ModelClient(ensemble, timeout_ms=60_000)
        elif action == "fault":
            server = chosen.choice((1, 2, 3))
            if chosen.random() < 0.5:
                ensemble.cut(server)
            elif server not in ensemble.dead:
                ensemble.kill(server)
        elif action == "heal":
            ensemble.heal()
            for server in list(ensemble.dead):
                ensemble.restart(server)
        else:
            ensemble.advance(chosen.choice((50, 700, 4000)))
    ensemble.heal()
    for server in list(ensemble.dead):
        ensemble.restart(server)
    ensemble.advance(20_000)
    assert sorted(ensemble.servers[n].mode or "" for n in ensemble.servers) == ["follower", "follower", "leader"]
    nodes = [set(server.history.tree.nodes) for server in ensemble.servers.values()]
    assert nodes[0] == nodes[1] == nodes[2]
    assert set(acknowledged) <= nodes[0]
    assert len(acknowledged) > 5, "hardly anything was written"
