"""Identities in a trace: reused ids, two files of one process, two groups on one topic. The figures are right, or the
verdict is unknown and says why.
"""

from __future__ import annotations

import json
import shutil
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from comparison.pipeline.analysis import measured_runs, read_parts
from comparison.pipeline.bronze.chunks import parts_of
from comparison.pipeline.bronze.runs import find_runs
from comparison.pipeline.gold.run import measure
from comparison.pipeline.measured import Measured
from comparison.pipeline.remembered import ReadParts
from comparison.results.outcomes import VerdictOutcome
from comparison.results.run import Run
from tests.comparison.pipeline.test_bad_runs import judged
from tests.support.runs.inline_spark import InlineSpark
from tests.support.trace.traces import MS, e, tables, traced_run, write_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = dict[str, Any]
PARAMETERS: dict[str, Any] = {"members": 2, "partitions": 1, "topics": 1, "streams": 1, "brokers": 1, "rate": 10}
PARAMETERS |= {"checks": ["never owned by two members"]}
COUNTED = e(0, "runner", "run_started", parameters={**PARAMETERS, "checks": ["counts"]})
BEGUN = [e(0, "runner", "run_started", parameters=PARAMETERS), e(50, "runner", "stage_entered", stage="steady")]
ENDED = [e(2_000, "runner", "stage_entered", stage="final"), e(2_001, "runner", "run_ended", outcome="complete")]
CHANGED = [e(100, "runner", "change_started", change="join", round=1, members=2, detail={})]


def started(at_ms: float, process: str, member: str = "a", group: str = "g") -> Event:
    return e(at_ms, process, "member_started", member=member, group=group)


def notified(at_ms: float, process: str, what: str, t: str = "t0", member: str = "a") -> Event:
    return e(at_ms, process, f"partitions_{what}", t=t, member=member, stream=0)


def polled(at_ms: float, process: str, first: int, last: int, p: int = 0, member: str = "a") -> Event:
    numbers = {"first": first, "last": last, "serial_first": first, "serial_last": last}
    return e(at_ms, process, "records_delivered", p=p, **numbers, member=member, stream=0)


def acked(at_ms: float, first: int, last: int, topic: str = "t", p: int = 0) -> Event:
    numbers = {"first": first, "last": last, "serial_first": first, "serial_last": last}
    return e(at_ms, "runner", "records_acked", topic=topic, partition=p, **numbers)


def named(at_ms: float, owner: str = "a", group: str = "g", p: int = 0) -> Event:
    return e(at_ms, "broker-1", "authority_named", group=group, p=p, owner=owner, epoch=1)


def stored(at_ms: float, by: str, offset: int, group: str = "g") -> Event:
    return e(at_ms, "broker-1", "offset_written", group=group, p=0, offset=offset, by=by, epoch=1)


def grouped(at_ms: float, group: str, state: str, generation: int) -> Event:
    fields = {"state": state, "generation": generation, "members": 2, "reason": ""}
    return e(at_ms, "broker-1", "group_changed", group=group, **fields)


def found_in(folder: Path, events: list[Event], *, scenario: str = "scale-out", design: str = "eager") -> Run:
    """The run's verdicts, from files that are all listed."""
    write_run(folder, sorted(events, key=lambda event: event["t_ns"]), scenario=scenario, design=design)
    _list(folder)
    return judged(folder)


def _list(folder: Path) -> None:
    listed = []
    for path in sorted((folder / "trace").iterdir()):
        header = json.loads(path.read_bytes().splitlines()[0])["header"]
        listed.append({"file": path.name, "process": header["process"], "role": header["role"]})
    (folder / "run.json").write_text(json.dumps({"traces": listed}), encoding="utf-8")


def measured(events: list[Event], design: str = "eager") -> Measured:
    return measure(traced_run(design), tables(sorted(events, key=lambda event: event["t_ns"])))[0]


def outcomes(run: Run) -> dict[str, VerdictOutcome]:
    return {verdict.check: verdict.outcome for verdict in run.verdicts}


