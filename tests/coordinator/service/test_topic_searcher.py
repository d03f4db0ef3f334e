"""Regular expressions asked of the handlers: searched beside the heartbeats, stored, and found by a successor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from coordinator.service import topic_searcher
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.coordinators.in_memory import LoneCoordinator
from tests.support.time.manual_clock import ManualClock


class Story:
    def __init__(self, coordinator: LoneCoordinator) -> None:
        self.coordinator = coordinator

    async def beat(self, epoch: int, *, member: str = "m", **told: Any) -> Any:
        joining = {"rebalance_timeout": 300_000, "topic_partitions": []}
        body = {"group_id": "g", "member_id": member, "member_epoch": epoch, **({} if epoch else joining), **told}
        connection = await self.coordinator.connect(member)
        answer = await connection.call(Api.ConsumerGroupHeartbeat, 1, **body)
        connection.close()
        return answer

    def topics(self, answer: Any) -> list[str]:
        names = self.coordinator.cluster.snapshot.topic_names
        return sorted(names[row.topic_id] for row in answer.assignment.topic_partitions)


@asynccontextmanager
async def playing(clock: ManualClock, **topics: int) -> AsyncIterator[Story]:
    coordinator = LoneCoordinator(clock, {}, topics)
    await coordinator.lead_all()
    try:
        yield Story(coordinator)
    finally:
        await coordinator.stop()


async def test_topics_that_match_come_with_a_later_epoch_internal_ones_too_as_from_4_1_1(
    virtual_clock: ManualClock,
) -> None:
    async with playing(virtual_clock, foo=1, food=1, bar=1) as told:
        joined = await told.beat(0, subscribed_topic_regex="foo.*|__.*")
        assert (joined.error_code, joined.member_epoch, told.topics(joined)) == (ErrorCode.none, 1, [])
        await asyncio.sleep(1)
        found = await told.beat(1)
        assert (found.member_epoch, told.topics(found)) == (2, ["__consumer_offsets", "foo", "food"])
        told.coordinator.cluster.change_topic("fool", 1)
        await asyncio.sleep(10)
        await told.beat(2)
        await asyncio.sleep(1)
        assert told.topics(await told.beat(2)) == ["__consumer_offsets", "foo", "food", "fool"]


async def test_wrong_expression_is_refused_with_kafkas_words(virtual_clock: ManualClock) -> None:
    async with playing(virtual_clock, foo=1) as told:
        refused = await told.beat(0, subscribed_topic_regex="fo[")
        assert refused.error_code.name == "invalid_regular_expression"
        assert refused.error_message == (
            "SubscribedTopicRegex `fo[` is not a valid regular expression: missing closing ]."
        )
        assert (await told.beat(5, subscribed_topic_regex="fo[")).error_code is ErrorCode.group_id_not_found


async def test_successor_knows_what_was_found(virtual_clock: ManualClock) -> None:
    async with playing(virtual_clock, foo=1) as told:
        await told.beat(0, subscribed_topic_regex="foo")
        await asyncio.sleep(1)
        assert told.topics(await told.beat(1)) == ["foo"]
        await told.coordinator.resign_all()
        await told.coordinator.lead_all(1)
        answer = await told.beat(2, rebalance_timeout=300_000, subscribed_topic_names=[], topic_partitions=[])
        assert (answer.member_epoch, told.topics(answer)) == (2, ["foo"])


async def test_search_that_takes_too_long_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, virtual_clock: ManualClock
) -> None:
    async with playing(virtual_clock, foo=1) as told:
        monkeypatch.setattr(topic_searcher, "MATCHING_S_MAX", 0.0)
        await told.beat(0, subscribed_topic_regex="foo")
        await asyncio.sleep(1)
        assert (await told.beat(1)).member_epoch == 1
        monkeypatch.undo()
        await asyncio.sleep(10)
        await told.beat(1)
        await asyncio.sleep(1)
        assert told.topics(await told.beat(1)) == ["foo"]
    assert "group g: a regular expression took longer than 0 s" in caplog.text
