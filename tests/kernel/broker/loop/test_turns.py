"""Work in pieces: their order, the budget of a turn, what runs in between, and pieces that fail."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from kernel.broker.loop.turns import Turns
from kernel.runtime import REAL
from kernel.waiting import until


class Clock:
    """A clock that only pieces advance, in seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def counted(done: list[str], name: str, pieces: int, clock: Clock, piece_s: float) -> Iterator[None]:
    for number in range(pieces):
        clock.now += piece_s
        done.append(f"{name}{number}")
        yield


async def test_pieces_run_in_the_order_queued() -> None:
    done: list[str] = []
    clock = Clock()
    turns = Turns(clock, 0.002)
    turns.run_in_turns(counted(done, "a", 5, clock, 0.0009))
    turns.soon(lambda: done.append("b"))
    turns.run_in_turns(counted(done, "c", 2, clock, 0.0009))
    assert done == [], "queueing runs nothing"
    assert len(turns) == 3
    await until(lambda: not len(turns), 60, "all work to be done")
    assert done == ["a0", "a1", "a2", "a3", "a4", "b", "c0", "c1"]


@pytest.mark.parametrize(("piece_s", "a_turn"), [(0.0004, 5), (0.001, 2), (0.5, 1)])
async def test_turn_ends_with_the_piece_that_exhausts_its_budget(piece_s: float, a_turn: int) -> None:
    done: list[str] = []
    clock = Clock()
    turns = Turns(clock, 0.002)
    turns.run_in_turns(counted(done, "a", 20, clock, piece_s))
    for turn in range(1, 4):
        await asyncio.sleep(0)  # one turn of the loop
        assert len(done) == turn * a_turn


async def test_failing_piece_ends_only_its_own_work() -> None:
    def fails() -> Iterator[None]:
        done.append("before")
        yield
        raise RuntimeError("a bug")

    done: list[str] = []
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    turns = Turns(REAL.stopwatch)
    turns.run_in_turns(fails())
    turns.soon(lambda: done.append("after"))
    await until(lambda: not len(turns), 60, "all work to be done")
    turns.soon(lambda: done.append("later"))
    await until(lambda: not len(turns), 60, "the last piece")
    assert done == ["before", "after", "later"]
    assert [str(context["exception"]) for context in reported] == ["a bug"]


async def test_work_queued_by_a_piece_comes_last() -> None:
    done: list[str] = []
    turns = Turns(REAL.stopwatch)
    turns.soon(lambda: (done.append("a"), turns.soon(lambda: done.append("c"))))
    turns.soon(lambda: done.append("b"))
    await until(lambda: not len(turns), 60, "all work to be done")
    assert done == ["a", "b", "c"]


async def test_longest_piece_is_recorded_with_its_work() -> None:
    clock = Clock()
    turns = Turns(clock, 0.002)
    turns.run_in_turns(counted([], "a", 3, clock, 0.001), "many")
    turns.run_in_turns(counted([], "b", 1, clock, 0.25), "one")
    await until(lambda: not len(turns), 60, "all work to be done")
    assert (turns.longest, turns.longest_s) == ("one", pytest.approx(0.25))
    turns.forget_longest()
    assert (turns.longest, turns.longest_s) == ("", 0.0)
