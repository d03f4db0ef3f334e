"""The messages between page and game, as JSON and as a sequence."""

from __future__ import annotations

import msgspec
import pytest

from comparison.playground import commands, messages
from comparison.playground.applying import applied
from tests.support.pages.played_example import RecordedGame, example


def test_commands_are_told_apart_by_their_type():
    sent = b'{"type": "member", "action": "slow", "member": "m2", "delay_ms": 20, "designs": ["eager"]}'
    command = msgspec.json.decode(sent, type=commands.AnyCommand)
    assert command == commands.ActOnMember(
        action=commands.MemberAction.SLOW, member="m2", delay_ms=20, designs=("eager",)
    )


@pytest.mark.parametrize(
    "sent",
    [
        b'{"type": "member", "action": "explode", "member": "m2"}',
        b'{"type": "add-members", "count": 6}',
        b'{"type": "add-members", "count": 0}',
        b'{"type": "rate", "per_second": -1}',
        b'{"type": "stop", "now": true}',
        b'{"type": "unknown"}',
        b"[]",
    ],
)
def test_a_command_that_makes_no_sense_is_refused_by_its_type(sent):
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(sent, type=commands.AnyCommand)


def test_the_example_survives_json_and_ends_with_a_report():
    first, increments = example()
    assert msgspec.json.decode(msgspec.json.encode(first), type=messages.Snapshot) == first
    now = first
    for increment in increments:
        assert msgspec.json.decode(msgspec.json.encode(increment), type=messages.Increment) == increment
        now = applied(now, increment)
    assert now.status is messages.Status.ENDED
    assert now.report.endswith("report.html")
    assert [member.name for member in now.groups[0].members] == ["m1", "m2", "m3"]
    assert [each.name for each in now.groups[1].partitions] == [f"orders-{number}" for number in range(6)]


def test_an_interval_that_ended_long_ago_is_forgotten_and_an_open_one_kept():
    first, increments = example()
    now = first
    for increment in increments:
        now = applied(now, increment)
    later = messages.Increment(seq=now.seq + 1, at_ms=now.at_ms + now.limits.lanes_ms)
    kept = applied(now, later).groups[0].intervals
    assert kept
    assert all(each.to_ms is None for each in kept)


async def test_a_recorded_game_plays_itself_and_remembers_commands():
    game = RecordedGame(example())

    received = [item async for item in game.subscribe()]
    assert (await game.command(commands.Stop())).accepted
    assert isinstance(received[0], messages.Snapshot)
    assert received[-1].seq == game.snapshot().seq
    assert game.commands == [commands.Stop()]
