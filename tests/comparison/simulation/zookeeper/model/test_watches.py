"""Watches are one-shot, by kind, and their notifications come before anything that shows the change."""

from __future__ import annotations

import pytest

from comparison.simulation.zookeeper.model.protocol import (
    CloseSession,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    SetData,
)
from tests.support.zookeeper.model_ensemble import ModelClient, ModelEnsemble

CREATED, DELETED = ("CREATED", "/a"), ("DELETED", "/a")
CHANGED, CHILDREN = ("DATA_CHANGED", "/a"), ("CHILDREN_CHANGED", "/a")


@pytest.fixture
def ensemble() -> ModelEnsemble:
    return ModelEnsemble()


@pytest.fixture
def writer(ensemble: ModelEnsemble) -> ModelClient:
    return ensemble.client()


@pytest.fixture
def reader(ensemble: ModelEnsemble) -> ModelClient:
    return ensemble.client()


def test_existence_watch_fires_once(writer: ModelClient, reader: ModelClient) -> None:
    reader.ask(Exists("/a", watch=True))
    writer.ask(Create("/a", b""))
    writer.ask(SetData("/a", b"x"))
    assert reader.take() == [CREATED]


def test_data_watch_does_not_fire_for_children(writer: ModelClient, reader: ModelClient) -> None:
    writer.ask(Create("/a", b""))
    reader.ask(GetData("/a", watch=True))
    writer.ask(Create("/a/b", b""))
    assert reader.take() == []
    writer.ask(SetData("/a", b""))
    assert reader.take() == [CHANGED]


def test_failed_reads_of_data_and_children_arm_nothing(writer: ModelClient, reader: ModelClient) -> None:
    reader.ask(GetData("/a", watch=True))
    reader.ask(GetChildren("/a", watch=True))
    writer.ask(Create("/a", b""))
    assert reader.take() == []


def test_child_watch_fires_for_creation_and_deletion_of_a_child_only(writer: ModelClient, reader: ModelClient) -> None:
    writer.ask(Create("/a", b""))
    for request in (Create("/a/b", b""), Delete("/a/b")):
        reader.ask(GetChildren("/a", watch=True))
        writer.ask(SetData("/a", b""))
        assert reader.take() == []
        writer.ask(request)
        assert reader.take() == [CHILDREN]


def test_deletion_fires_both_kinds_with_one_notification(writer: ModelClient, reader: ModelClient) -> None:
    writer.ask(Create("/a", b""))
    reader.ask(GetData("/a", watch=True))
    reader.ask(GetChildren("/a", watch=True))
    writer.ask(Delete("/a"))
    assert reader.take() == [DELETED]
    writer.ask(Create("/a", b""))
    assert reader.take() == []


def test_parts_of_a_transaction_fire_in_their_order(writer: ModelClient, reader: ModelClient) -> None:
    writer.ask(Create("/b", b""))
    reader.ask(Exists("/a", watch=True))
    reader.ask(GetData("/b", watch=True))
    writer.ask(Multi((SetData("/b", b""), Create("/a", b""), SetData("/a", b""))))
    assert reader.take() == [("DATA_CHANGED", "/b"), CREATED]


def test_end_of_a_session_notifies_of_its_znodes_and_its_own_client_first(
    writer: ModelClient, reader: ModelClient
) -> None:
    writer.ask(Create("/a", b"", ephemeral=True))
    writer.ask(Exists("/a", watch=True))
    reader.ask(Exists("/a", watch=True))
    reader.ask(GetChildren("/", watch=True))
    writer.ask(CloseSession())
    assert writer.take() == [DELETED]
    assert not writer.is_connected
    assert reader.take() == [DELETED, ("CHILDREN_CHANGED", "/")]


def test_watches_end_with_the_connection(ensemble: ModelEnsemble, writer: ModelClient, reader: ModelClient) -> None:
    reader.ask(Exists("/a", watch=True))
    assert len(ensemble.servers[1].clients.watches) == 1
    reader.connect(1)
    assert reader.is_connected
    assert len(ensemble.servers[1].clients.watches) == 0
    writer.ask(Create("/a", b""))
    assert reader.take() == []
