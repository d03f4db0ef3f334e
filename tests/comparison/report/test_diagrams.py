"""Diagrams of a recorded crash (three members, six partitions, one member killed), and of live members.

`crash/` holds its traces and the diagrams drawn from them. After an intended change, check the difference and update
the golden file.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from comparison.cli.diagram import diagram
from comparison.report.diagrams.sequence import escaped, sequence
from comparison.report.diagrams.timeline import timeline
from comparison.report.history.group_history import read_history
from comparison.report.history.steps import briefly, lines_of, merged, partitions_text, ranges
from kernel.errors import UserError
from kernel.trace.events import Role
from kernel.trace.writer import TraceIdentity, TraceWriter
from tests.comparison.report.mermaid import GANTT, SEQUENCE
from tests.support.commands.called import output_of
from tests.support.consumers.zookeeper import SETTINGS, produce, running_broker
from tests.support.trace.tracers import read_traces
from zkconsumer.consumer import ZooKeeperConsumer
from zkconsumer.settings import ZkConsumerConfig

RECORDED = Path(__file__).with_name("crash")


@pytest.fixture(scope="module")
def history():
    return read_history(read_traces(RECORDED))


def drawn(*arguments: str) -> str:
    return output_of(diagram, RECORDED, *arguments)


@pytest.mark.parametrize(
    ("golden", "arguments"),
    [
        ("sequence.mmd", []),
        ("timeline.mmd", ["--show", "timeline"]),
        ("timeline.svg", ["--format", "svg", "--from", "3.5", "--to", "8"]),
        ("steps.md", ["--show", "steps", "--member", "m3"]),
    ],
)
def test_a_recorded_crash_is_drawn_as_recorded(golden, arguments):
    assert drawn(*arguments) == (RECORDED / golden).read_text(encoding="utf-8")


def test_the_same_traces_give_the_same_text_in_any_order():
    files = sorted(map(str, RECORDED.glob("*.jsonl")))
    made = [output_of(diagram, *names, "--format", "markdown") for names in (files, files[::-1], files * 2)]
    assert made[0] == made[1] == made[2] == drawn("--format", "markdown")


def test_a_round_is_all_that_one_change_causes(history):
    assert [sorted({each.member.name for each in found.rebalances}) for found in history.rounds] == [
        ["m1", "m2", "m3"],
        ["m2", "m3"],
    ]
    assert history.chosen_round().number == 2  # the first after the kill
    (m3, m2) = history.rounds[1].rebalances
    assert (m3.attempts, m2.attempts) == ((("conflict", "owned by others: orders-3"), ("ok", "")), (("ok", ""),))
    listed = drawn("--list").splitlines()
    assert re.fullmatch(r" +2 +6\.\d+ +7\.\d+ +\d+ +\d+ +m2: members, ok *", listed[-2])


def test_every_operation_of_a_rebalance_has_a_line(history):
    for each in history.rounds:
        for rebalance in each.rebalances:
            traced = sum(event["kind"] == "zk_op" for event in rebalance.events)
            assert sum(line.count for line in lines_of(history, rebalance) if line.operations) == traced
            assert sum(line.count for line in briefly(lines_of(history, rebalance)) if line.operations) == traced
            assert sum(rebalance.operations()) == traced


@pytest.mark.parametrize("brief", [True, False])
def test_sequences_are_valid_mermaid(history, brief):
    for each in history.rounds:
        for line in sequence(history, each.rebalances, brief=brief).splitlines():
            assert SEQUENCE.fullmatch(line), line


def test_mermaids_own_syntax_is_written_as_codes():
    assert escaped('a;b<"#\n%é: x, /y') == "a#59;b#60;#34;#35;#10;#37;é: x, /y"


def test_a_change_comes_before_its_notifications(history):
    first = history.rounds[0]
    lines = merged(lines_of(history, each) for each in first.rebalances)
    for line in lines:
        if line.kind == "notified" and line.zxid:
            made = [other for other in lines if other.kind == "write" and other.zxid == line.zxid]
            assert all(lines.index(other) < lines.index(line) for other in made)


def test_gantt_charts_are_valid_mermaid():
    body = drawn("--show", "timeline").splitlines()[6:]
    assert body
    for line in body:
        bar = GANTT.fullmatch(line)
        assert bar, line
        assert bar[1] is None or int(bar[1]) < int(bar[2])


def test_a_picture_is_well_formed_and_shows_the_gap_of_a_dead_members_partitions(history):
    picture = drawn("--format", "svg", "--from", "3.5", "--to", "8")
    hints = [title.text or "" for title in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}title")]
    assert "backoff" in hints
    assert "kill m1" in hints
    assert any(hint.startswith("owned by nobody for ") for hint in hints)
    view = timeline(history, *(history.zero_ns + seconds * 10**9 for seconds in (3, 8)))
    lane = view.partitions[0]
    (dead, successor) = lane.named
    assert (lane.name, dead.member, successor.member) == ("orders-0", "m1", "m2")
    (unowned,) = lane.unclaimed
    assert unowned.from_ms + 2_000 < dead.until_ms < successor.from_ms  # its session outlives the process
    assert [each.member for each in lane.delivering if each.until_ms > unowned.from_ms] == ["m2"]
    assert [change.name for change in view.changes] == ["crash"]
    assert [(fault.fault, fault.target) for fault in view.faults] == [("kill", "m1")]


def test_a_picture_names_scenario_and_design_and_has_the_seconds_of_the_run_on_its_axis():
    root = ElementTree.fromstring(drawn("--format", "svg", "--from", "3.5", "--to", "8"))
    texts = ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "crash in zookeeper, group lab: rebalance 2, 3.500 to 8.000 s"
    assert [text for text in texts if re.fullmatch(r"\d\.\d", text)] == [f"{3.5 + n / 2:.1f}" for n in range(10)]


@pytest.mark.parametrize("suffix", ["png", "PNG", "pdf"])
def test_a_picture_that_is_not_drawn_is_refused_with_a_remedy(tmp_path, suffix):
    with pytest.raises(UserError, match=r"is not drawn. Use -o .*x\.svg, open it in a browser"):
        drawn("-o", str(tmp_path / f"x.{suffix}"))
    assert not list(tmp_path.iterdir())


def test_a_table_shows_only_the_requested_member():
    table = drawn("--show", "steps", "--member", "lab_c2")
    assert re.findall(r"^### .*", table, re.MULTILINE) == ["### m2: members"]
    assert "| R5 | releases everything it owns | `delete x 2 owners/orders/2-3` |" in table
    assert "R11" in table


def test_one_markdown_text_has_all_diagrams():
    text = drawn("--format", "markdown")
    assert text.count("```mermaid\n") == 2
    assert "sequenceDiagram" in text
    assert "gantt" in text
    assert text.count("### ") == 2


def test_a_file_gets_the_same_as_standard_output(tmp_path):
    assert drawn("-o", str(tmp_path / "out.mmd")) == ""
    assert (tmp_path / "out.mmd").read_text(encoding="utf-8") == drawn()


@pytest.mark.parametrize(
    ("name", "form"), [("x.svg", "svg"), ("x.md", "markdown"), ("x.mmd", "mermaid"), ("x.txt", "mermaid")]
)
def test_a_files_suffix_selects_the_format(tmp_path, name, form):
    drawn("--show", "timeline", "-o", str(tmp_path / name))
    assert (tmp_path / name).read_text(encoding="utf-8") == drawn("--show", "timeline", "--format", form)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--rebalance", "3"], "Give one from 1 to 2"),
        (["--rebalance", "0"], "Give one from 1 to 2"),
        (["--member", "m9"], "unknown member 'm9'. Use one of m1, m2, m3"),
        (["--member", "m1"], "m1 has no rebalance in this window, only m2, m3"),
        (["--rebalance", "1", "--from", "2"], "--rebalance and --from/--to exclude each other"),
        (["--from", "100"], "They last from 0 to"),
        (["--from", "3", "--to", "2"], "They last from 0 to"),
        (["--from", "3", "--to", "4"], "no member rebalances in this window"),
        (["--show", "steps", "--format", "svg"], "--show steps has no format svg. Use markdown"),
        (["--show", "sequence", "--format", "svg"], "has no format svg. Use mermaid or markdown"),
        (["-o", "/nowhere/at/all"], "Choose another with --output"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_reason(arguments, complaint):
    with pytest.raises(UserError, match=re.escape(complaint)):
        drawn(*arguments)


def changed(folder: Path, **header: object) -> Path:
    """m2's trace with another header."""
    first, *rest = (RECORDED / "m2.jsonl").read_text(encoding="utf-8").splitlines()
    decoded = json.loads(first)
    decoded["header"].update(header)
    path = folder / "changed.jsonl"
    path.write_text("\n".join([json.dumps(decoded), *rest]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        (lambda folder: [folder / "none"], "no such file or folder "),
        (lambda folder: [folder], "no trace (*.jsonl) in "),
        (lambda folder: [written(folder / "x.jsonl", "not json\n")], "none of these files is a trace"),
        (lambda folder: [written(folder / "empty.jsonl", "")], "none of these files is a trace"),
        (lambda folder: [changed(folder, run="another"), RECORDED], "of several runs"),
        (lambda folder: [changed(folder, design="eager"), RECORDED], "of several designs (eager, zookeeper)"),
        (lambda _: [RECORDED / "runner.jsonl"], "nobody rebalances in these traces"),
        (lambda folder: [two_runs(folder)], "2 runs in "),
    ],
)
def test_files_that_are_not_traces_of_one_group_are_refused_with_a_reason(tmp_path, files, complaint):
    with pytest.raises(UserError, match=re.escape(complaint)):
        output_of(diagram, *files(tmp_path))


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def two_runs(folder: Path) -> Path:
    for name in ("a", "b"):
        (folder / name / "trace").mkdir(parents=True)
        written(folder / name / "trace" / "m1.jsonl", "")
    return folder


