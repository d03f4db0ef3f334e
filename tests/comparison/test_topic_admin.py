"""`TopicAdmin` with brokers whose answers lack something."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from click.testing import CliRunner

from comparison.cli.topic import topic
from comparison.topic_admin import PartitionDescription, TopicAdmin, TopicDescription
from kernel.broker.server.server import BrokerServer
from kernel.client.client import ClusterClient
from kernel.errors import ProtocolError
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api


@pytest.mark.parametrize(
    ("ask", "complaint"),
    [
        (lambda admin: admin.create("orders"), "answered CreateTopics with nonsense: 0 rows about one topic"),
        (lambda admin: admin.delete("orders"), "answered DeleteTopics with nonsense: 0 rows about one topic"),
        (lambda admin: admin.describe("orders"), "answered Metadata with nonsense: 0 rows about one topic"),
        (lambda admin: admin.settings("orders"), "answered DescribeConfigs with nonsense: 0 rows about one topic"),
    ],
)
async def test_answer_without_the_topic_is_an_error_that_names_the_broker_and_the_request(
    ask: Callable[[TopicAdmin], Awaitable[Any]], complaint: str
) -> None:
    server = BrokerServer(
        {
            Api.Metadata: lambda *_: {
                "brokers": [{"node_id": 1, "host": server.host, "port": server.port}],
                "controller_id": 1,
                "topics": [],
            },
            Api.CreateTopics: lambda *_: {"topics": []},
            Api.DeleteTopics: lambda *_: {"responses": []},
            Api.DescribeConfigs: lambda *_: {"results": []},
        }
    )
    await server.start()
    client = ClusterClient([(server.host, server.port)], "test")
    try:
        with pytest.raises(ProtocolError, match=f"{server.host}:{server.port} {complaint}"):
            await ask(TopicAdmin(client))
    finally:
        await client.close()
        await server.stop()


async def test_leader_that_does_not_know_it_yet_is_asked_again_for_offsets() -> None:
    answers = iter([ErrorCode.not_leader_or_follower, ErrorCode.unknown_topic_or_partition])

    def offset(*_: Any) -> dict[str, Any]:
        error = next(answers, ErrorCode.none)
        partition = {"partition_index": 0, "error_code": error, "timestamp": -1, "offset": 7 if not error else -1}
        return {"topics": [{"name": "orders", "partitions": [partition]}]}

    partition = {"partition_index": 0, "leader_id": 1, "replica_nodes": (1,), "isr_nodes": (1,), "error_code": 0}
    server = BrokerServer(
        {
            Api.Metadata: lambda *_: {
                "brokers": [{"node_id": 1, "host": server.host, "port": server.port}],
                "controller_id": 1,
                "topics": [{"name": "orders", "error_code": 0, "partitions": [partition]}],
            },
            Api.ListOffsets: offset,
            Api.DescribeConfigs: lambda *_: {"results": [{"error_code": 0, "configs": []}]},
        }
    )
    await server.start()
    client = ClusterClient([(server.host, server.port)], "test")
    try:
        (described,) = (await TopicAdmin(client).describe("orders")).partitions
        assert (described.begin_offset, described.end_offset) == (7, 7)
    finally:
        await client.close()
        await server.stop()


@pytest.mark.parametrize(
    ("begin", "end", "shown"), [(3, 5, "3 to 5"), (None, 5, "unknown"), (3, None, "unknown"), (None, None, "unknown")]
)
def test_offsets_of_which_one_is_unknown_are_shown_as_unknown(
    monkeypatch: pytest.MonkeyPatch, begin: int | None, end: int | None, shown: str
) -> None:
    async def describe(_admin: TopicAdmin, name: str) -> TopicDescription:
        partition = PartitionDescription(0, 1, (1,), (1,), begin, end)
        return TopicDescription(name=name, topic_id=None, is_internal=False, partitions=(partition,))

    monkeypatch.setattr(TopicAdmin, "describe", describe)
    stdout = CliRunner().invoke(topic, ["describe", "orders", "--bootstrap-server", "127.0.0.1:1"]).stdout
    assert f", offsets {shown}\n" in stdout
