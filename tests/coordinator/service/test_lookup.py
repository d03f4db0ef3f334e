"""FindCoordinator in all its versions, before and after `__consumer_offsets` exists."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator.service.lookup import Lookup
from kernel.broker.cluster.cluster_view import ClusterSnapshot, InvalidReplicationFactor
from kernel.broker.server.handlers import RequestContext
from kernel.wire.codec import decode_request, decode_response, encode_request, encode_response
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import SERVED, Api
from tests.support.coordinators.in_memory import SIZE, FixedCluster

OFFSETS = {"__consumer_offsets": 50}
LOWEST, HIGHEST = SERVED[Api.FindCoordinator]


def asked(version: int, body: dict[str, Any], *, before: dict[str, int], create: Any = None) -> Any:
    """The answer's entity; `create` is called for the missing topic and may change the cluster."""
    cluster = FixedCluster(before)

    async def create_internal_topic(name: str) -> None:
        assert name == "__consumer_offsets"
        create(cluster)

    lookup = Lookup(SimpleNamespace(cluster=cluster, create_internal_topic=create_internal_topic))  # type: ignore[arg-type]  # all that it uses
    request = decode_request(encode_request(Api.FindCoordinator, version, 1, "c", body)[SIZE:])
    context = RequestContext(0, "c", "127.0.0.1", Api.FindCoordinator, version, 1)

    async def main() -> Any:
        answer: Any = lookup.find(context, request.body)
        return answer if isinstance(answer, dict) else await answer

    answered = encode_response(Api.FindCoordinator, version, 1, asyncio.run(main()))
    return decode_response(Api.FindCoordinator, version, answered[SIZE:])[1]


def lead(cluster: FixedCluster) -> None:
    cluster.snapshot = FixedCluster(OFFSETS).snapshot


@pytest.mark.parametrize("version", range(LOWEST, HIGHEST + 1))
def test_coordinator_of_a_group_is_the_leader_of_its_partition(version: int):
    body: dict[str, Any] = {"key": "g"} if version < 4 else {"coordinator_keys": ["g"]}
    answer = asked(version, body, before=OFFSETS)
    found = answer if version < 4 else answer.coordinators[0]
    assert (found.error_code, found.node_id, found.host, found.port) == (ErrorCode.none, 1, "127.0.0.1", 9092)


def test_first_lookup_creates_the_topic():
    assert asked(2, {"key": "g"}, before={}, create=lead).node_id == 1


def test_topic_that_cannot_be_created_makes_the_client_retry():
    def refuse(_: FixedCluster) -> None:
        raise InvalidReplicationFactor("replication factor 3 with 1 broker")

    answer = asked(2, {"key": "g"}, before={}, create=refuse)
    assert (answer.error_code, answer.node_id) == (ErrorCode.coordinator_not_available, -1)


def test_partition_without_a_leader_makes_the_client_retry():
    def lead_nothing(cluster: FixedCluster) -> None:
        led = FixedCluster(OFFSETS).snapshot
        cluster.snapshot = ClusterSnapshot(topics=led.topics)

    answer = asked(2, {"key": "g"}, before={}, create=lead_nothing)
    assert (answer.error_code, answer.node_id) == (ErrorCode.coordinator_not_available, -1)


def test_transactional_id_is_coordinated_like_a_group_of_that_name():
    answer = asked(2, {"key": "g", "key_type": 1}, before=OFFSETS)
    assert (answer.error_code, answer.node_id) == (ErrorCode.none, 1)


def test_other_key_types_have_no_coordinator_here():
    answer = asked(2, {"key": "g", "key_type": 2}, before=OFFSETS)
    assert answer.error_code is ErrorCode.invalid_request