def test_a_torn_line_is_ignored_with_a_warning(tmp_path):
    (tmp_path / "trace").mkdir()
    text = (RECORDED / "m2.jsonl").read_text(encoding="utf-8")
    written(tmp_path / "trace" / "m2.jsonl", text + '{"seq":')
    result = CliRunner().invoke(diagram, [str(tmp_path)])
    assert "m2.jsonl: 1 unusable lines ignored (torn)" in result.output
    assert "sequenceDiagram" in result.output


def test_consecutive_numbers_are_a_range():
    assert ranges(["3", "0", "1", "2", "5", "5"]) == "0-3, 5"
    assert ranges(["m2", "7", "m1"]) == "7, m2, m1"
    assert partitions_text([{"topic": "b", "partition": 1}, {"topic": "a", "partition": 0}]) == "b 1; a 0"
    assert partitions_text([]) == "nothing"


async def test_live_members_are_drawn(chroot, tmp_path):
    """From their own traces, without those of a runner or an observer."""
    async with running_broker(chroot, tmp_path / "data", {"t": 4}) as broker:
        await produce(broker, "t", 4, range(3))
        async with joined(chroot, tmp_path, "c1"), joined(chroot, tmp_path, "c2"):
            pass
    text = output_of(diagram, tmp_path / "c1.jsonl", tmp_path / "c2.jsonl", "--rebalance", "2")
    assert "participant p1 as c1\n    participant p2 as c2\n    participant zk as ZooKeeper" in text
    assert text.index("registers: create ids/c2") < text.index("zk--)p1: the children of ids have changed")
    assert all(SEQUENCE.fullmatch(line) for line in text.splitlines())
    assert "p1->>zk: R5 delete x 4 owners/t/0-3" in text


@asynccontextmanager
async def joined(chroot: str, folder: Path, name: str) -> AsyncIterator[None]:
    identity = TraceIdentity(run="now", scenario="", design="zookeeper", role=Role.MEMBER, process=name)
    given = {"zookeeper.connect": chroot, "group.id": "g", "consumer.id": name}
    config, _ = ZkConsumerConfig.from_settings({**SETTINGS, **given})
    tracer = TraceWriter(folder / f"{name}.jsonl", identity)
    consumer = ZooKeeperConsumer(config, tracer=tracer, process=name)
    try:
        await consumer.start()
        await consumer.subscribe({"t": 1})
        yield
    finally:
        await consumer.close()
        tracer.close()
