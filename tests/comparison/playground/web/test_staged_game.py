"""The game that these tests stage gives its pages what the real one does."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest

from comparison.playground.messages import Increment, RateChanged
from comparison.playground.play.broadcast import Broadcast
from tests.comparison.playground.web.staged_game import StagedGame
from tests.support.pages.playground import RUNNING, example_at


class Staged:
    def __init__(self, first, kept):
        self.game = StagedGame(first, kept=kept)
        self.subscribe, self.end = self.game.subscribe, self.game.end

    def publish(self, *changes):
        self.game.change(*changes)


class Real:
    """The part of the real game that pages read from."""

    def __init__(self, first, kept):
        self.game = Broadcast(first, kept=kept)
        self.subscribe, self.end = self.game.follow, self.game.end
        self.at_ms = first.at_ms

    def publish(self, *changes):
        self.at_ms += 100
        self.game.publish(self.at_ms, changes)


@pytest.mark.parametrize("make", [Staged, Real])
@pytest.mark.parametrize(("after", "expected"), [(None, 1), (0, 1), (-5, 1), (5, 0), (7, 0), (9, 0), (99, 1)])
async def test_page_gets_what_it_has_missed_or_a_snapshot_and_all_that_follows(make, after, expected):
    """Of nine increments, the last five are kept; two more follow. The snapshot comes first, if at all."""
    first = example_at(0)
    game = make(first, 5)
    for rate in range(9):
        game.publish(RateChanged(design="eager", rate=rate))
    found = []
    async with aclosing(game.subscribe(after)) as items:
        if after == 9:
            game.publish()
        found.append(await anext(items))
        game.publish()
        game.publish(RateChanged(design="eager", rate=77))
        game.end()
        found += [item async for item in items]
    assert [isinstance(item, Increment) for item in found] == [False] * expected + [True] * (len(found) - expected)
    assert [item.seq for item in found] == list(range(found[0].seq, found[-1].seq + 1))
    if not expected:
        assert found[0].seq == after + 1
    assert found[-1].changes == (RateChanged(design="eager", rate=77),)


def test_both_apply_what_is_published():
    first = example_at(RUNNING)
    games: list[Any] = [make(first, 5) for make in (Staged, Real)]
    for game in games:
        game.publish(RateChanged(design="eager", rate=5))
    assert games[0].game.snapshot() == games[1].game.snapshot
