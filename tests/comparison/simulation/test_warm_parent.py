"""The process that forks a child for each piece of work: what it keeps, what it does not, and how children end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import psutil
import pytest

from comparison.simulation import warm_parent
from comparison.simulation.warm_parent import WarmParent
from kernel.errors import ConfigurationError, EnvironmentFault

LOADED: list[str] = []
DONE: list[str] = []


def worked(given: str) -> tuple[list[str], list[str], int, int]:
    """What was loaded before, what was done before, and who works."""
    done = list(DONE)
    DONE.append(given)
    return LOADED, done, os.getpid(), os.getppid()


def ended(how: str) -> str:
    match how:
        case "exit":
            os._exit(3)
        case "error":
            raise ConfigurationError("it is wrong")
        case "forever":
            while True:
                pass
    return how


@pytest.fixture(autouse=True)
def _nobody_is_left() -> Iterator[None]:
    before = set(psutil.Process().children(recursive=True))
    yield
    assert not set(psutil.Process().children(recursive=True)) - before


async def test_what_is_warm_stays_and_what_a_child_did_does_not() -> None:
    parent = WarmParent(LOADED.append, worked)
    try:
        first, second, third = [
            await parent.do(kind, kind + str(number)) for number, kind in enumerate(("a", "a", "b"))
        ]
    finally:
        await parent.stop()
    assert (first[:2], second[:2], third[:2]) == ((["a"], []), (["a"], []), (["a", "b"], []))
    assert len({os.getpid(), first[3], first[2], second[2], third[2]}) == 5
    assert first[3] == second[3]


async def test_how_children_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_parent, "CPU_S_MAX", 1)

    parent = WarmParent(str, ended)
    try:
        with pytest.raises(EnvironmentFault, match="ended with exit code 3"):
            await parent.do("", "exit")
        with pytest.raises(ConfigurationError, match="it is wrong"):
            await parent.do("", "error")
        with pytest.raises(EnvironmentFault, match="not ended after 1 s of processor time"):
            await parent.do("", "forever")
        assert await parent.do("", "well") == "well"
    finally:
        await parent.stop()


async def test_stopping_ends_a_child_at_work() -> None:
    parent = WarmParent(str, ended)
    working = asyncio.create_task(parent.do("", "forever"))
    await asyncio.sleep(0)
    await parent.stop()
    with pytest.raises(EnvironmentFault, match="without a result"):
        await working
    with pytest.raises(EnvironmentFault, match="without a result"):
        await parent.do("", "well")
