"""The order of refusals for every request: invalid group id, stopping, loading, led elsewhere."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from coordinator.groups.placement import partition_of
from kernel.wire.versions import Api
from tests.support.coordinators.in_memory import HandlerConnection, LoneCoordinator, MemoryStorage
from tests.support.time.manual_clock import ManualClock
from tests.support.time.virtual_time import run_virtually

GROUP = "g"
SETTINGS = {"offsets.topic.num.partitions": "4", "group.initial.rebalance.delay.ms": "50"}
SESSION = {"session_timeout": 10_000, "rebalance_timeout": 10_000}
JOIN = {**SESSION, "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b""}]}
OFFSETS = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 5}]}]
FETCH = [{"name": "t", "partition_indexes": [0]}]
CIRCUMSTANCES = ("no id, stopping", "no id", "stopping, loading", "loading", "elsewhere", "led")

Row = tuple[int, int, int, int, int, int]

#: The answer in each circumstance; `no id` is the empty group id, sent to a coordinator that leads everything.
ANSWERS: dict[tuple[Api, int], Row] = {
    (Api.JoinGroup, 9): (24, 24, 15, 14, 16, 79),
    (Api.SyncGroup, 3): (24, 24, 15, 27, 16, 25),
    (Api.SyncGroup, 5): (24, 24, 15, 27, 16, 25),
    (Api.Heartbeat, 0): (24, 24, 15, 0, 16, 25),
    (Api.Heartbeat, 4): (24, 24, 15, 0, 16, 25),
    (Api.LeaveGroup, 0): (24, 24, 15, 14, 16, 25),
    (Api.LeaveGroup, 5): (24, 24, 15, 14, 16, 0),
    (Api.OffsetCommit, 2): (15, 0, 15, 14, 16, 0),
    (Api.OffsetCommit, 9): (15, 0, 15, 14, 16, 0),
    (Api.OffsetFetch, 1): (15, 0, 15, 14, 16, 0),
    (Api.OffsetFetch, 7): (15, 0, 15, 14, 16, 0),
    (Api.OffsetFetch, 8): (15, 0, 15, 14, 16, 0),
    (Api.DescribeGroups, 5): (15, 0, 15, 14, 16, 0),
    (Api.DescribeGroups, 6): (15, 69, 15, 14, 16, 69),
    (Api.DeleteGroups, 2): (15, 69, 15, 14, 16, 69),
    (Api.OffsetDelete, 0): (24, 24, 15, 14, 16, 69),
    (Api.TxnOffsetCommit, 2): (24, 24, 15, 14, 16, 49),
    (Api.TxnOffsetCommit, 3): (24, 24, 15, 14, 16, 49),
    (Api.ListGroups, 4): (15, 0, 15, 14, 0, 0),
}
CELLS = [
    pytest.param(api, version, circumstance, expected, id=f"{api.name} v{version}, {circumstance}")
    for (api, version), row in ANSWERS.items()
    for circumstance, expected in zip(CIRCUMSTANCES, row, strict=True)
]


@pytest.mark.kafka(
    "testInvalidGroupId",
    "testRequestHandlingWhileLoadingInProgress",
    "testJoinGroupWrongCoordinator",
    "testSyncGroupNotCoordinator",
    "testHeartbeatWrongCoordinator",
    "testLeaveGroupWrongCoordinator",
    "testStaticMembersWrongCoordinatorBatchLeaveGroup",
    "testFetchOffsetNotCoordinatorForGroup",
    "testDescribeGroupWrongCoordinator",
    "testDeleteGroupWithWrongCoordinator",
    "testDescribeGroupsGroupIdNotFoundException",
)
@pytest.mark.parametrize(("api", "version", "circumstance", "expected"), CELLS)
def test_request_is_refused_in_the_order_of_checks(api, version, circumstance, expected):
    group_id = "" if "no id" in circumstance else GROUP
    clock = ManualClock()

    async def play() -> None:
        coordinator = LoneCoordinator(clock, SETTINGS, {"t": 1}, MemoryStorage())
        connection = await coordinator.connect("c")
        if circumstance in {"no id", "no id, stopping", "led"}:
            await coordinator.lead_all()
        loading = await _loading(coordinator) if "loading" in circumstance else None
        if "stopping" in circumstance:
            await coordinator.stop()
        assert _error(api, await _ask(connection, api, version, group_id)) == expected
        if loading is not None:
            await loading
        await coordinator.stop()

    run_virtually(play(), clock)


async def _loading(coordinator: LoneCoordinator) -> asyncio.Task[None]:
    """The group's partition takes a second to load."""
    number = partition_of(GROUP, 4)
    log = await coordinator.storage.take_over_pairs(coordinator.tp(number), None, 0)
    log.gate.clear()
    leading = asyncio.create_task(coordinator.lead(number))
    asyncio.get_running_loop().call_later(1, log.gate.set)
    await asyncio.sleep(0.01)
    return leading


async def _ask(connection: HandlerConnection, api: Api, version: int, group_id: str) -> Any:
    body: dict[str, Any] = {"group_id": group_id}
    match api:
        case Api.JoinGroup:
            body |= JOIN
        case Api.SyncGroup if version >= 5:  # without them it is refused before any check
            body |= {"protocol_type": "consumer", "protocol_name": "range"}
        case Api.OffsetCommit:
            body |= {"generation_id_or_member_epoch": -1, "topics": OFFSETS}
        case Api.TxnOffsetCommit:
            body |= {"transactional_id": "x", "producer_id": 7, "producer_epoch": 0, "topics": OFFSETS}
        case Api.OffsetFetch if version >= 8:
            body = {"groups": [{"group_id": group_id, "topics": FETCH}]}
        case Api.OffsetFetch:
            body |= {"topics": FETCH}
        case Api.DescribeGroups:
            body = {"groups": [group_id]}
        case Api.DeleteGroups:
            body = {"groups_names": [group_id]}
        case Api.ListGroups:
            body = {}
    return await connection.call(api, version, **body)


def _error(api: Api, answer: Any) -> int:
    """The error in the response, wherever that API has it."""
    if api in {Api.OffsetCommit, Api.TxnOffsetCommit} or not hasattr(answer, "error_code"):
        topics = getattr(answer, "topics", None)
        (part,) = topics[0].partitions if topics else getattr(answer, "groups", None) or answer.results
        return int(part.error_code.value)
    return int(answer.error_code.value)
