"""The bystander on a real ZooKeeper: what it traces, and that neither trace nor counters mix it with the others."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from comparison.scenarios.plan.catalogue import scenario_named
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.request import RunRequest
from comparison.scenarios.processes.bystander_process import NAMESPACE, RATE
from comparison.scenarios.processes.children import ChildFailed, ChildProcess
from comparison.scenarios.processes.fork_server import ForkServer
from comparison.scenarios.testbed.bystander import BystanderChild
from comparison.scenarios.testbed.zookeeper_bed import ZooKeeperBed
from kernel.runtime import REAL
from kernel.trace.events import Role
from kernel.waiting import until
from kernel.zookeeper.counters import read_counters
from tests.support.trace.tracers import ListTracer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from comparison.scenarios.processes.children import OnEvent
    from kernel.zookeeper.embedded import EmbeddedZooKeeper


@asynccontextmanager
async def bystander_in(folder: Path) -> AsyncIterator[tuple[BystanderChild, ListTracer, list[Any]]]:
    """A bystander that has not been started, the runner's tracer, and the trace files that it lists."""
    (folder / "trace").mkdir()
    identity = {"run": "r", "scenario": "herd", "design": "eager", "seed": 1}
    request: Any = SimpleNamespace(
        run_dir=folder,
        identity=lambda name: {**identity, "process": name, "trace": str(folder / "trace" / f"{name}.jsonl")},
    )
    listed: list[Any] = []
    record: Any = SimpleNamespace(add_traces=lambda role, names: listed.append((role, names)))
    fork_server, tracer = await ForkServer.open(), ListTracer(process="runner")

    async def spawn(module: str, name: str, heard: OnEvent) -> ChildProcess:
        return await ChildProcess.spawn(fork_server, module, name, folder / f"{name}.log", heard)

    child = BystanderChild(request, tracer, record, spawn)
    try:
        yield child, tracer, listed
    finally:
        await child.stop(at_once=True)
        await fork_server.stop()


def events_in(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "trace" / "bystander.jsonl").read_bytes().splitlines()
    return [each for line in lines[1:] if "kind" in (each := msgspec.json.decode(line))]


async def test_bystander_reads_and_writes_in_turn_and_traces_how_long_each_took(
    zookeeper: EmbeddedZooKeeper, tmp_path: Path
) -> None:
    async with bystander_in(tmp_path) as (bystander, tracer, listed):
        await bystander.start(zookeeper.connect_string)
        await until(lambda: bystander.operations >= 40, 30, "some operations")
        bystander.check()
        await bystander.stop()
        assert listed == [(Role.BYSTANDER, ["bystander"])]
        assert [event["how"] for event in tracer.of("process_ended")] == ["stop"]
    events = events_in(tmp_path)
    assert {event["kind"] for event in events} == {"bystander_op"}
    assert all(event["ok"] and event["latency_ns"] > 0 for event in events)
    reads = sum(event["op"] == "getData" for event in events)
    # An operation that came due while there was no CPU for it is left out: the same one may come twice in a row.
    begun = [event["ns"] - event["latency_ns"] for event in events]
    left_out = max(0, (max(begun) - min(begun)) * RATE // 10**9 + 1 - len(events))
    assert 0 < reads < len(events)
    assert abs(2 * reads - len(events)) <= 2 + left_out
    assert '{"end":' in (tmp_path / "trace" / "bystander.jsonl").read_text(encoding="utf-8").splitlines()[-1]


async def test_counters_are_read_without_the_bystander(
    chroot: str, zookeeper: EmbeddedZooKeeper, tmp_path: Path
) -> None:
    address = ("127.0.0.1", zookeeper.servers[0].client_port)
    tracer = ListTracer(process="runner")
    async with bystander_in(tmp_path) as (bystander, _, _):
        await bystander.start(zookeeper.connect_string)
        await until(lambda: bystander.operations >= 20, 30, "some operations")
    scenario = scenario_named("herd")
    request = RunRequest(
        scenario=scenario,
        design="eager",
        parameters=scenario.defaults,
        configuration=configuration("eager", scenario.defaults),
        zookeeper="embedded",
        run="r",
        run_dir=tmp_path,
    )
    bed = ZooKeeperBed(request, tracer, tracer, record=None, runtime=REAL)  # type: ignore[arg-type]  # none is needed
    bed._addresses = (address,)
    await bed.count("join-1:before")
    assert read_counters(*address).per_namespace[NAMESPACE] > (0, 0)
    namespaces = {event["namespace"] for event in tracer.of("counters_read")}
    assert chroot.partition("/")[2] in namespaces
    assert NAMESPACE not in namespaces


async def test_bystander_that_cannot_start_or_has_ended_is_an_error(tmp_path: Path) -> None:
    async with bystander_in(tmp_path) as (bystander, _, _):
        bystander.check()  # not started
        bystander.heard({"event": "failed", "error": "no ZooKeeper"})
        with pytest.raises(ChildFailed, match="bystander did not start: no ZooKeeper"):
            bystander.check()
