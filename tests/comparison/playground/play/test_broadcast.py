"""Every page gets each increment once and in order, whenever it comes and however slowly it reads."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from comparison.playground import messages
from comparison.playground.play.broadcast import Broadcast
from kernel.waiting import until


def fresh(kept: int = 10) -> Broadcast:
    return Broadcast(messages.Snapshot(seq=0, at_ms=0, status=messages.Status.RUNNING), kept=kept)


async def received(broadcast: Broadcast, after: int | None = None) -> list[tuple[str, int]]:
    return [(type(item).__name__, item.seq) async for item in broadcast.follow(after)]


async def test_a_page_that_comes_late_gets_a_snapshot_and_what_follows() -> None:
    broadcast = fresh()
    broadcast.publish(100)
    following = asyncio.create_task(received(broadcast))
    await asyncio.sleep(0)
    broadcast.publish(200)
    broadcast.publish(300)
    broadcast.end()
    assert await following == [("Snapshot", 1), ("Increment", 2), ("Increment", 3)]
    assert await received(broadcast) == [("Snapshot", 3)]


async def test_a_page_that_comes_back_goes_on_after_the_last_increment_it_has() -> None:
    broadcast = fresh()
    for at_ms in (100, 200, 300):
        broadcast.publish(at_ms)
    broadcast.end()
    assert await received(broadcast, 1) == [("Increment", 2), ("Increment", 3)]
    assert await received(broadcast, 3) == []
    assert await received(broadcast, 7) == [("Snapshot", 3)], "of another game"


async def test_a_page_that_has_fallen_too_far_behind_gets_a_snapshot() -> None:
    broadcast = fresh(kept=2)
    for at_ms in range(5):
        broadcast.publish(at_ms)
    broadcast.end()
    assert await received(broadcast, 1) == [("Snapshot", 5)]
    assert await received(broadcast, 3) == [("Increment", 4), ("Increment", 5)]


async def test_the_snapshot_has_every_change() -> None:
    broadcast = fresh()
    broadcast.publish(100, [messages.StatusChanged(status=messages.Status.FAILED, reason="the disk is full")])
    assert (broadcast.snapshot.status, broadcast.snapshot.reason) == (messages.Status.FAILED, "the disk is full")


async def test_a_game_knows_for_how_long_nobody_has_watched() -> None:
    broadcast = fresh()
    await until(lambda: broadcast.unwatched_s > 0, 60, "time to pass")
    async with aclosing(broadcast.follow()) as items:
        await anext(items)
        assert broadcast.unwatched_s == 0
    await until(lambda: broadcast.unwatched_s > 0, 60, "time to pass")


async def test_a_game_that_begins_again_is_new_to_every_page() -> None:
    broadcast = fresh()
    for at_ms in (100, 200):
        broadcast.publish(at_ms)
    late, quick = asyncio.create_task(received(broadcast, 1)), asyncio.create_task(received(broadcast, 2))
    await asyncio.sleep(0)
    broadcast.begin_again(messages.Snapshot(seq=0, at_ms=0, status=messages.Status.RUNNING))
    broadcast.publish(50)
    broadcast.end()
    assert await quick == [("Snapshot", 4)]
    assert await late == [("Increment", 2), ("Snapshot", 4)]
    assert broadcast.snapshot.at_ms == 50
