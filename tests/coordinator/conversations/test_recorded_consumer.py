"""What a real Kafka 4.1.1 answered to members of the `consumer` design, asked of our handlers."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.conversations.recorded import player, recording
from tests.support.coordinators.in_memory import LoneCoordinator
from tests.support.time.manual_clock import ManualClock
from tests.support.time.virtual_time import run_virtually

RECORDINGS = {
    name: recording(name)
    for name in (
        *("consumer", "consumer_further", "consumer_admin", "consumer_topics", "consumer_patterns"),
        *("consumer_patterns_paused", "consumer_many", "consumer_mixed"),
        *("consumer_mixed_disabled", "consumer_mixed_small"),
    )
}


PLAYED = [(name, c) for name, recorded in RECORDINGS.items() for c in recorded.conversations]


@pytest.mark.parametrize(("name", "conversation"), PLAYED, ids=[c for _, c in PLAYED])
def test_conversation_of_consumer_members_is_answered_as_4_1_1_answered_it(name: str, conversation: str) -> None:
    clock, recorded = ManualClock(), RECORDINGS[name]
    settings = {k: v for k, v in recorded.settings.items() if not k.startswith("share.")}

    async def play() -> list[str]:
        coordinator = LoneCoordinator(clock, settings, recorded.topics, topic_ids=recorded.topic_ids)
        await coordinator.lead_all()
        topic_ids = {topic: view.topic_id for topic, view in coordinator.cluster.snapshot.topics.items()}

        async def change_topic(topic: str, partitions: int) -> uuid.UUID | None:
            return coordinator.cluster.change_topic(topic, partitions)

        try:
            return await player(recorded, conversation, coordinator.connect, topic_ids, change_topic).play()
        finally:
            await coordinator.stop()

    differences = run_virtually(play(), clock)
    assert not differences, "\n".join(differences)


def test_protocol_that_is_turned_off_is_announced_and_refused_as_by_4_1_1() -> None:
    async def answers() -> list[Any]:
        settings = {"group.coordinator.rebalance.protocols": "classic"}
        coordinator = LoneCoordinator(ManualClock(), settings, {"t": 1})
        await coordinator.lead_all()
        connection = await coordinator.connect("c")
        joined = await connection.call(
            Api.ConsumerGroupHeartbeat,
            1,
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout=30_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        described = await connection.call(Api.ConsumerGroupDescribe, 1, group_ids=["g"])
        await coordinator.stop()
        return [joined, *described.groups]

    joined, described = run_virtually(answers(), ManualClock())
    assert joined.error_code is described.error_code is ErrorCode.unsupported_version
    assert (joined.member_id, joined.member_epoch, joined.assignment) == (None, 0, None)
    assert (described.group_id, described.error_message, described.group_state) == ("g", None, "")
