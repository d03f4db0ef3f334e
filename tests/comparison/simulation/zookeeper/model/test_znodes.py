"""What a server answers: metadata, and errors in the server's order of checks."""

from __future__ import annotations

import pytest

from comparison.simulation.zookeeper.model.protocol import (
    CheckVersion,
    Code,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    SetData,
    Stat,
    Sync,
)
from tests.support.zookeeper.model_ensemble import ModelClient, ModelEnsemble


@pytest.fixture
def ensemble() -> ModelEnsemble:
    return ModelEnsemble()


@pytest.fixture
def client(ensemble: ModelEnsemble) -> ModelClient:
    return ensemble.client()


def stat(client: ModelClient, path: str) -> Stat:
    answer = client.ask(Exists(path))
    assert isinstance(answer, Stat)
    return answer


def test_new_znode_has_the_zxid_and_the_time_of_its_creation(ensemble: ModelEnsemble, client: ModelClient) -> None:
    ensemble.advance(70)
    assert client.ask(Create("/a", b"one")) == "/a"
    zxid = client.zxid
    now = ensemble.now_ms
    assert stat(client, "/a") == Stat(zxid, zxid, now, now, 0, 0, 0, 0, 3, 0, zxid)


def test_change_of_data_counts_versions_and_leaves_the_creation(ensemble: ModelEnsemble, client: ModelClient) -> None:
    client.ask(Create("/a", None))
    created, began = client.zxid, ensemble.now_ms
    ensemble.advance(5)
    client.ask(SetData("/a", b"two", 0))
    assert stat(client, "/a") == Stat(created, client.zxid, began, began + 5, 1, 0, 0, 0, 3, 0, created)
    assert client.ask(GetData("/a"))[0] == b"two"


def test_children_count_as_changes_of_their_parent(client: ModelClient) -> None:
    client.ask(Create("/a", b""))
    for name in "bcd":
        client.ask(Create(f"/a/{name}", b""))
    client.ask(Delete("/a/c"))
    deleted = client.zxid
    found = stat(client, "/a")
    assert (found.version, found.cversion, found.children, found.pzxid) == (0, 4, 2, deleted)
    assert sorted(client.ask(GetChildren("/a"))) == ["b", "d"]


def test_root_of_a_new_server_has_a_child_that_was_never_created(client: ModelClient) -> None:
    root = stat(client, "/")
    assert (root.czxid, root.cversion, root.children) == (0, -1, 1)
    assert client.ask(GetChildren("/")) == ("zookeeper",)


def test_sequential_znode_counts_what_its_parent_ever_had(client: ModelClient) -> None:
    client.ask(Create("/a", b""))
    assert client.ask(Create("/a/n-", b"", sequential=True)) == "/a/n-0000000000"
    client.ask(Create("/a/other", b""))
    client.ask(Delete("/a/other"))
    assert client.ask(Create("/a/", b"", ephemeral=True, sequential=True)) == "/a/0000000002"


def test_ephemeral_znode_names_its_session_and_has_no_children(client: ModelClient) -> None:
    client.ask(Create("/e", b"", ephemeral=True))
    assert stat(client, "/e").ephemeral_owner == client.session_id
    assert client.ask(Create("/e/child", b"")) == Code.NO_CHILDREN_FOR_EPHEMERALS


#: After `/a` (version 1) with the child `/a/b`, and the ephemeral `/e`.
REFUSED = [
    (Create("/a", b""), Code.NODE_EXISTS),
    (Create("/none/b", b""), Code.NO_NODE),
    (Create("/none/b/", b""), Code.NO_NODE),  # its parent is looked for before the path is checked
    (Create("/a/", b""), Code.BAD_ARGUMENTS),
    (Create("/a//c", b""), Code.NO_NODE),
    (Create("/a/..", b""), Code.BAD_ARGUMENTS),
    (Create("/", b""), Code.NODE_EXISTS),
    (Create("/a/\u0001", b""), Code.BAD_ARGUMENTS),
    (Create("relative", b""), Code.BAD_ARGUMENTS),
    (Create("/e/x", b""), Code.NO_CHILDREN_FOR_EPHEMERALS),
    (Delete("/a", 0), Code.BAD_VERSION),  # although it has a child, too
    (Delete("/a", 1), Code.NOT_EMPTY),
    (Delete("/none"), Code.NO_NODE),
    (Delete("/"), Code.BAD_ARGUMENTS),
    (Delete("/zookeeper"), Code.BAD_ARGUMENTS),
    (SetData("/a", b"", 7), Code.BAD_VERSION),
    (SetData("/none", b""), Code.NO_NODE),
    (SetData("/a/", b""), Code.BAD_ARGUMENTS),
    (Exists("/none"), Code.NO_NODE),
    (GetData("/none"), Code.NO_NODE),
    (GetChildren("/none"), Code.NO_NODE),
]


@pytest.mark.parametrize(("request_", "code"), REFUSED, ids=str)
def test_refused_request_changes_nothing(client: ModelClient, request_: object, code: Code) -> None:
    for request in (Create("/a", b""), SetData("/a", b"", 0), Create("/a/b", b""), Create("/e", b"", ephemeral=True)):
        client.ask(request)
    before = [stat(client, path) for path in ("/a", "/a/b", "/e", "/")]
    assert client.ask(request_) == code  # type: ignore[arg-type]
    assert [stat(client, path) for path in ("/a", "/a/b", "/e", "/")] == before


def test_refused_write_takes_a_zxid_and_a_read_takes_none(client: ModelClient) -> None:
    client.ask(Create("/a", b""))
    before = client.zxid
    client.ask(Exists("/a"))
    client.ask(Sync("/a"))
    assert client.zxid == before
    client.ask(Delete("/none"))
    assert client.zxid == before + 1


def test_parts_of_a_transaction_see_the_earlier_ones(client: ModelClient) -> None:
    parts = (
        Create("/a", b""),
        Create("/a/b", b"x"),
        CheckVersion("/a/b", 0),
        SetData("/a/b", b"y", 0),
        CheckVersion("/a/b", 1),
        Create("/a/n-", b"", sequential=True),
        Delete("/a/b", 1),
        Create("/a/b", b"", ephemeral=True),
    )
    answers = client.ask(Multi(parts))
    assert answers[:3] == ("/a", "/a/b", None)
    assert answers[3].version == 1
    assert answers[5:] == ("/a/n-0000000001", None, "/a/b")
    found = stat(client, "/a")
    assert (found.cversion, found.children, found.czxid, found.pzxid) == (4, 2, client.zxid, client.zxid)
    assert stat(client, "/a/b").ephemeral_owner == client.session_id


def test_failed_transaction_tells_each_part_and_changes_nothing(client: ModelClient) -> None:
    client.ask(Create("/a", b""))
    parts = (SetData("/a", b"x"), Delete("/none"), Create("/b", b""))
    assert client.ask(Multi(parts)) == (Code.OK, Code.NO_NODE, Code.RUNTIME_INCONSISTENCY)
    assert stat(client, "/a").version == 0
    assert client.ask(Create("/b", b"")) == "/b"
    assert client.ask(Create("/a/x-", b"", sequential=True)) == "/a/x-0000000000"


def test_child_of_an_ephemeral_znode_is_refused_within_a_transaction(client: ModelClient) -> None:
    parts = (Create("/e", b"", ephemeral=True), Create("/e/c", b""))
    assert client.ask(Multi(parts)) == (Code.OK, Code.NO_CHILDREN_FOR_EPHEMERALS)
