"""Hand-written runs in two designs, analysed without Spark, for tests of the report's drawings.

One partition's owner m1 is cut off from 2 s to 8 s. In `zookeeper` it goes on, so that two members deliver from 5 s to
8.5 s, and its commit moves the offset back; in `eager` it stops, and its commit is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from comparison.cli.report_file import REPORT, write_report
from comparison.pipeline.analysis import analyze
from comparison.results.result import Result
from comparison.run_folder import write_json
from tests.support.runs.inline_spark import InlineSpark
from tests.support.trace.traces import e, write_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OWN_IDS = {"m1": "g_host-1-aa", "m2": "g_host-2-bb"}
#: A member id as a coordinator makes it.
UUID = "12345678-1234-1234-1234-123456789abc"


def _runner() -> list[dict[str, Any]]:
    return [
        e(0, "runner", "run_started", parameters={"members": 2, "partitions": 2, "rate": 5}),
        *(e(0, "runner", "process_started", target=name, child_pid=1) for name in OWN_IDS),
        e(500, "runner", "change_started", change="form", round=1, members=2),
        e(900, "runner", "change_settled", change="form", round=1, members=2),
        e(1_000, "runner", "stage_entered", stage="steady"),
        e(2_000, "runner", "fault_started", fault="cut", target="m1"),
        e(8_000, "runner", "fault_ended", fault="cut", target="m1"),
        e(10_000, "runner", "stage_entered", stage="final"),
        e(10_500, "runner", "run_ended", outcome="complete"),
    ]


def _polls(process: str, member: str, p: int, from_ms: int, until_ms: int) -> Iterable[dict[str, Any]]:
    for at in range(from_ms, until_ms + 1, 250):
        first = at // 250
        serials = {"serial_first": first, "serial_last": first}
        yield e(at, process, "records_delivered", p=p, first=first, last=first, member=member, **serials)


def _phases(process: str, member: str, at_ms: int) -> list[dict[str, Any]]:
    given = {"member": member, "stream": 0}
    return [
        e(at_ms, process, "rebalance_started", trigger="x", **given),
        e(at_ms, process, "phase_entered", phase="join", attempt=1, **given),
        e(at_ms + 100, process, "phase_entered", phase="claim", attempt=1, **given),
        e(at_ms + 150, process, "attempt_ended", attempt=1, outcome="ok", **given),
        e(at_ms + 150, process, "rebalance_ended", outcome="ok", **given),
    ]


def zookeeper_events() -> list[dict[str, Any]]:
    m1, m2 = OWN_IDS.values()
    where = {"group": "g"}
    return [
        *_runner(),
        *(e(400, name, "member_started", **where, member=id_) for name, id_ in OWN_IDS.items()),
        *_phases("m1", m1, 600),
        *_phases("m2", m2, 4_700),
        e(800, "observer", "authority_named", **where, p=0, owner=f"{m1}-0", epoch=1),
        e(800, "observer", "authority_named", **where, p=1, owner=f"{m2}-0", epoch=1),
        e(800, "m1", "partitions_assigned", t="t0", member=m1),
        e(800, "m2", "partitions_assigned", t="t1", member=m2),
        *_polls("m1", m1, 0, 1_000, 8_500),
        *_polls("m2", m2, 1, 1_000, 9_500),
        e(4_500, "observer", "authority_cleared", **where, p=0, owner=f"{m1}-0", epoch=1, reason="session"),
        e(4_800, "observer", "authority_named", **where, p=0, owner=f"{m2}-0", epoch=2),
        e(4_800, "m2", "partitions_assigned", t="t0", member=m2, all=[{"topic": "t", "partition": n} for n in (0, 1)]),
        *_polls("m2", m2, 0, 5_000, 9_500),
        e(1_900, "observer", "offset_written", **where, p=0, offset=8, by=m1, epoch=-1),
        e(7_900, "observer", "offset_written", **where, p=0, offset=30, by=m2, epoch=-1),
        e(8_400, "observer", "offset_written", **where, p=0, offset=9, by=m1, epoch=-1),
        e(8_600, "m1", "partitions_revoked", t="t0", member=m1, all=[]),
    ]


def eager_events() -> list[dict[str, Any]]:
    m1, m2 = (f"{name}-{UUID}" for name in OWN_IDS)
    where = {"group": "g"}
    return [
        *_runner(),
        *(e(400, name, "member_started", **where, member=f"{name}-{UUID}", stream=0) for name in OWN_IDS),
        *_phases("m1", m1, 600),
        *_phases("m2", m2, 4_700),
        *(
            e(at, "broker-1", "group_changed", **where, state=state, generation=number, members=members, reason="")
            for at, state, number, members in (
                (600, "PreparingRebalance", 0, 0),
                (700, "CompletingRebalance", 1, 2),
                (790, "Stable", 1, 2),
                (4_600, "PreparingRebalance", 1, 1),
                (4_700, "CompletingRebalance", 2, 1),
                (4_790, "Stable", 2, 1),
            )
        ),
        e(800, "broker-1", "authority_named", **where, p=0, owner=m1, epoch=1),
        e(800, "broker-1", "authority_named", **where, p=1, owner=m2, epoch=1),
        e(800, "m1", "partitions_assigned", t="t0", member=m1, stream=0),
        e(800, "m2", "partitions_assigned", t="t1", member=m2, stream=0),
        *_polls("m1", m1, 0, 1_000, 4_000),
        *_polls("m2", m2, 1, 1_000, 9_500),
        e(4_100, "m1", "partitions_lost", t="t0", member=m1, stream=0, all=[]),
        e(4_600, "broker-1", "authority_cleared", **where, p=0, owner=m1, epoch=1, reason="session"),
        e(4_800, "broker-1", "authority_named", **where, p=0, owner=m2, epoch=2),
        e(4_800, "m2", "partitions_assigned", t="t0", member=m2, stream=0),
        *_polls("m2", m2, 0, 5_000, 9_500),
        e(7_900, "broker-1", "offset_written", **where, p=0, offset=30, by=m2, epoch=2),
        e(8_400, "broker-1", "offset_refused", **where, p=0, offset=9, by=m1, epoch=1, error="UNKNOWN_MEMBER_ID"),
    ]


def write_cut(folder: Path) -> None:
    """The traces of both runs below `folder`."""
    for design, events in (("zookeeper", zookeeper_events()), ("eager", eager_events())):
        ordered = sorted(events, key=lambda event: event["t_ns"])
        write_run(folder / "split-brain" / design, ordered, scenario="split-brain", design=design)


#: Ends a script, loads a picture, moves a terminal's cursor, and reverses the direction of what follows.
ATTACK = '</script><img src=x onerror="window.attacked=1"><script>window.attacked=1</script>\x1b[31m\u202e\'"&'


def write_hostile(folder: Path) -> None:
    """The cut of `zookeeper`, with an attack in every text that a trace may choose: a phase is none of them."""
    attacks = {
        "topic": ATTACK,
        "member": f"g_{ATTACK}",
        "by": ATTACK,
        "owner": f"g_{ATTACK}-0",
        "target": ATTACK,
        "fault": ATTACK,
        "group": ATTACK,
    }
    events = []
    for event in sorted(zookeeper_events(), key=lambda event: event["t_ns"]):
        changed: dict[str, Any] = {name: attacks[name] for name in attacks if event.get(name)}
        for name in ("partitions", "all"):
            if name in event:
                changed[name] = [{**each, "topic": ATTACK} for each in event[name]]
        if "member" in changed:
            changed["member"] = f"{event['member']}{ATTACK}"
        events.append({**event, **changed})
    write_run(folder / "split-brain" / "zookeeper", events, scenario="split-brain", design="zookeeper")


def analysed_inline(folder: Path) -> Result:
    """Analyse the runs below a folder; writes the tables and result.json there, and returns the result."""
    result = analyze(cast("SparkSession", InlineSpark(1)), [folder], output=folder)
    write_json(folder / "result.json", result)
    return result


def analysed_cut(folder: Path) -> Path:
    """The runs of `write_cut`, analysed; returns the folder."""
    write_cut(folder)
    analysed_inline(folder)
    return folder


def reported_inline(folder: Path) -> Path:
    """The report of the runs in a folder, which shows all of them."""
    assert write_report(analysed_inline(folder), folder) == []
    return folder / REPORT
