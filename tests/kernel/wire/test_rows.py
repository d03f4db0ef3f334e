"""Responses that are encoded by rows have the same bytes as those that kio encodes as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from kernel.wire.codec import encode_response
from kernel.wire.rows import ROWS_MAX, RowEncoder
from kernel.wire.versions import SERVED, Api

MESSAGES: list[tuple[Api, str, dict[str, Any], dict[str, Any]]] = [
    (
        Api.DescribeGroups,
        "groups",
        {},
        {"group_id": "g", "members": [{"member_id": "m", "member_metadata": b"x" * 300}]},
    ),
    (Api.ListGroups, "groups", {"error_code": 15}, {"group_id": "g", "protocol_type": "consumer"}),
    (
        Api.Metadata,
        "topics",
        {"brokers": [{"node_id": 1, "host": "h", "port": 9}], "cluster_id": "c", "controller_id": 1},
        {"name": "t", "partitions": [{"partition_index": 0, "leader_id": 1, "replica_nodes": [1]}]},
    ),
    (Api.FindCoordinator, "coordinators", {}, {"key": "g", "host": "h"}),
]
CASES = [
    pytest.param(api, version, name, head, row, id=f"{api.name} {version}")
    for api, name, head, row in MESSAGES
    for version in range(SERVED[api][0], SERVED[api][1] + 1)
    if not (api is Api.FindCoordinator and version < 4)
]


@pytest.mark.parametrize(("api", "version", "name", "head", "row"), CASES)
def test_rows_are_encoded_as_the_whole_message_is(
    api: Api, version: int, name: str, head: dict[str, Any], row: dict[str, Any]
) -> None:
    for number in (0, 1, ROWS_MAX, 126, 127, 128):
        rows = [{**row, **({"group_id": f"g{n}"} if "group_id" in row else {})} for n in range(number)]
        encoder = RowEncoder(api, version, head, name)
        for at in range(0, number, ROWS_MAX):
            encoder.add(rows[at : at + ROWS_MAX])
        assert encoder.finish() == encode_response(api, version, 7, {**head, name: rows})[8:]


def test_count_of_very_many_rows_takes_three_bytes() -> None:
    row = {"key": ""}
    encoder = RowEncoder(Api.FindCoordinator, 4, {}, "coordinators")
    for _ in range(164):
        encoder.add([row] * ROWS_MAX)
    assert encoder.finish() == encode_response(Api.FindCoordinator, 4, 7, {"coordinators": [row] * 16_400})[8:]