EXPECTED, UNKNOWN = VerdictOutcome.EXPECTED, VerdictOutcome.UNKNOWN


# -- two files of one process ------------------------------------------------------------------------------------------


def test_two_files_of_one_process_and_member_are_unknown(tmp_path: Path) -> None:
    """Each has a part of the member's events, with its own sequence numbers, and both are listed."""
    first = [started(1, "m1"), notified(10, "m1", "assigned"), named(10), acked(60, 0, 19), polled(70, "m1", 0, 9)]
    second = [started(1, "m1"), polled(80, "m1", 10, 19), notified(90, "m1", "revoked")]
    folder = write_run(tmp_path / "run", [*BEGUN, *first, *CHANGED, *ENDED], scenario="scale-out", design="eager")
    write_run(tmp_path / "more" / "run", second, scenario="scale-out", design="eager")
    shutil.copy(tmp_path / "more" / "run" / "trace" / "m1.jsonl", folder / "trace" / "m1-more.jsonl")
    _list(folder)
    run = judged(folder)
    assert "m1-more.jsonl and m1.jsonl are all of the process m1" in run.problems
    assert set(outcomes(run).values()) == {UNKNOWN}


# -- a member id that is used again ------------------------------------------------------------------------------------

FIRST_LIFE = [started(1, "m1"), notified(10, "m1", "assigned"), named(10), acked(60, 0, 19), polled(70, "m1", 0, 9)]


@pytest.mark.parametrize("second", ["m1", "m1.2", "m2"], ids=["the same process", "its restart", "another process"])
def test_reused_member_id_counts_as_two_members(tmp_path: Path, second: str) -> None:
    over = [notified(110, "m1", "revoked"), e(111, "m1", "member_closed", member="a", group="g")]
    if second != "m1":
        over.append(e(112, "runner", "process_ended", target="m1", how="leave", code=0))
    again = [started(150, second), notified(160, second, "assigned"), polled(170, second, 10, 19), stored(180, "a", 20)]
    run = found_in(tmp_path / "run", [*BEGUN, *FIRST_LIFE, stored(80, "a", 10), *CHANGED, *over, *again, *ENDED])
    assert run.problems == []
    assert UNKNOWN not in outcomes(run).values()
    assert run.verdict is EXPECTED
    figures = ("unowned_partition_s", "double_owned_partition_s", "duplicates", "lost", "out_of_order", "stale_writes")
    assert [run.metrics[name] for name in figures] == [
        0.011,
        0,
        0,
        0,
        0,
        0,
    ]  # while nobody is a member, none is unowned


def test_member_id_that_two_live_processes_use_is_unknown(tmp_path: Path) -> None:
    """The authority names ids, so it is unknown whether m1's commit is the owner's."""
    other = [
        started(150, "m2"),
        notified(160, "m1", "revoked"),
        notified(170, "m2", "assigned"),
        polled(180, "m2", 10, 19),
    ]
    run = found_in(tmp_path / "run", [*BEGUN, *FIRST_LIFE, *CHANGED, *other, stored(190, "a", 20), *ENDED])
    assert run.problems == ["m1 and m2 used the member id a of the group g at the same time"]
    assert set(outcomes(run).values()) == {UNKNOWN}


def test_use_of_an_id_is_seen_without_a_start_of_the_member() -> None:
    events = [notified(10, "m1", "assigned"), notified(20, "m2", "assigned", "t1"), named(10), *BEGUN, *ENDED]
    assert measured(events).mistakable == ["m1 and m2 used the member id a of the group g at the same time"]
    revoked = notified(19, "m1", "revoked")
    assert measured([*events, revoked]).mistakable == []


def test_uses_that_clocks_cannot_tell_apart_are_not_at_the_same_time() -> None:
    events = [notified(10, "m1", "assigned"), notified(19, "m2", "assigned"), named(10), *BEGUN, *ENDED]
    assert measured([*events, notified(20, "m1", "revoked")]).mistakable == []
    assert measured([*events, notified(20.1, "m1", "revoked")]).mistakable != []


