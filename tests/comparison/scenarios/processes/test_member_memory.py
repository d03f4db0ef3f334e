"""The positions that a member's application remembers, and so commits after a freeze."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

import pytest

from comparison.scenarios.processes.application import Breakage, ListenerBroken, Memory, Trouble
from kernel.values import Batch, Record, TopicPartition

KEPT, GIVEN_BACK = TopicPartition("orders", 0), TopicPartition("orders", 3)


def batch(partition: TopicPartition, last: int) -> Batch:
    return Batch(0, partition, (Record(*partition, last, 0, None, b""),))


def test_memory_forgets_revoked_partitions_and_keeps_lost_ones() -> None:
    memory = Memory()
    memory.add([batch(KEPT, 27), batch(GIVEN_BACK, 19)])
    asyncio.run(memory.on_revoked(0, frozenset({GIVEN_BACK})))
    assert memory.positions == {KEPT: 28}
    asyncio.run(memory.on_lost(0, frozenset({KEPT})))
    assert memory.positions == {KEPT: 28}


@pytest.mark.parametrize(
    ("callback", "raising"), [("any", "revoked"), ("revoked", "revoked"), ("assigned", "assigned"), ("", "")]
)
def test_listener_fails_in_the_callback_that_was_chosen_and_only_once(callback: str, raising: str) -> None:
    breakage = Breakage()
    memory = Memory(breakage)
    breakage.change(Trouble(callback, raises=True))
    calls = {"revoked": memory.on_revoked, "assigned": memory.on_assigned}
    for name, call in calls.items():
        with pytest.raises(ListenerBroken, match=f"on_{name}") if name == raising else nullcontext():
            asyncio.run(call(0, frozenset()))
    for call in calls.values():
        asyncio.run(call(0, frozenset()))


async def test_listener_is_slow_and_then_commits_unless_it_is_healed_meanwhile() -> None:
    commits: list[str] = []

    async def commit() -> None:
        commits.append("made")

    breakage = Breakage()
    memory = Memory(breakage, commit)
    loop = asyncio.get_running_loop()
    breakage.change(Trouble("revoked", for_ms=50, commits=True))
    begun = loop.time()
    await memory.on_assigned(0, frozenset())
    await memory.on_revoked(0, frozenset())
    assert loop.time() - begun >= 0.05
    assert commits == ["made"]
    await memory.on_revoked(0, frozenset())
    assert commits == ["made"], "once"
    breakage.change(Trouble("any", for_ms=3_600_000, commits=True))
    slow = asyncio.create_task(memory.on_assigned(0, frozenset()))
    await asyncio.sleep(0)
    breakage.change(Trouble())
    await slow
    assert commits == ["made"]
