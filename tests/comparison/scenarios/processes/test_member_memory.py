"""The positions that a member's application remembers, and so commits after a freeze."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

import pytest

from comparison.scenarios.processes.application import Breakage, ListenerBroken, Memory
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
    breakage.callback = callback
    calls = {"revoked": memory.on_revoked, "assigned": memory.on_assigned}
    for name, call in calls.items():
        with pytest.raises(ListenerBroken, match=f"on_{name}") if name == raising else nullcontext():
            asyncio.run(call(0, frozenset()))
    for call in calls.values():
        asyncio.run(call(0, frozenset()))
