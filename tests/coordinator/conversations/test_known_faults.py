"""Known faults of Kafka's group coordinators: what a broker that has one answered, and what one without it answered.

Each conversation names its ticket. Without settings our handlers answer as 4.1.1 did, whichever side of the fix that
is; with the setting that is named after the ticket, as the broker on the other side.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kernel.broker.settings.ticket_settings import TICKET_SETTINGS
from tests.support.conversations.recorded import player, recording
from tests.support.coordinators.in_memory import LoneCoordinator
from tests.support.time.manual_clock import ManualClock
from tests.support.time.virtual_time import run_virtually

RECORDED = recording("known_faults")
OURS = "4.1.1"
#: Ticket -> the setting that is named after it.
SETTINGS = {int(setting.name.rpartition(".")[2]): setting.name for setting in TICKET_SETTINGS}


def played(conversation: str, version: str, settings: dict[str, str]) -> list[str]:
    """The differences from what the broker of a version answered."""
    clock = ManualClock()
    recorded = dataclasses.replace(RECORDED, followed=version)
    given = {k: v for k, v in recorded.settings.items() if not k.startswith("share.")}

    async def play() -> list[str]:
        coordinator = LoneCoordinator(clock, given | settings, recorded.topics)
        await coordinator.lead_all()
        topic_ids = {topic: view.topic_id for topic, view in coordinator.cluster.snapshot.topics.items()}
        try:
            return await player(recorded, conversation, coordinator.connect, topic_ids).play()
        finally:
            await coordinator.stop()

    return run_virtually(play(), clock)


def other_side(conversation: str) -> tuple[str, dict[str, str]]:
    """The version on the other side of the fix, and the setting that makes ours behave like it."""
    content: Any = RECORDED.conversations[conversation]
    version = content["faulty"] if content["mended"] == OURS else content["mended"]
    return version, {SETTINGS[content["ticket"]]: "true"}


@pytest.mark.parametrize("conversation", RECORDED.conversations)
def test_conversation_is_answered_as_4_1_1_answered_it(conversation: str) -> None:
    assert not played(conversation, OURS, {})


@pytest.mark.parametrize("conversation", RECORDED.conversations)
def test_with_its_setting_it_is_answered_as_by_the_other_side_of_the_fix(conversation: str) -> None:
    version, settings = other_side(conversation)
    shows_it = any("responses" in step for step in RECORDED.conversations[conversation]["steps"])
    assert bool(played(conversation, version, {})) is shows_it
    assert not played(conversation, version, settings)


@pytest.mark.parametrize("ticket", SETTINGS)
def test_each_setting_brings_back_what_4_1_1_has_not_or_mends_what_it_has(ticket: int) -> None:
    of_it: list[Any] = [c for c in RECORDED.conversations.values() if c["ticket"] == ticket]
    assert any("responses" in step for conversation in of_it for step in conversation["steps"])
    assert {c["mended"] == OURS for c in of_it} == {SETTINGS[ticket].startswith("fault.")}
