"""Sessions: timeouts in the servers' bounds, expiry in ticks, and what becomes of a session's connection and znodes."""

from __future__ import annotations

import pytest

from comparison.simulation.zookeeper.model.protocol import CloseSession, Code, Create, Exists
from comparison.simulation.zookeeper.model.sessions import Limits, SessionTracker, first_session_id
from tests.support.zookeeper.model_ensemble import ModelEnsemble

TICK_MS = 500


@pytest.mark.parametrize(("asked", "granted"), [(1, 200), (200, 200), (4000, 4000), (10**6, 60_000)])
def test_timeout_is_granted_within_the_bounds(asked: int, granted: int) -> None:
    assert Limits().granted(asked) == granted


@pytest.mark.parametrize(
    ("touched_ms", "timeout_ms", "over_ms"), [(0, 1000, 1500), (1, 999, 1500), (499, 1000, 1500), (0, 999, 1000)]
)
def test_expiry_is_rounded_up_to_the_tick_behind(touched_ms: int, timeout_ms: int, over_ms: int) -> None:
    tracker = SessionTracker(TICK_MS)
    tracker.track(7, timeout_ms, touched_ms)
    assert tracker.deadline_ms == over_ms
    assert tracker.expire(over_ms - 1) == []
    assert tracker.expire(over_ms) == [7]


def test_sign_of_life_puts_the_expiry_off() -> None:
    tracker = SessionTracker(TICK_MS)
    tracker.track(7, 1000, 0)
    tracker.track(8, 1000, 0)
    assert tracker.touch(7, 1000, 900)
    assert tracker.expire(1500) == [8]
    assert not tracker.touch(8, 1000, 1500)
    assert tracker.deadline_ms == 2000


def test_session_belongs_to_the_server_that_it_came_over_last() -> None:
    tracker = SessionTracker(TICK_MS)
    tracker.track(7, 1000, 0, owner=1)
    assert tracker.check(7, 1) is Code.OK
    assert tracker.check(7, 2) is Code.SESSION_MOVED
    tracker.move(7, 2)
    assert tracker.check(7, 2) is Code.OK
    tracker.close(7)
    assert tracker.check(7, 2) is Code.SESSION_EXPIRED
    assert tracker.check(8, 2) is Code.SESSION_EXPIRED


def test_session_ids_of_two_servers_differ_and_count_up() -> None:
    ensemble = ModelEnsemble()
    one, two = ensemble.client(), ensemble.client()
    assert two.session_id == one.session_id + 1
    assert one.session_id >> 56 == 1
    assert first_session_id(2, 0) >> 56 == 2


def test_silent_client_loses_its_session_and_its_connection() -> None:
    ensemble = ModelEnsemble()
    silent, other = ensemble.client(timeout_ms=2000), ensemble.client(timeout_ms=60_000)
    silent.ask(Create("/e", b"", ephemeral=True))
    other.ask(Exists("/e", watch=True))
    ensemble.advance(1900)
    assert silent.is_connected
    ensemble.advance(600)
    assert not silent.is_connected
    assert other.take() == [("DELETED", "/e")]
    silent.connect(1)
    assert silent.is_expired
    assert silent.session_id == 0


def test_pings_keep_a_session_alive() -> None:
    ensemble = ModelEnsemble()
    client = ensemble.client(timeout_ms=1000)
    for _ in range(10):
        ensemble.advance(700)
        client.ping()
    assert client.is_connected


def test_session_survives_a_new_connection() -> None:
    ensemble = ModelEnsemble()
    client = ensemble.client()
    client.ask(Create("/e", b"", ephemeral=True))
    number = client.session_id
    client.connect(1)
    assert client.is_connected
    assert client.session_id == number
    assert client.ask(Exists("/e")).ephemeral_owner == number


def test_earlier_connection_of_a_session_is_closed() -> None:
    ensemble = ModelEnsemble()
    first = ensemble.client()
    thief = ensemble.client()
    thief.session_id, thief.password = first.session_id, first.password
    thief.connect(1)
    assert thief.is_connected
    assert not first.is_connected


def test_wrong_password_gets_no_session_but_closes_the_connection_of_that_session() -> None:
    ensemble = ModelEnsemble()
    client, thief = ensemble.client(), ensemble.client()
    thief.session_id, thief.password = client.session_id, bytes(16)
    thief.connect(1)
    assert thief.is_expired
    assert not client.is_connected
    client.connect(1)
    assert client.ask(Create("/a", b"")) == "/a"


def test_close_ends_the_session_at_once() -> None:
    ensemble = ModelEnsemble()
    client, other = ensemble.client(), ensemble.client()
    for name in "abc":
        client.ask(Create(f"/{name}", b"", ephemeral=True))
    assert client.ask(CloseSession()) is None
    assert [other.ask(Exists(f"/{name}")) for name in "abc"] == [Code.NO_NODE] * 3
    assert ensemble.servers[1].history.tree.ephemeral_count == 0
