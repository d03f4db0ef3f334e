"""Stock clients against a live broker: each produces with every codec it has, with idempotence, and reads back what
all of them wrote. Groups are tested with the coordinator."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel.broker.apis.fetch import FetchHandlers
from kernel.broker.apis.offsets import OffsetHandlers
from kernel.wire.versions import Api
from tests.support.brokers.live import broker_thread
from tests.support.stock.clients import CLIENTS, CODECS, PLAIN, values_of
from tests.support.stock.conversation import heard, stock_client


@pytest.fixture
def bootstrap(chroot: str, tmp_path: Path) -> Iterator[str]:
    with broker_thread(chroot, tmp_path, topics={"stock": 2}) as address:
        yield address


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> dict[Api, set[int]]:
    """The versions of the Fetch and ListOffsets requests; request this fixture before `bootstrap`."""
    seen: dict[Api, set[int]] = {Api.Fetch: set(), Api.ListOffsets: set()}
    for handlers, name, api in ((FetchHandlers, "fetch", Api.Fetch), (OffsetHandlers, "list_offsets", Api.ListOffsets)):
        handler = getattr(handlers, name)

        def spied(self: Any, context: Any, body: Any, handler: Any = handler, api: Api = api) -> Any:
            seen[api].add(context.version)
            return handler(self, context, body)

        monkeypatch.setattr(handlers, name, spied)
    return seen


def test_every_stock_client_reads_what_all_of_them_wrote(versions: dict[Api, set[int]], bootstrap: str) -> None:
    with (
        stock_client("clients", "kafka-python", bootstrap, "stock") as python,
        stock_client("clients", "aiokafka", bootstrap, "stock") as aio,
        stock_client("clients", "confluent-kafka", bootstrap, "stock") as confluent,
    ):
        children = dict(zip(CLIENTS, (python, aio, confluent), strict=True))
        written: dict[str, list[str]] = {}
        for child in children.values():
            for partition, values in heard(child).items():
                written.setdefault(partition, []).extend(values)
        for child in children.values():
            assert child.stdin is not None
            child.stdin.write(json.dumps({partition: len(values) for partition, values in written.items()}) + "\n")
            child.stdin.flush()
        read = {name: heard(child) for name, child in children.items()}
    assert read["aiokafka"] == read["confluent-kafka"]
    assert read["kafka-python"][str(PLAIN)] == read["aiokafka"][str(PLAIN)]
    for partition, values in read["aiokafka"].items():
        assert sorted(values) == sorted(written[partition]), "nothing lost, nothing twice"
        for client in CLIENTS:
            for codec in CODECS:
                mine = [value for value in values if value.startswith(f"{client} {codec} ")]
                assert mine in ([], [value.decode() for value in values_of(client, codec)]), "in order"
    # No client uses the old versions, which are for the originals: they cost a conversion, headers and times.
    assert min(versions[Api.Fetch]) >= 4
    assert min(versions[Api.ListOffsets]) >= 1


def test_stock_admin_clients_create_grow_list_and_delete_topics(bootstrap: str) -> None:
    with stock_client("clients", "admin", bootstrap, "a") as admin:
        assert heard(admin) == {"partitions": [0, 1, 2, 3, 4]}
        assert heard(admin) == {"created twice": False}
        assert heard(admin) == {"left": ["stock"]}
        assert heard(admin) == {"made by need": 0}, "auto.create.topics.enable"


# Stock admin clients against a live broker: each creates a topic, alters, describes, empties and deletes it.
#
# Each must see what it saw of a real 4.1.1 broker (`tests.support.stock.admins`).

SEEN: dict[str, dict[str, Any]] = {
    "confluent-kafka": {
        "cluster": [1, 1, 7],
        "configs": {"cleanup.policy": "delete", "max.message.bytes": "5000", "retention.ms": "70000"},
        "default": [True, False],
        "earliest": [2],
        "elected": ["ELECTION_NOT_NEEDED"],
        "low watermark": 2,
        "topic": [2, 8],
        "wrong": "INVALID_CONFIG",
    },
    "kafka-python": {
        "by id": True,
        "cluster": [1, 1],
        "configs": {"max.message.bytes": "5000", "retention.ms": "70000"},
        "low watermark": [2],
        "partitions": [1, 1],
        "sizes": [True, False],
        "wrong": "INVALID_CONFIG",
    },
    "aiokafka": {
        "cluster": [1, 1],
        "configs": {"max.message.bytes": "5000", "retention.ms": "604800000"},
        "created": [0],
        "low watermark": 2,
        "topic": 2,
        "wrong": [40],
    },
}


@pytest.mark.parametrize("client", SEEN)
def test_admin_client_sees_what_it_saw_of_4_1_1(chroot: str, tmp_path: Path, client: str) -> None:
    with broker_thread(chroot, tmp_path) as bootstrap:
        command = [sys.executable, "-m", "tests.support.stock.admins", client, bootstrap]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == SEEN[client]
