"""Places and their processes: a process's configuration when it starts, restarts, or changes topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from comparison.run_folder import RunRecord
from comparison.scenarios.plan.catalogue import scenario_named
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.request import RunRequest
from comparison.scenarios.processes.lines import NEVER_JOINS, REFUSED
from comparison.scenarios.testbed.group_members import GroupMembers, NeverJoins, NobodyThere
from kernel.runtime import REAL
from kernel.trace.listed_file import ListedFile, run_file
from kernel.values import TopicPartition
from kernel.waiting import WaitTimeout
from tests.support.trace.tracers import ListTracer


class Child:
    """A process that ends on the command to leave."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[dict[str, Any]] = []
        self.returncode: int | None = None
        self.pid = 4711
        self.frozen = False

    def send(self, line: dict[str, Any]) -> None:
        self.lines.append(line)
        if line.get("command") == "leave":
            self.returncode = 0

    async def kill(self) -> int:
        self.returncode = -9
        return -9

    async def gone(self) -> int:
        assert self.returncode is not None
        return self.returncode


class Group:
    """Members of a run with fake processes; `children` by name."""

    def __init__(self, folder: Path, scenario: str, design: str, members: int) -> None:
        parameters = scenario_named(scenario).parameters({})
        request = RunRequest(
            scenario=scenario_named(scenario),
            design=design,
            parameters=parameters,
            configuration=configuration(design, parameters),
            zookeeper="embedded",
            run="r",
            run_dir=folder,
        )
        self.tracer = ListTracer()
        testbed = SimpleNamespace(
            request=request,
            tracer=self.tracer,
            partitions=[TopicPartition("orders", 0)],
            group="lab",
            bootstrap="localhost:1",
            zookeeper=SimpleNamespace(connect_for_member=lambda **_: "localhost:2"),
            check=lambda: None,
            spawn=self.spawn,
            runtime=REAL,
            record=RunRecord(folder, {}),
        )
        self.children: dict[str, Child] = {}
        self.heard: dict[str, Callable[[Mapping[str, object]], None]] = {}
        self.members = GroupMembers(testbed, members)  # type: ignore[arg-type]  # as much of it as is used

    async def spawn(self, _module: str, name: str, heard: Callable[[Mapping[str, object]], None]) -> Child:
        self.children[name] = Child(name)
        self.heard[name] = heard
        return self.children[name]

    def configured(self, name: str) -> dict[str, Any]:
        return self.children[name].lines[0]


@pytest.fixture
def group(request: pytest.FixtureRequest, tmp_path: Path) -> Group:
    return Group(tmp_path, *request.param)


@pytest.mark.parametrize("group", [("rolling-restart", "static", 2)], indirect=True)
async def test_a_restarted_process_is_another_one_at_the_same_place(group: Group, tmp_path: Path) -> None:
    members = group.members
    await members.warm_up()
    members.join(2)
    assert members.next_at("m1") == "m1.2"
    await members.go("m1", 1)
    assert members.present == 1
    await members.come_back("m1", {"session.timeout.ms": "7000"})
    assert (members.present, members.process_at("m1")) == (2, "m1.2")
    await members.go("m1", 1)
    await members.come_back("m1")
    await members.go("m1", 1)
    await members.come_back("m1", design="cooperative")
    found = run_file(tmp_path)
    assert found is not None
    assert found.traces == tuple((f"{name}.jsonl", name, "member") for name in ("m1", "m2", "m1.2", "m1.3", "m1.4"))
    assert [group.configured(name)["consumer"] for name in ("m1.3", "m1.4")] == ["", "cooperative"]
    for name in ("m1", "m1.2", "m1.3"):
        configuration = group.configured(name)
        assert (configuration["process"], configuration["place"]) == (name, "m1")
        assert configuration["trace"].endswith(f"/{name}.jsonl")
    sessions = [group.configured(name)["settings"]["session.timeout.ms"] for name in ("m1", "m1.2", "m1.3")]
    assert sessions == ["10000", "7000", "7000"], "settings of a place stay with it"
    ended = [(event["target"], event["how"]) for event in group.tracer.of("process_ended")]
    assert ended == [("m1", "leave"), ("m1.2", "leave"), ("m1.3", "leave")]


