"""What a successor finds: the groups as they were last stored, whatever their members were doing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.coordinator.failover.moving import MovedCoordinator, two_coordinators
from tests.support.time.manual_clock import ManualClock


@asynccontextmanager
async def doomed_and_successor(clock: ManualClock) -> AsyncIterator[tuple[MovedCoordinator, MovedCoordinator]]:
    """A broker that leads at epoch 0 and is going to die, and its successor."""
    async with two_coordinators(clock) as (doomed, successor):
        await doomed.leads(0)
        yield doomed, successor


async def test_group_that_was_completing_is_loaded_stable_at_the_stored_generation(virtual_clock):
    async with doomed_and_successor(virtual_clock) as (doomed, successor):
        leader = await doomed.stable()
        newcomer = asyncio.create_task(doomed.join())
        await asyncio.sleep(0.1)
        again = await doomed.join(leader)
        assert (again.generation_id, (await newcomer).generation_id) == (2, 2)
        other = newcomer.result().member_id
        assert await doomed.describe() == ("CompletingRebalance", [leader, other])
        # It dies here: no member has synced, so nothing of generation 2 was stored.
        await successor.leads(1)
        assert await successor.describe() == ("Stable", [leader])
        assert await successor.heartbeat(leader, 2) == "illegal_generation"
        assert (await successor.sync(leader, 2)).error_code.name == "illegal_generation"
        assert await successor.commit(7, leader, 2) == "illegal_generation"
        assert await successor.heartbeat(other, 2) == "unknown_member_id"
        assert await successor.commit(7, other, 2) == "unknown_member_id"
        # Everything of the stored generation is as it was, including the assignment.
        assert await successor.heartbeat(leader, 1) == "none"
        assert (await successor.sync(leader, 1)).assignment == b"everything"
        assert await successor.commit(7, leader, 1) == "none"
        # What clients do then: one keeps its id, the other joins as a new member; there is a generation 2 again.
        joining = asyncio.create_task(successor.join())
        await asyncio.sleep(0.1)
        back = await successor.join(leader)
        assert (back.generation_id, (await joining).generation_id) == (2, 2)


async def test_members_that_had_only_joined_are_unknown_and_may_rejoin(virtual_clock):
    async with doomed_and_successor(virtual_clock) as (doomed, successor):
        parked = asyncio.create_task(doomed.join())
        await asyncio.sleep(0.01)
        assert not parked.done()
        await successor.leads(1)
        await doomed.leads(None)
        assert (await parked).error_code.name == "not_coordinator"
        assert await successor.describe() == ("Empty", [])
        assert (await successor.join("c-of-the-dead")).error_code.name == "unknown_member_id"
        assert (await successor.join()).generation_id == 1


async def test_sync_refused_by_the_fence_leaves_the_previous_generation(virtual_clock):
    """Until it notices that it was fenced the old one still answers; it sends nothing that is not stored."""
    async with doomed_and_successor(virtual_clock) as (doomed, successor):
        leader = await doomed.stable()
        again = await doomed.join(leader)
        assert again.generation_id == 2
        await successor.leads(1)
        synced = await doomed.sync(leader, 2, **{leader: b"too late"})
        assert (synced.error_code.name, synced.assignment) == ("not_coordinator", b"")
        assert await doomed.heartbeat(leader, 2) == "not_coordinator"
        assert await successor.heartbeat(leader, 2) == "illegal_generation"
        assert (await successor.sync(leader, 1)).assignment == b"everything"


async def test_sessions_restart_after_loading_and_expire_without_heartbeats(virtual_clock):
    async with doomed_and_successor(virtual_clock) as (doomed, successor):
        member = await doomed.stable()
        await asyncio.sleep(9)  # a second before its session would have ended
        await successor.leads(1)
        await asyncio.sleep(9)
        assert await successor.describe() == ("Stable", [member])
        assert await successor.heartbeat(member, 1) == "none"
        await asyncio.sleep(9)
        assert await successor.describe() == ("Stable", [member])
        await asyncio.sleep(2)
        assert await successor.describe() == ("Empty", [])


async def test_static_member_replaced_just_before_is_known_only_by_its_new_id(virtual_clock):
    """KAFKA-10284: the replacement is stored although there was no rebalance."""
    async with doomed_and_successor(virtual_clock) as (doomed, successor):
        first = await doomed.join(instance_id="one")
        await doomed.sync(first.member_id, 1, **{first.member_id: b"everything"})
        restarted = await doomed.join(instance_id="one")
        assert restarted.generation_id == 1
        assert restarted.member_id != first.member_id
        await successor.leads(1)
        assert await successor.describe() == ("Stable", [restarted.member_id])
        assert await successor.heartbeat(first.member_id, 1) == "unknown_member_id"
        assert await successor.heartbeat(restarted.member_id, 1) == "none"
        assert (await successor.sync(restarted.member_id, 1)).assignment == b"everything"


async def test_group_that_became_empty_stays_so_with_its_offsets(virtual_clock):
    async with doomed_and_successor(virtual_clock) as (doomed, successor):
        member = await doomed.stable()
        assert await doomed.commit(5, member, 1) == "none"
        await asyncio.sleep(11)
        assert await doomed.describe() == ("Empty", [])
        await successor.leads(1)
        assert await successor.describe() == ("Empty", [])
        assert await successor.heartbeat(member, 1) == "unknown_member_id"
        assert await successor.committed() == 5
        assert (await successor.join()).generation_id == 3, "becoming empty was another generation"