def test_one_id_in_two_groups_is_used_by_two_members() -> None:
    one = [started(1, "m1"), notified(10, "m1", "assigned"), named(10)]
    other = [started(1, "n1", group="h"), notified(10, "n1", "assigned"), named(10, group="h")]
    found = measured([*BEGUN, *one, *other, *ENDED])
    assert found.groups == ["g", "h"]
    assert found.mistakable == []


# -- two groups on one topic -------------------------------------------------------------------------------------------

G = [started(1, "m1"), notified(10, "m1", "assigned"), named(10)]
H = [started(1, "n1", "b", "h"), notified(10, "n1", "assigned", member="b"), named(10, "b", "h")]


def test_groups_on_one_topic_are_independent(tmp_path: Path) -> None:
    """Both own the partition, get every record, and commit; g hands it over to another member."""
    load = [acked(60 + 10 * number, 10 * number, 10 * number + 9) for number in range(100)]
    of_h = [polled(66 + 10 * number, "n1", 10 * number, 10 * number + 9, member="b") for number in range(100)]
    of_h += [stored(68 + 10 * number, "b", 5 * number, "h") for number in range(100)]
    of_g = []
    for number in range(100):
        process, member = ("m1", "a") if number < 50 else ("m2", "c")
        of_g.append(polled(65 + 10 * number, process, 10 * number, 10 * number + 9, member=member))
        of_g.append(stored(67 + 10 * number, member, 10 * number + 10))
    moved = [
        started(101, "m2", "c"),
        notified(560, "m1", "revoked"),
        notified(562, "m2", "assigned", member="c"),
        named(562, "c"),
    ]
    run = found_in(tmp_path / "run", [*BEGUN, *G, *H, *CHANGED, *load, *of_g, *of_h, *moved, *ENDED])
    assert run.groups == ["g", "h"]
    assert outcomes(run) == dict.fromkeys(
        ("no record lost", "settles", "no offset moved back", "no stale write", "never owned by two members"), EXPECTED
    )
    figures = ("commits", "delivered", "duplicates", "two_delivering_partition_s", "stale_deliveries", "started_behind")
    assert [run.metrics[name] for name in figures] == [200, 2_000, 0, 0, 0, 0]
    assert (run.metrics["unowned_partition_s"], run.metrics["moved"]) == (0.002, 1)
    assert run.metrics["moved_minimum"] is None


def test_partition_kept_through_another_groups_rebalance_need_not_be_delivered() -> None:
    kept = notified(10, "n1", "assigned", "t1", member="b")
    rebalanced = [
        grouped(200, "h", "PreparingRebalance", 1),
        grouped(1_200, "h", "CompletingRebalance", 2),
        grouped(1_300, "h", "Stable", 2),
    ]
    polls = [polled(210 + number, "n1", number, number, 1, "b") for number in range(5)]
    found = measured([*BEGUN, *G, *H, kept, *rebalanced, *polls, *ENDED], "cooperative")
    assert [each.group for each in found.rounds] == ["h"]
    assert [(each.kept, each.delivered) for each in found.kept.values()] == [(2, 1)]


