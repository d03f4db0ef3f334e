"""What a real Kafka 4.1.1 answered to members of the `consumer` design, asked of our handlers, where they are mounted.

Left out so far: groups that classic members join.
"""

from __future__ import annotations

import re

import pytest

from coordinator.groups.consumer.requests import ConsumerSettings
from kernel.wire.versions import Api
from tests.support.conversations import player, recording
from tests.support.coordinators import LoneCoordinator
from tests.support.manual_clock import ManualClock
from tests.support.virtual_time import run_virtually

RECORDINGS = {name: recording(name) for name in ("consumer", "consumer_further")}
MISSING = {
    "mixed/classic-joins-consumer-group",
    "mixed/classic-unreadable-joins",
    "mixed/classic-joins-empty-consumer",
}


def is_regex(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


SETTINGS = ConsumerSettings(session_timeout_ms=3_000, heartbeat_interval_ms=500, members_max=4, is_regex=is_regex)


PLAYED = [(name, c) for name, recorded in RECORDINGS.items() for c in recorded.conversations if c not in MISSING]


@pytest.mark.parametrize(("name", "conversation"), PLAYED, ids=[c for _, c in PLAYED])
def test_conversation_of_consumer_members_is_answered_as_4_1_1_answered_it(name: str, conversation: str) -> None:
    clock, recorded = ManualClock(), RECORDINGS[name]
    settings = {k: v for k, v in recorded.settings.items() if not k.startswith(("group.consumer.", "share."))}

    async def play() -> list[str]:
        coordinator = LoneCoordinator(clock, settings, recorded.topics, consumer=SETTINGS, topic_ids=recorded.topic_ids)
        await coordinator.lead_all()
        topic_ids = {topic: view.topic_id for topic, view in coordinator.cluster.snapshot.topics.items()}
        try:
            return await player(recorded, conversation, coordinator.connect, topic_ids).play()
        finally:
            await coordinator.stop()

    differences = run_virtually(play(), clock)
    assert not differences, "\n".join(differences)


def test_coordinator_announces_these_requests_only_where_it_is_told_to() -> None:
    async def handlers(consumer: ConsumerSettings | None) -> set[Api]:
        return set(LoneCoordinator(ManualClock(), {}, {}, consumer=consumer).handlers)

    theirs = {Api.ConsumerGroupHeartbeat, Api.ConsumerGroupDescribe}
    assert not run_virtually(handlers(None), ManualClock()) & theirs
    assert run_virtually(handlers(SETTINGS), ManualClock()) >= theirs
