"""The recorded conversations of a real Kafka 4.1.1, played to the coordinator's handlers under a clock that jumps.

Everything but the broker around it is real: codec, handlers, machine, timers. `test_live.py` plays them over TCP.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.conversations.recorded import FOLDER, player, recording
from tests.support.conversations.recorded_json import conversations_text
from tests.support.coordinators.in_memory import LoneCoordinator
from tests.support.time.manual_clock import ManualClock
from tests.support.time.virtual_time import run_virtually

RECORDINGS = {
    name: recording(name) for name in ("classic", "asked", "table", "transactions", "large", "bad", "further", "expiry")
}

#: Left out here: raw frames need a server.
PLAYED = [
    (name, conversation)
    for name, recorded in RECORDINGS.items()
    for conversation, content in recorded.conversations.items()
    if not any("raw" in step for step in content["steps"])
]


@pytest.mark.parametrize(("name", "conversation"), PLAYED, ids=[c for _, c in PLAYED])
def test_recorded_conversation_is_answered_as_4_1_1_answered_it(name: str, conversation: str):
    clock = ManualClock()
    recorded = RECORDINGS[name]

    async def play() -> list[str]:
        coordinator = LoneCoordinator(clock, recorded.settings, recorded.topics)
        await coordinator.lead_all()
        try:
            return await player(recorded, conversation, coordinator.connect).play()
        finally:
            await coordinator.stop()

    differences = run_virtually(play(), clock)
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_recording_is_written_one_step_a_line(path: Path):
    text = path.read_text(encoding="utf-8")
    assert text == conversations_text(json.loads(text))


def test_before_kip_211_offsets_expired_by_their_age_also_of_a_running_group():
    """What 1.1.1 answered otherwise: the scenario expired-offsets says so, and ours is like the later ones."""
    differing = {
        name: [step["responses"] for step in content["steps"] if "responses" in step]
        for name, content in RECORDINGS["expiry"].conversations.items()
    }
    for answers in (differing["expiry/active"], differing["expiry/left-long-after"]):
        (versions,) = answers
        offsets = {
            version: each["topics"][0]["partitions"][0]["committed_offset"] for version, each in versions.items()
        }
        assert offsets == {"1.1.1": -1, "3.9.1": 5, "4.1.1": 5}
    assert not differing["expiry/left"] + differing["expiry/commits-only"]
