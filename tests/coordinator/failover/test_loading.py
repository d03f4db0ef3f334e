"""A large partition is loaded in pieces: requests in between are answered, and afterwards everything is found."""

from __future__ import annotations

import asyncio
import gc
import itertools
from collections import Counter

import pytest

from coordinator.groups.placement import partition_of
from coordinator.groups.records import OffsetKey, OffsetRecord
from coordinator.service import loading
from coordinator.service.record_codec import encode
from kernel.wire.versions import Api
from tests.coordinator.failover.moving import NUMBER, PARTITIONS, SharedLogs, two_coordinators
from tests.support.time.manual_clock import ManualClock

#: Groups of the same partition, and the offsets of each.
GROUPS = [name for name in map("other-{}".format, range(100)) if partition_of(name, PARTITIONS) == NUMBER][:10]
OFFSETS_EACH = 200
OFFSETS = len(GROUPS) * OFFSETS_EACH


def filled() -> SharedLogs:
    """A log with committed offsets of many groups, to which more will be written."""
    shared = SharedLogs()
    for group_id, number in itertools.product(GROUPS, range(OFFSETS_EACH)):
        key, value = encode((OffsetKey(group_id, "t", number), OffsetRecord(number, -1, "", 1_700_000_000_000)))
        assert value is not None
        shared.pairs[key] = value
    return shared


@pytest.fixture
def in_many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """No piece is short enough for another one in the same turn of the loop."""
    monkeypatch.setattr(loading, "BUDGET_S", -1.0)


@pytest.mark.usefixtures("in_many_pieces")
async def test_requests_between_the_pieces_of_a_load_get_the_same_answers_as_during_the_read(virtual_clock):
    async with two_coordinators(virtual_clock, filled()) as (a, b):
        await a.leads(0)
        member = await a.stable()
        assert await a.commit(5, member, 1) == "none"
        responses: Counter[tuple[str, str]] = Counter()
        b.sees(1)
        while (found := await b.committed()) != 5:
            responses["fetch", str(found)] += 1
            responses["heartbeat", await b.heartbeat(member, 1)] += 1
            responses["sync", (await b.sync(member, 1)).error_code.name] += 1
            responses["commit", await b.commit(6, member, 1, partition=1)] += 1
            responses["describe", (await b.describe())[0]] += 1
        answered = {
            name: error
            for name, error in (
                ("fetch", "coordinator_load_in_progress"),
                ("heartbeat", "none"),
                ("sync", "rebalance_in_progress"),
                ("commit", "coordinator_load_in_progress"),
                ("describe", "coordinator_load_in_progress"),
            )
            if responses[name, error] > 1
        }
        assert answered.keys() == {"fetch", "heartbeat", "sync", "commit", "describe"}, responses
        # No member has to rejoin: the generation is as it was, and so is everything else that was stored.
        assert await b.heartbeat(member, 1) == "none"
        assert (await b.sync(member, 1)).assignment == b"everything"
        assert await b.commit(6, member, 1) == "none"
        for group_id in GROUPS:
            answer = await b.ask(Api.OffsetFetch, 7, group_id=group_id, topics=None)
            (topic,) = answer.topics
            assert [p.committed_offset for p in topic.partitions] == list(range(OFFSETS_EACH))


@pytest.mark.usefixtures("in_many_pieces")
async def test_leadership_lost_between_the_pieces_leaves_nothing_behind(virtual_clock):
    async with two_coordinators(virtual_clock, filled()) as (a, b):
        a.sees(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert await a.committed() == "coordinator_load_in_progress"
        await b.leads(1)
        await a.leads(None)
        assert await a.committed() == "not_coordinator"
        assert await b.commit(7) == "none"
        await a.leads(2)
        assert await a.committed() == 7


@pytest.mark.usefixtures("in_many_pieces")
async def test_session_begins_with_the_piece_that_wakes_its_group(virtual_clock):
    async with two_coordinators(virtual_clock, filled()) as (a, b):
        await a.leads(0)
        member = await a.stable()
        await asyncio.sleep(9)
        await b.leads(1)
        await asyncio.sleep(9)
        assert await b.describe() == ("Stable", [member])
        await asyncio.sleep(2)
        assert await b.describe() == ("Empty", [])


async def test_garbage_collections_skip_loaded_data_until_the_partition_is_given_up(
    monkeypatch: pytest.MonkeyPatch, virtual_clock: ManualClock
):
    monkeypatch.setattr(loading, "RECORDS_MIN", OFFSETS)
    async with two_coordinators(virtual_clock, filled()) as (a, _):
        before = gc.get_freeze_count()
        await a.leads(0)
        assert gc.get_freeze_count() >= before + OFFSETS
        assert gc.isenabled()
        await a.leads(None)
        assert gc.get_freeze_count() == 0
