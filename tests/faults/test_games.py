"""Games with real processes: what is played happens, is shown as it happens, and ends without leftovers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import psutil
import pytest
from msgspec.structs import asdict

from comparison.own_scenarios import why_not_judged
from comparison.pipeline.analysis import analyze
from comparison.playground import commands, messages
from comparison.run_folder import run_dirs_in
from comparison.scenarios.plan.scenario_file import read_scenario
from comparison.scenarios.plan.vocabulary import AddPartitions, Inject
from tests.faults.played_game import Player, play

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.faults


def outcomes(folder: Path) -> dict[str, tuple[str, str]]:
    found = {}
    for run_dir in run_dirs_in(folder):
        written = json.loads((run_dir / "run.json").read_text())
        found[run_dir.name] = (written["outcome"], written["error"])
    return found


def test_a_split_brain_is_played_in_two_designs_and_only_one_of_them_has_two_consumers(
    tmp_path: Path, spark: SparkSession
) -> None:
    async def script(player: Player) -> None:
        def deliverers(design: str) -> set[tuple[str, ...]]:
            return {each.deliverers for each in player.group(design).partitions}

        assert "starting" in await player.act("kill", "m1")
        await player.running()
        await player.settled()
        assert await player.act("heal", "m2") == "every design: m2 is not cut off"
        assert await player.act("cut", "m2") == ""
        assert "heal it first" in await player.act("freeze", "m2")
        await player.until(
            lambda: any("two members deliver" in text for text in player.told("zookeeper")), "two to deliver"
        )
        await player.until(lambda: "m2" not in player.group("eager").coordinator.members, "eager to do without m2")
        # Not at once: the timer by which m2 stops itself and that of its coordinator end at about the same time.
        await player.until(
            lambda: deliverers("eager") == {("m1",)} and ("m1", "m2") in deliverers("zookeeper"),
            "both to deliver in zookeeper, and m2 to stop by itself in eager",
        )
        assert player.member("zookeeper", "m2").state is messages.MemberState.CUT
        assert await player.act("heal", "m2") == ""
        await player.settled()
        assert player.group("zookeeper").counters.two_delivering_partition_s > 0
        await player.until(
            lambda: sum("/owners/orders/" in node.path for node in player.group("zookeeper").znodes) == 4,
            "the tree to show four owners",
        )
        assert await player.send(commands.Stop()) == ""

    # With the four of the preset, a member that meets a paused one may give up for good.
    patient = {"rebalance.max.retries": "30"}
    player = play(tmp_path, ["zookeeper", "eager"], script, members=2, partitions=4, settings=patient)
    assert player.game.snapshot().status is messages.Status.ENDED
    assert outcomes(player.bundle) == {"zookeeper": ("complete", ""), "eager": ("complete", "")}
    played = [json.loads(line) for line in (player.bundle / "played.jsonl").read_text().splitlines()]
    assert [each["command"]["type"] for each in played] == ["member"] * 5 + ["stop"]
    result = analyze(spark, run_dirs_in(player.bundle), output=player.bundle)
    assert result.verdict == "as expected"
    for run in result.runs:
        counters = asdict(player.group(run.design).counters)
        assert counters == {name: run.metrics[name] for name in counters}


def test_members_and_partitions_come_and_go(tmp_path: Path) -> None:
    async def script(player: Player) -> None:
        await player.running()
        await player.settled()
        assert await player.send(commands.AddMembers(count=2)) == ""
        assert await player.send(commands.AddPartitions(count=1)) == ""
        assert await player.send(commands.SetRate(per_second=200)) == ""
        await player.until(lambda: len(player.group("cooperative").partitions) == 4, "the new partition")
        await player.settled()
        assert await player.send(commands.SetRate(per_second=5000)) == "at most 1000 records a second"
        assert await player.act("kill", "m1") == ""
        assert await player.act("kill", "m1") == "m1 has ended: start it first"
        assert await player.act("leave", "m3") == ""
        assert await player.act("freeze", "m9") == "there is no member m9"
        assert await player.act("slow", "m2", delay_ms=20) == ""
        await player.until(lambda: player.member("cooperative", "m3").ended == "left", "m3 to leave")
        assert await player.act("start", "m1") == ""
        await player.until(
            lambda: player.member("cooperative", "m1").state is messages.MemberState.RUNNING, "m1 to be back"
        )
        assert player.member("cooperative", "m1").process == "m1.2"
        assert player.member("cooperative", "m2").delay_ms == 20
        assert await player.act("freeze", "m2") == ""
        await player.until(
            lambda: player.member("cooperative", "m2").state is messages.MemberState.FROZEN, "m2 to freeze"
        )
        psutil.Process(_pid(player, "m4")).kill()
        await player.until(lambda: player.member("cooperative", "m4").ended == "by itself", "m4 to be missed")
        assert await player.send(commands.Stop()) == ""

    player = play(tmp_path, ["cooperative"], script, members=2, partitions=3)
    assert player.game.snapshot().reason == "stopped on the page"
    assert outcomes(player.bundle) == {"cooperative": ("complete", "")}


def _pid(player: Player, name: str) -> int:
    (trace,) = player.bundle.glob("playground/*/trace/runner.jsonl")
    events = [msgspec.json.decode(line) for line in trace.read_bytes().splitlines()]
    return next(e["child_pid"] for e in events if e.get("kind") == "process_started" and e["target"] == name)


def test_a_member_goes_through_a_rebalance_step_by_step(tmp_path: Path) -> None:
    async def script(player: Player) -> None:
        def waiting() -> tuple[messages.Waiting, ...]:
            return player.group("zookeeper").waiting

        await player.running()
        await player.settled()
        assert await player.send(commands.LetGo(member="m1")) == "m1 is not in step mode: press Step first"
        assert await player.send(commands.SetStepping(member="m1", on=True)) == ""
        assert await player.send(commands.AddMembers(count=1)) == ""
        rows = []
        table = player.group("zookeeper").table
        while "R11" not in {table[row].step for row in rows}:
            await player.until(waiting, "an operation to wait")
            rows += waiting()[0].rows
            before = waiting()
            assert await player.send(commands.LetGo(member="m1")) == ""
            await player.until(lambda before=before: waiting() != before, "the operation to go")
        steps = dict.fromkeys(table[row].step for row in rows)
        assert list(steps)[:3] == ["R1", "R2", "R3"]
        assert player.member("zookeeper", "m1").stepping
        assert await player.send(commands.SetStepping(member="m1", on=False)) == ""
        # By now the other one may have given up: at the end somebody comes, so that everything is delivered.
        await player.until(lambda: not waiting(), "m1 to go on")
        assert await player.send(commands.Stop()) == ""

    player = play(tmp_path, ["zookeeper"], script, members=1, partitions=2)
    assert outcomes(player.bundle) == {"zookeeper": ("complete", "")}


def test_a_game_that_nobody_watches_stops_by_itself(tmp_path: Path) -> None:
    async def script(_: Player) -> None:
        return

    player = play(tmp_path, ["eager"], script, idle_s=0.5, members=1, partitions=1)
    assert player.game.snapshot().status is messages.Status.ENDED
    assert player.game.snapshot().reason.startswith("nobody has watched for")
    assert outcomes(player.bundle) == {"eager": ("complete", "")}


def test_a_broker_that_dies_fails_the_game_and_ends_the_other_design(tmp_path: Path) -> None:
    async def script(player: Player) -> None:
        await player.running()
        (trace,) = player.bundle.glob("playground/eager/trace/broker-1.jsonl")
        header = msgspec.json.decode(trace.read_bytes().splitlines()[0])
        psutil.Process(header["header"]["pid"]).kill()

    player = play(tmp_path, ["zookeeper", "eager"], script, members=1, partitions=1)
    last = player.game.snapshot()
    assert last.status is messages.Status.FAILED
    assert "broker-1" in last.reason
    found = outcomes(player.bundle)
    assert (found["eager"][0], found["zookeeper"][0]) == ("failed", "interrupted")


def test_an_interrupted_game_keeps_its_traces(tmp_path: Path) -> None:
    async def script(player: Player) -> None:
        await player.running()
        assert await player.send(commands.AddPartitions(count=6)) == "added 4 of 6: the most is 24"
        assert await player.act("freeze", "m1") == ""
        player.interrupted.set()

    player = play(tmp_path, ["zookeeper"], script, members=2, partitions=20)
    assert player.game.snapshot().status is messages.Status.FAILED
    assert player.game.snapshot().reason == "the game was ended in the terminal (Ctrl-C)"
    scenario = read_scenario(player.bundle / "played.toml", why_not_judged).scenario
    played = [step for step in scenario.steps if isinstance(step, AddPartitions | Inject)]
    assert played == [AddPartitions(more=4, wait=False), Inject("freeze", "m1")]
    assert outcomes(player.bundle) == {"zookeeper": ("interrupted", "")}
