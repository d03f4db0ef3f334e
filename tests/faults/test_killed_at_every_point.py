"""`kill -9` at every named point of a rebalance: of the member, of its coordinating broker, of the ZooKeeper server.

Verify that no record and no committed offset is lost, that every partition has one owner afterwards, and what else the
design promises, wherever in a rebalance a process dies.

Setup: an embedded ZooKeeper, two brokers, three members as processes, a producer that numbers its records.

Steps: a member joins; a process that passes the point (the member that decides, or the coordinating broker) stops
itself there, and the target is killed. A ZooKeeper server is started again with its data; a broker is not, and the
other one takes over.

Steps without an operation or a phase of their own (R7, R9 and R12 in zookeeper) lie between two points; R3a is taken
only without a broker.

Expectation per failure type: the verdicts of any run, "no record lost" and "final offsets" among them.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from comparison.pipeline.analysis import analyze
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.points import KILLED, POINTS
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.vocabulary import Form, KillAtPoint, Steady
from kernel.designs import CONSUMER, COOPERATIVE, DELAYED, EAGER, SERVER, STATIC, ZOOKEEPER
from tests.faults.one_run import performed, request_of
from tests.support.consumers.commander import commanded
from tests.support.consumers.consuming import partitions_of, shared_out
from tests.support.coordinators.failover import cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.faults

SEED = 20120517
CELLS = [(design, point.name, target) for design, points in POINTS.items() for point in points for target in KILLED]
#: What is run at every change.
IN_CI = {
    (ZOOKEEPER, "claim", "member"),
    (ZOOKEEPER, "R5", "server"),
    (SERVER, "completing", "member"),
    (EAGER, "decide", "broker"),
    (STATIC, "preparing", "member"),
    (COOPERATIVE, "resume", "broker"),
    (DELAYED, "claim", "server"),
    (CONSUMER, "reconciling", "broker"),
}
#: Longer than the brokers' sessions, so that the new coordinator is there in time; and an 0.8 rebalance has tries left
#: after the session of the member that was killed.
SETTINGS = {"session.timeout.ms": "6000", "rebalance.max.retries": "8"}


def scenario(point: str, target: str) -> Scenario:
    return Scenario(
        name="killed-at-a-point",
        symptom="A process died in the middle of a rebalance.",
        look_for=("no record and no committed offset is lost",),
        steps=(Form(), Steady(), KillAtPoint(point, target)),
        defaults=Parameters(members=2, partitions=4),
        brokers_min=2,
    )


def settings_of(design: str) -> dict[str, str]:
    if design == CONSUMER:
        return {"group.consumer.session.timeout.ms": SETTINGS["session.timeout.ms"]}
    return {name: value for name, value in SETTINGS.items() if name != "session.timeout.ms" or design != ZOOKEEPER}


@pytest.mark.parametrize(
    ("design", "point", "target"),
    [pytest.param(*cell, marks=[] if cell in IN_CI else pytest.mark.long, id=" ".join(cell)) for cell in CELLS],
)
def test_nothing_is_lost_and_the_group_settles_wherever_a_process_is_killed(
    design: str, point: str, target: str, given_seed: int | None, spark: SparkSession, tmp_path: Path
) -> None:
    seed = SEED if given_seed is None else given_seed
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    given = {"seed": seed, "settings": settings_of(design)}
    request = request_of(tmp_path, scenario(point, target), design, given)
    outcome = asyncio.run(performed(request))
    left = {child.pid for child in psutil.Process().children(recursive=True)} - before
    assert not left, "processes of the run are still running"
    assert (outcome.outcome, outcome.error) == ("complete", ""), f"seed {seed}: {outcome.error}"
    (run,) = analyze(spark, [request.run_dir], output=tmp_path / "result").runs
    verdicts = {verdict.check: f"{verdict.outcome}: {verdict.reason}" for verdict in run.verdicts}
    assert {"no record lost", "final offsets", "settles"} <= verdicts.keys()
    assert not {check: text for check, text in verdicts.items() if not text.startswith("as expected")}, f"seed {seed}"


# -- members of the server design whose coordinating broker, a process, is killed --------------------------------------


async def test_members_go_on_in_their_generation_when_the_coordinating_broker_is_killed(
    chroot: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        brokers = await stack.enter_async_context(cluster(chroot, tmp_path, 2))
        await brokers.create_topic("u", 4)
        members = []
        for _ in range(2):
            member = commanded(brokers.bootstrap, chroot)
            stack.push_async_callback(member.close)
            members.append(await member.begin({"u": 1}))
        await shared_out(members, partitions_of("u", 4))
        owned = [member.owned for member in members]
        await brokers.kill(await brokers.coordinator_of("g"))
        for member in members:
            outcome = await member.consumer.commit(dict.fromkeys(member.owned, 0))
            assert not outcome.refused
        assert [member.owned for member in members] == owned
        heard = [what for member in members for what, _, _ in member.listener.heard]
        assert heard.count("assigned") == heard.count("revoked") + 2  # the assignments before the kill
        assert "lost" not in heard
