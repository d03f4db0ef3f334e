"""A world's process: what it is asked for line by line gives the same traces and the same page, however it is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from comparison.playground import commands, messages
from comparison.playground.applying import changed
from comparison.playground.play.lifecycle import played_group
from comparison.playground.simulated.exchange import Asked, Begin, Finish, Give, GoOn, Reply
from comparison.scenarios.plan.played import PLAYGROUND

LIMITS = messages.Limits()
PARAMETERS = PLAYGROUND.parameters({"members": 2, "partitions": 2, "rate": 20, "seed": 3})
MS = 1_000_000
FREEZE = commands.ActOnMember(action=commands.MemberAction.FREEZE, member="m2")


def asked(folder: Path, design: str, lines: Sequence[Asked], *, hash_seed: int = 0) -> list[Reply]:
    """The replies of a world of its own."""
    begin = Begin(
        design=design, parameters=PARAMETERS.as_json(), bundle=str(folder), provenance={"of": "a test"}, limits=LIMITS
    )
    folder.mkdir()
    ended = subprocess.run(
        [sys.executable, "-c", "from comparison.playground.simulated.world_process import main; main()"],
        input=b"".join(msgspec.json.encode(line) + b"\n" for line in (begin, *lines)),
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    return [msgspec.json.decode(line, type=Reply) for line in ended.stdout.splitlines()]


def shown(design: str, replies: Sequence[Reply]) -> messages.Group:
    """The group as a page shows it at the end."""
    changes = [change for reply in replies for change in reply.changes]
    return changed(played_group(design, PARAMETERS.rate), changes, replies[-1].at_ns // MS, LIMITS)


def traces(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.glob("playground/*/trace/*.jsonl")}


def test_however_the_time_is_divided_the_same_happens_and_is_shown(tmp_path: Path) -> None:
    once, again = tmp_path / "once", tmp_path / "again"
    little_by_little: list[Asked] = [GoOn(until_ns=at_ms * MS) for at_ms in range(0, 1000, 37)]
    rest: list[Asked] = [GoOn(until_ns=at_ms * MS, to_event=at_ms < 1200) for at_ms in range(1000, 6001, 100)]

    first = asked(once, "zookeeper", [*little_by_little, GoOn(until_ns=1000 * MS), Give(command=FREEZE), *rest])
    at_once: list[Asked] = [GoOn(until_ns=1000 * MS), Give(command=FREEZE), GoOn(until_ns=first[-1].at_ns)]
    second = asked(again, "zookeeper", at_once, hash_seed=1)

    assert first[-1].at_ns == second[-1].at_ns == 6000 * MS
    assert traces(once) == traces(again)
    assert len(traces(once)) >= 5
    group = shown("zookeeper", first)
    assert group == shown("zookeeper", second)
    assert [each.state for each in group.members] == ["running", "frozen"]
    assert {each.deliverers for each in group.partitions} == {("m1",)}, "its session has expired"
    assert group.znodes
    assert group.feed


def test_a_step_ends_with_the_first_event_and_a_refusal_is_told(tmp_path: Path) -> None:
    step = GoOn(until_ns=60_000 * MS, to_event=True)
    thaw = commands.ActOnMember(action=commands.MemberAction.CONTINUE, member="m2")
    lines: list[Asked] = [Give(command=thaw), GoOn(until_ns=1000 * MS), Give(command=thaw), step, step]

    early, _, refused, one, other = asked(tmp_path / "runs", "eager", lines)[1:]

    assert early.refusal == "the group is still being started"
    assert refused.refusal == "m2 is not frozen"
    assert refused.is_formed
    assert 1000 * MS < one.at_ns < other.at_ns < 3000 * MS
    assert one.at_ns % MS == 0
    assert one.events
    assert other.events


def test_a_finished_group_ends_its_run(tmp_path: Path) -> None:
    lines: list[Asked] = [GoOn(until_ns=1000 * MS), Finish(), GoOn(until_ns=120_000 * MS)]

    last = asked(tmp_path / "runs", "eager", lines)[-1]

    assert last.ended == ""
    assert last.at_ns < 60_000 * MS
    assert b'"clock":"simulated"' in traces(tmp_path / "runs")["m1.jsonl"]


def test_as_much_is_added_as_there_is_room_for(tmp_path: Path) -> None:
    more = Give(command=commands.AddPartitions(count=6))
    lines: list[Asked] = [GoOn(until_ns=1000 * MS)]
    for at_ms in range(1100, 1600, 100):
        lines += [more, GoOn(until_ns=at_ms * MS)]

    said = [(reply.remark, reply.refusal) for reply in asked(tmp_path / "runs", "eager", lines)[3::2]]

    assert said == [("", "")] * 3 + [
        ("added 4 of 6: the most is 24", ""),
        ("", "the topic has 24 partitions; the maximum is 24"),
    ]


def test_a_member_that_works_slowly_leaves_when_it_is_asked_to(tmp_path: Path) -> None:
    """Its last record is cut short, and its end comes in the same turn of its loop."""
    slow = commands.ActOnMember(action=commands.MemberAction.SLOW, member="m2", delay_ms=200)
    leave = commands.ActOnMember(action=commands.MemberAction.LEAVE, member="m2")
    lines: list[Asked] = [GoOn(until_ns=3000 * MS), Give(command=slow)]
    lines += [GoOn(until_ns=6000 * MS), Give(command=leave), GoOn(until_ns=7000 * MS)]

    replies = asked(tmp_path / "runs", "eager", lines)

    assert not any(reply.refusal for reply in replies)
    assert [(each.state, each.ended) for each in shown("eager", replies).members[1:]] == [("ended", "left")]