@pytest.mark.parametrize("group", [("split-brain-ensemble", "zookeeper", 100)], indirect=True)
def test_a_member_that_will_be_cut_off_is_one_of_those_that_come_at_the_start(group: Group) -> None:
    members = scenario_named("split-brain-ensemble").parameters({}).members
    assert group.members.victim in group.members.places[:members]


@pytest.mark.parametrize("group", [("rolling-restart", "eager", 2)], indirect=True)
async def test_a_frozen_process_is_not_asked_to_leave(group: Group) -> None:
    members = group.members
    await members.warm_up()
    members.join(2)
    group.children["m1"].frozen = True
    said = list(group.children["m1"].lines)
    with pytest.raises(NobodyThere, match="m1 is frozen, so it cannot leave"):
        await members.go("m1", 1)
    assert group.children["m1"].lines == said
    assert (members.present, members.is_gone("m1")) == (2, False)
    with pytest.raises(WaitTimeout, match=r"waiting for the group to settle \(m1 is frozen; 0 owners"):
        await members.until_settled(0.01)
    assert not group.tracer.of("process_ended")


@pytest.mark.parametrize("group", [("crash", "zookeeper", 2)], indirect=True)
async def test_a_member_that_could_not_start_is_not_waited_for(group: Group) -> None:
    members = group.members
    await members.warm_up()
    members.join(2)
    group.heard["m2"]({"kind": NEVER_JOINS, "process": "m2", "error": "no server answers"})
    members.check()
    with pytest.raises(NeverJoins, match="m2 could not join: no server answers"):
        await members.until_settled(60)
    with pytest.raises(WaitTimeout, match="waiting for the group to settle"):
        await members.until_settled(0.01, without="m2")
    await members.kill("m2")
    members.check_joining()


@pytest.mark.parametrize("group", [("crash", "eager", 2)], indirect=True)
async def test_a_member_that_was_refused_is_not_waited_for_and_may_be_started_again(group: Group) -> None:
    members = group.members
    await members.warm_up()
    members.join(2)
    claim = {"kind": "partitions_assigned", "process": "m1", "member": "m1", "stream": 0, "ns": 0}
    group.heard["m1"]({**claim, "partitions": [{"topic": "orders", "partition": 0}]})
    for kind in ("rebalance_started", "rebalance_ended"):
        group.heard["m1"]({"kind": kind, "process": "m1", "member": "m1", "outcome": "ok", "ns": 0})
    with pytest.raises(WaitTimeout):
        await members.until_settled(0.01)
    group.heard["m2"]({"kind": REFUSED, "process": "m2", "error": "the group is full"})
    await members.until_settled(60)
    assert (members.present, members.refused_places) == (1, ["m2"])
    assert "m2: the group is full" in members.view.summary()
    await members.go("m2", 1)
    assert (members.present, members.refused_places) == (1, [])
    await members.come_back("m2")
    assert (members.present, members.refused_places) == (2, [])


@pytest.mark.parametrize("group", [("crash", "static", 2)], indirect=True)
async def test_a_group_that_has_refused_everybody_is_not_waited_for(group: Group) -> None:
    await group.members.warm_up()
    group.members.join(2)
    for name in ("m1", "m2"):
        group.heard[name]({"kind": REFUSED, "process": name, "error": "no common strategy"})
    with pytest.raises(NeverJoins, match=r"refused all of its members .*m1, m2: no common strategy"):
        await group.members.until_settled(60)


@pytest.mark.parametrize("group", [("crash", "zookeeper", 2)], indirect=True)
async def test_members_are_added_at_new_places_and_stepped_one_by_one(group: Group) -> None:
    waiting = []
    members = group.members
    members.on_waiting = waiting.append
    await members.warm_up()
    members.join(2)
    assert await members.add(2) == ["m3", "m4"]
    assert (members.present, members.places) == (4, ["m1", "m2", "m3", "m4"])
    members.step("m3", on=True)
    group.heard["m3"]({"kind": "zk_waiting", "process": "m3", "behind": 0})
    members.let_go("m3")
    members.delay("m4", 20)
    assert group.configured("m4")["place"] == "m4"
    assert group.children["m3"].lines[1:] == [
        {"command": "join"},
        {"command": "step", "on": True},
        {"command": "let_go"},
    ]
    assert group.children["m4"].lines[-1] == {"command": "delay", "per_record_ms": 20}
    assert waiting == [{"kind": "zk_waiting", "process": "m3", "behind": 0}]
    assert group.members.view.summary().startswith("0 owners"), "a line that is no event does not reach the view"