def test_rounds_of_groups_without_a_coordinator_are_kept_apart() -> None:
    def rebalance(at_ms: float, process: str, member: str, kind: str, **fields: str) -> Event:
        return e(at_ms, process, f"rebalance_{kind}", member=member, stream=0, **fields)

    events = [
        rebalance(100, "m1", "a", "started", trigger="children"),
        rebalance(110, "n1", "b", "started", trigger="children"),
        rebalance(120, "m1", "a", "ended", outcome="ok"),
        rebalance(130, "n1", "b", "ended", outcome="ok"),
    ]
    found = measured([*BEGUN, *G, *H, *events, *ENDED], "zookeeper").rounds
    assert [(each.group, each.from_ns // MS, (each.until_ns or 0) // MS) for each in found] == [
        ("g", 100, 120),
        ("h", 110, 130),
    ]


def test_group_gets_the_topics_that_it_reads() -> None:
    """g reads t and h reads u: neither lacks the other's records, nor its partitions."""
    partitions = [{"topic": "u", "partition": 0}]
    of_h = [
        started(1, "n1", "b", "h"),
        e(10, "n1", "partitions_assigned", partitions=partitions, all=partitions, member="b", stream=0),
        polled(80, "n1", 0, 9, member="b") | {"topic": "u"},
    ]
    load = [acked(60, 0, 9), acked(60, 0, 9, "u"), acked(60, 0, 4, "v")]
    found = measured([*BEGUN, *G, polled(70, "m1", 0, 9), *of_h, *load, *ENDED])
    assert found.coverage[-1, "serials"].gap == 2 * 5, "of v, which nobody reads, both lack everything"
    assert found.coverage[-1, "believed"].gap == 2 * 1_950 * MS


def test_member_of_two_groups_in_one_process_counts_as_two() -> None:
    other = [started(1, "m1", "b", "h"), notified(10, "m1", "assigned", member="b"), named(10, "b", "h")]
    polls = [polled(70, "m1", 0, 9), polled(70, "m1", 0, 9, member="b")]
    found = measured([*BEGUN, *G, *other, acked(60, 0, 9), *polls, *ENDED])
    figures = {
        view: (found.coverage[-1, view].gap, found.coverage[-1, view].doubled) for view in ("believed", "serials")
    }
    assert figures == {"believed": (0, 0), "serials": (0, 0)}
    assert found.mistakable == []


def test_member_that_does_not_say_in_which_of_two_groups_it_is_makes_all_unknown(tmp_path: Path) -> None:
    run = found_in(tmp_path / "run", [*BEGUN, *G, *H[1:], acked(60, 0, 9), polled(70, "m1", 0, 9), *CHANGED, *ENDED])
    assert run.problems == ["n1 does not say in which of the groups g and h it is"]
    assert set(outcomes(run).values()) == {UNKNOWN}


def test_check_that_is_about_one_group_is_unknown_in_a_run_with_two(tmp_path: Path) -> None:
    run = found_in(tmp_path / "run", [COUNTED, *BEGUN[1:], *G, *H, *CHANGED, *ENDED], scenario="join")
    (counts,) = (verdict for verdict in run.verdicts if verdict.check == "counts")
    assert counts.outcome is UNKNOWN
    assert counts.reason.startswith("the run has 2 groups, this is about one; as recorded: ")


def test_run_of_two_groups_is_the_same_in_parts(tmp_path: Path) -> None:
    """Which group a member is in may be said in another part than what it does."""
    load = [acked(60 + 10 * number, 10 * number, 10 * number + 9) for number in range(20)]
    of_both = [
        event
        for number in range(20)
        for event in (
            polled(65 + 10 * number, "m1", 10 * number, 10 * number + 9),
            polled(66 + 10 * number, "n1", 10 * number, 10 * number + 9, member="b"),
            stored(67 + 10 * number, "a", 10 * number),
            stored(68 + 10 * number, "b", 5 * number, "h"),
        )
    ]
    events = sorted([*BEGUN, *G, *H, *CHANGED, *load, *of_both, *ENDED], key=lambda event: event["t_ns"])
    write_run(tmp_path / "run", events, scenario="scale-out", design="eager")
    runs = find_runs([tmp_path])
    found = []
    for number, (chunk_bytes, whole_bytes) in enumerate(((1 << 40, 1 << 40), (1_000, 0))):
        parts = parts_of(runs, 2, chunk_bytes, whole_bytes)
        spark = cast("SparkSession", InlineSpark(2))
        folder = tmp_path / f"tables-{number}"
        read = ReadParts(parts, read_parts(spark, runs, parts, folder))
        analysed = measured_runs(spark, runs, [0], read, folder, count(len(parts)))
        found.append(msgspec.to_builtins(analysed[0]))
    assert (found[0]["groups"], found[0]["metrics"]["lost"], found[0]["metrics"]["duplicates"]) == (["g", "h"], 0, 0)
    assert found[1] == found[0]
