"""Diagrams of groups with a coordinator, from recorded runs.

`coordinated/` holds traces and the diagrams drawn from them: a member joins two others (`server`, `eager` and
`cooperative`), and one of four is killed (`delayed`). Events that no diagram shows are removed. After an intended
change, check the difference and update the golden file.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from comparison.cli.diagram import diagram
from comparison.report.diagrams.sequence import sequence
from comparison.report.diagrams.timeline import timeline
from comparison.report.drawing.palette import styles
from comparison.report.drawing.picture import picture as draw
from comparison.report.drawing.scale import Scale
from comparison.report.history.exchanges import member_lines, without_details
from comparison.report.history.group_history import listing, read_history
from kernel.trace.reader import Trace
from tests.comparison.report.mermaid import GANTT, SEQUENCE
from tests.support.trace.tracers import read_traces

RECORDED = Path(__file__).with_name("coordinated")
NAMES = ("join-server", "join-eager", "join-cooperative", "crash-delayed")


def history_of(name: str):
    return read_history(read_traces(RECORDED / name))


def drawn(name: str, *arguments: str) -> str:
    result = CliRunner().invoke(diagram, [str(RECORDED / name), *arguments], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.output


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("golden", "arguments"),
    [("sequence.mmd", []), ("steps.md", ["--show", "steps"]), ("timeline.svg", ["--format", "svg"])],
)
def test_recorded_traces_give_the_recorded_diagrams(name, golden, arguments):
    assert drawn(name, *arguments) == (RECORDED / name / golden).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_diagrams_are_valid_mermaid(name):
    for brief in ("--brief", "--full"):
        for line in drawn(name, brief).splitlines():
            assert SEQUENCE.fullmatch(line), line
    for line in drawn(name, "--show", "timeline").splitlines()[6:]:
        assert GANTT.fullmatch(line), line


@pytest.mark.parametrize("name", NAMES)
def test_every_request_to_the_coordinator_has_a_line(name):
    history = history_of(name)
    for each in history.rounds:
        for rebalance in each.rebalances:
            lines = member_lines(history, rebalance)
            answers = sum(line.count for line in lines if line.kind == "answer" and "Heartbeat" not in line.what)
            at_once = sum(line.count for line in lines if line.what.startswith(("Offset", "Commit")))
            assert answers + at_once == rebalance.requests()
            assert [line for line in without_details(lines) if line.kind == "asks"]


@pytest.mark.parametrize("name", NAMES)
def test_a_request_comes_before_its_response_and_after_what_it_depends_on(name):
    history = history_of(name)
    for each in history.rounds:
        for rebalance in each.rebalances:
            lines = [line for line in member_lines(history, rebalance) if "Heartbeat" not in line.what]
            waiting = [line for line in lines if line.kind in ("asks", "answer")]
            for asked, answered in pairwise(waiting):
                if asked.kind == "asks":
                    assert (answered.kind, answered.what.partition(":")[0]) == ("answer", asked.what)
                    assert asked.began_ns <= answered.began_ns


def test_an_eager_member_stops_everything_then_joins_and_syncs():
    text = drawn("join-eager")
    for member, partitions in (("p1", "orders 0-1"), ("p2", "orders 2-3")):
        steps = (
            rf"b2-->>{member}: Heartbeat: REBALANCE_IN_PROGRESS",
            rf"Note over {member}: stops delivering {partitions}<",
            rf"{member}->>b2: JoinGroup",
            rf"b2-->>{member}: JoinGroup: generation 3",
            rf"{member}->>b2: SyncGroup",
            rf"b2-->>{member}: SyncGroup: orders",
        )
        assert re.search(".*".join(steps), text, re.DOTALL), text
    assert text.count("lead it") == text.count("computes everyone's assignment") == 1
    assert "ZooKeeper" not in text


def test_a_cooperative_member_stops_moving_partitions_and_rejoins_at_once():
    history = history_of("join-cooperative")
    assert [each["generations"] for each in listing(history)] == [[3, 4]]
    (moved,) = re.findall(r"\*(stops delivering [^*]*)\*", drawn("join-cooperative", "--show", "steps"))
    assert moved == "stops delivering orders 2, keeps orders 0"
    lanes = timeline(history, history.rounds[0].began_ns, history.rounds[0].ended_ns).partitions
    kept = [(lane.unclaimed, len(lane.delivering)) for lane in lanes if lane.name != "orders-2"]
    assert kept == [((), 1)] * 3  # never interrupted, although the coordinator names no owner between two generations
    assert all(len(lane.named) >= 2 for lane in lanes)


def test_in_the_server_design_only_the_coordinator_reads_zookeeper():
    text = drawn("join-server")
    notified = text.index("zk--)b1: the children of ids have changed")
    read = text.index("b1->>zk: getChildren ids", notified)
    stopped = text.index("b1-->>p1: AwaitCommand: stop", read)
    assert stopped < text.index("b1-->>p1: AwaitCommand: start generation 2: orders", stopped)
    assert re.findall(r"p\d[-x>)]+zk: .*", text) == ["p3->>zk: registers: create ids/m3"]


def test_a_delayed_group_waits_and_its_members_rejoin_by_themselves():
    history = history_of("crash-delayed")
    triggers = [{each.trigger for each in found.rebalances} for found in history.rounds[-2:]]
    assert triggers == [{"group-rebalancing"}, {"scheduled"}]
    before = drawn("crash-delayed", "--rebalance", str(len(history.rounds) - 1))
    assert "m2 is gone (session)" in before
    assert before.count("goes on with orders") == 3
    assert "stops delivering" not in before
    after = drawn("crash-delayed", "--rebalance", str(len(history.rounds)))
    assert after.count("may deliver orders") == 3


def test_the_list_shows_requests_and_generations():
    listed = drawn("join-eager", "--list").splitlines()
    assert listed[0].split()[:7] == ["REBALANCE", "FROM", "S", "TO", "S", "REQUESTS", "GENERATION"]
    assert re.match(r" +1 +[\d.]+ +[\d.]+ +12 +3 +m1: group-rebalancing, ok", listed[1])
    assert [line.split()[-3] for line in listed[2:4]] == ["m2:", "m3:"]  # sorted by name, whoever came first


# -- restarted members, and several streams --------------------------------------------------------------------------


def trace_of(process: str, *events: dict[str, object]) -> Trace:
    clock = {"boot_id": "b", "monotonic_ns": 0, "wall_ns": 0}
    header = {"run": "r", "role": "member", "design": "static", "scenario": "", "seed": 0, **clock}
    common = {"process": process, "member": None, "stream": None, "cause": ""}
    numbered = [{**common, "seq": number, **event} for number, event in enumerate(events)]
    return Trace(path=Path(process), header=header, events=tuple(numbered))


def rebalance(member: str, ns: int, stream: int = 0, owned: int = 0) -> list[dict[str, object]]:
    partitions = [{"topic": "t", "partition": owned}]
    common = {"member": member, "stream": stream, "cause": "generation:1"}
    return [
        {**common, "ns": ns, "kind": "rebalance_started", "trigger": "subscribe"},
        {**common, "ns": ns + 1, "kind": "member_started", "group": "g"},
        {**common, "ns": ns + 2, "kind": "phase_entered", "phase": "join", "attempt": 1},
        {**common, "ns": ns + 3, "kind": "partitions_assigned", "partitions": partitions, "all": partitions},
        {**common, "ns": ns + 4, "kind": "rebalance_ended", "outcome": "ok", "generation": 1},
        {**common, "ns": ns + 5, "kind": "partitions_revoked", "partitions": partitions, "all": []},
    ]


def test_incarnations_of_a_member_share_a_colour_and_a_lane():
    second = 10**9
    named = {"kind": "authority_named", "group": "g", "topic": "t", "partition": 0, "owner": "m1-0-b", "epoch": 1}
    history = read_history(
        [
            trace_of("m10", *rebalance("m10-0-a", second, owned=1)),
            trace_of("m1.2", *rebalance("m1-0-b", 3 * second)),
            trace_of("m1", *rebalance("m1-0-a", second)),
            trace_of("broker-1", {"ns": 3 * second, **named}),
        ]
    )
    assert [member.name for member in history.members] == ["m1", "m1.2", "m10"]
    view = timeline(history, 0, 4 * second)
    assert [each.member for each in view.partitions[0].named] == ["m1.2"]
    shown = ElementTree.fromstring(draw(view, Scale(0, view.began_ms, view.ended_ms), "x"))
    labels = [text.text for text in shown.iter() if text.tag.endswith("text")]
    assert [labels.count(name) for name in ("m1", "m1.2", "m10")] == [2, 0, 2]  # its row of phases, and the legend
    assert styles([view])["m1"] == styles([view])["m1.2"]
    assert timeline(history, 0, 2 * second).members == ("m1", "m10")  # the second incarnation has not begun


def test_each_stream_is_a_member():
    history = read_history([trace_of("m1", *rebalance("m1-0-a", 1000), *rebalance("m1-1-b", 2000, stream=1, owned=1))])
    assert [(member.name, member.ids) for member in history.members] == [("m1-0", ("m1-0-a",)), ("m1-1", ("m1-1-b",))]
    assert history.member_named("m1-1-b").name == "m1-1"
    assert sequence(history, history.rounds[0].rebalances).startswith("sequenceDiagram\n    participant p1 as m1-0\n")


def test_joiner_that_rebalances_after_all_others_belongs_to_the_round_that_it_caused():
    registered = {"ns": 1002, "kind": "member_started", "member": "m2-0-b", "stream": 0, "group": "g"}
    late = rebalance("m2-0-b", 3_000_000, owned=1)
    history = read_history([trace_of("m1", *rebalance("m1-0-a", 1000)), trace_of("m2", registered, *late)])
    assert [[each.member.name for each in found.rebalances] for found in history.rounds] == [["m1", "m2"]]
    alone = read_history([trace_of("m1", *rebalance("m1-0-a", 1000)), trace_of("m2", *late)])
    assert len(alone.rounds) == 2