@pytest.mark.parametrize("group", [("subscription-change", "eager", 5)], indirect=True)
async def test_members_subscribe_as_the_scenario_says_and_resubscribe_while_running(group: Group) -> None:
    members = group.members
    await members.warm_up()
    members.join(5)
    members.subscribe("m1", ["orders-1"])
    first = {name: sorted(child.lines[0]["topics"]) for name, child in group.children.items()}
    assert first == {
        "m1": ["orders-0"],
        "m2": ["orders-0"],
        "m3": ["orders-1"],
        "m4": ["orders-1"],
        "m5": ["orders-0", "orders-1"],
    }
    assert group.children["m1"].lines[-1] == {
        "command": "subscribe",
        "topics": {"orders-1": 1},
        "pattern": "",
        "streams": 1,
    }
    assert group.members.view.subscribed["m1"] == {"orders-1"}


@pytest.mark.parametrize("group", [("subscription-change", "zookeeper", 4)], indirect=True)
async def test_a_process_that_cannot_resubscribe_restarts_with_other_topics(group: Group) -> None:
    members = group.members
    await members.warm_up()
    members.join(4)
    await members.go("m3", 1)
    await members.come_back("m3", topics=["orders-0"])
    assert group.configured("m3.2")["topics"] == {"orders-0": 1}
    assert group.members.view.subscribed["m3.2"] == {"orders-0"}


@pytest.mark.parametrize(
    ("group", "spared"), [(("crash", "delayed", 2), True), (("crash", "eager", 2), False)], indirect=["group"]
)
def test_the_leader_is_spared_where_its_memory_matters(group: Group, spared: bool) -> None:
    members = group.members
    for name in ("m1", "m2"):
        rows = [{"topic": "orders", "partition": int(name[1])}]
        members.view.apply(
            {"ns": 0, "kind": "partitions_assigned", "process": name, "member": name, "stream": 0, "partitions": rows}
        )
    members.view.apply({"ns": 0, "kind": "phase_entered", "process": "m2", "member": "m2", "phase": "decide"})
    chosen = {members.choose_owner() for _ in range(50)}
    assert chosen == ({"m1"} if spared else {"m1", "m2"})


@pytest.mark.parametrize("group", [("mass-start", "zookeeper", 8)], indirect=True)
async def test_members_of_a_mass_start_join_within_its_time_as_the_seed_has_it(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    random = Random()
    random.setstate(group.members.random.getstate())
    await group.members.warm_up()
    monkeypatch.setattr("asyncio.sleep", sleep)
    await group.members.join_spread(8, 200)
    assert group.members.present == len(pauses) == 8
    assert all(pause >= 0 for pause in pauses)
    assert sum(pauses) == pytest.approx(max(random.random() for _ in range(8)) * 0.2)


@pytest.mark.parametrize("group", [("crash", "eager", 2)], indirect=True)
async def test_a_process_that_is_killed_before_it_opens_its_trace_has_none(group: Group, tmp_path: Path) -> None:
    members = group.members
    await members.warm_up()
    members.join(2)
    assert [each.process for each in listed(tmp_path)] == ["m1", "m2"]
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace" / "m1.jsonl").touch()
    for name in ("m1", "m2"):
        await members.kill(name)
    assert [each.process for each in listed(tmp_path)] == ["m1"]
    (tmp_path / "trace" / "m1.jsonl").unlink()
    group.members._testbed.record.end({})
    assert [each.process for each in listed(tmp_path)] == ["m1"], "what goes later is missed"


def listed(folder: Path) -> tuple[ListedFile, ...]:
    found = run_file(folder)
    assert found is not None
    return found.traces or ()
