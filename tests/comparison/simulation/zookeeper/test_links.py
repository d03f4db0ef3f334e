"""What one server sends to another arrives in order, whatever the delays, and after a cut."""

from __future__ import annotations

import asyncio
import contextvars

from comparison.simulation.zookeeper.links import Link
from kernel.waiting import until


def link_of(delays: list[float], arrived: list[int], cut: set[str]) -> Link[int]:
    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    return Link(loop, lambda: delays.pop(0), arrived.append, lambda: bool(cut), lambda: context)


async def test_later_item_arrives_no_earlier() -> None:
    arrived: list[int] = []
    link = link_of([0.03, 0.0, 0.0, 0.01], arrived, set())
    for item in range(4):
        link.send(item)
    await until(lambda: len(arrived) == 4, 60, "all items")
    assert arrived == [0, 1, 2, 3]


async def test_cut_holds_items_until_it_has_healed() -> None:
    arrived: list[int] = []
    cut: set[str] = set()
    link = link_of([0.0, 0.0, 0.0], arrived, cut)
    link.send(0)
    cut.add("cut")
    link.send(1)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert arrived == []
    cut.clear()
    link.resume()
    link.send(2)
    await until(lambda: len(arrived) == 3, 60, "all items")
    assert arrived == [0, 1, 2]


async def test_cleared_link_delivers_what_is_sent_afterwards() -> None:
    arrived: list[int] = []
    link = link_of([0.0, 0.0], arrived, set())
    link.send(0)
    link.clear()
    link.send(1)
    await until(lambda: bool(arrived), 60, "the second item")
    assert arrived == [1]
