"""Findings are filled from figures, name the design, and link to where they are seen."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.analysis import compose
from comparison.report.sections.evidence import anchor_of
from comparison.report.sections.found import findings
from comparison.report.summaries.repeats import columns_of
from comparison.report.view.model import Holding, Overlap
from comparison.results.outcomes import Kind, VerdictOutcome
from comparison.results.run import Copies, Verdict
from tests.comparison.report.drawing.test_lanes import SPLIT, view
from tests.support.runs.results import change, every_design, refused, run, skipped, slowed, standstill


def found(*runs: Any, views: Any = None) -> list[str]:
    result = compose(list(runs))
    (scenario, *_) = result.scenarios
    return [each.text for each in findings(scenario.scenario, columns_of(scenario, result), views or {})]


CUT = [change("cut", members=None, healed_ms=10_000.0)]
BROKEN = {"two_delivering_longest_s": 7.6, "two_delivering_partition_s": 21.8}


def split_brain() -> list[Any]:
    stale = {"stale_writes": 9.0, "moved_back": 3.0, "moved_back_records": 457.0}
    return [
        run("split-brain", "zookeeper", changes=CUT, **BROKEN, **stale, duplicates=561.0),
        run("split-brain", "eager", changes=CUT, fenced=3.0),
    ]


def test_split_brain_is_said_in_sentences_with_its_figures() -> None:
    text = found(*split_brain())
    assert text[0] == (
        "In zookeeper two members delivered the same partition for 7.60 s (the cut lasted 10.0 s), "
        "21.80 partition-seconds in all."
    )
    assert text[1] == "In eager no partition was delivered by two members at once."
    assert "3 committed offsets moved back, by 457 records in all" in text[2]
    assert "Late commits that were refused: 3 in eager." in text
    assert "In eager no committed offset moved back." in text
    assert text[-1].startswith("No acknowledged record was lost, in any design. Delivered again: 561 in zookeeper")


def test_skipped_records_are_told_apart_from_lost_ones_with_the_partitions_they_are_of() -> None:
    skips = [skipped(partition, records) for partition, records in ((0, 5), (1, 9), (1, 2), (2, 7), (3, 1), (4, 1))]
    text = found(run("crash", "eager", skips=skips, skipped=25.0))
    assert text[-2].startswith("No acknowledged record was lost.")
    assert text[-1] == (
        "In eager auto.offset.reset=latest skipped 25 records: 11 of t-1, 7 of t-2, 5 of t-0, "
        "and others of 2 more partitions."
    )


def test_longest_standstills_are_told_with_their_main_causes() -> None:
    stood = standstill(3.1, **{"fetch refused": 0.2, "no leader": 2.9})
    dead = standstill(6.0, **{"no owner": 4.0, "rebalance": 2.0})
    runs = [
        run("crash", "zookeeper", standstill_s=0.0),
        run("crash", "eager", standstills=[stood], standstill_s=3.1),
        run("crash", "consumer", standstills=[dead], standstill_s=6.0),
    ]
    said = (
        "Records of a partition waited longest while none was delivered: none in zookeeper, 3.1 s (no leader) in eager"
    )
    assert f"{said}, 6.0 s (no owner, rebalance) in consumer." in found(*runs)
    short = run("crash", "eager", standstills=[standstill(0.9, unknown=0.9)], standstill_s=0.9)
    assert not [text for text in found(short) if "waited" in text]


def test_refused_members_are_named_with_the_reason_how_often_they_asked_and_whether_they_were_in() -> None:
    one, other = refused("m1", asked=3, admitted_ms=7_100.0), refused("m5", "GROUP_MAX_SIZE_REACHED")
    text = found(run("crash", "static", refusals=[one, other, refused("m2", was_in=True)]), run("crash", "eager"))
    assert [each for each in text if "refused" in each and "Not as expected" not in each] == [
        "In static members were refused with INCONSISTENT_GROUP_PROTOCOL: m1 (asked 3 times, in after 7.1 s), m2 "
        "(asked once, had been in, out since); refused with GROUP_MAX_SIZE_REACHED: m5 (asked once, never in)."
    ]


def test_findings_link_to_the_lane_and_the_moment() -> None:
    result = compose(split_brain())
    (scenario,) = result.scenarios
    views = {"zookeeper": view(SPLIT)}
    shown = findings("split-brain", columns_of(scenario, result), views)
    (link,) = shown[0].evidence
    assert (link.anchor, link.partition) == ("#split-brain-zookeeper-lanes", "t-0")
    assert link.from_s < 3.0 < 6.5 < link.until_s  # the overlap, with some margin
    assert link.label == "zookeeper: t-0 at 3.0 s"


def test_first_overlap_of_all_partitions_is_linked() -> None:
    earlier = SPLIT.__class__(
        **{
            **{name: getattr(SPLIT, name) for name in SPLIT.__slots__},
            "name": "t-1",
            "overlaps": (Overlap(4_000, 4_100, ("m1", "m2")),),
            "delivering": (Holding(0, 4_100, "m1"), Holding(4_000, 9_000, "m2")),
        }
    )
    result = compose(split_brain())
    (scenario,) = result.scenarios
    shown = findings("split-brain", columns_of(scenario, result), {"zookeeper": view(SPLIT, earlier)})
    assert shown[0].evidence[0].partition == "t-1"


def test_designs_with_the_same_figure_stand_together() -> None:
    costs = {"zookeeper": (10_800.0, 30.0), "eager": (3.0, 0.0), "static": (4.0, 0.0)}
    text = found(*(run("join", name, converge_ms=ms, stopped=n) for name, (ms, n) in costs.items()))
    assert (
        "Every partition had one owner again after 10.8 s in zookeeper, at once in eager and static "
        "(the slowest change)."
    ) in text
    assert "Partitions taken from members that stayed: 30 in zookeeper, none in eager and static." in text


def test_settling_counts_from_the_heal_of_a_fault_that_lasted() -> None:
    figures = {"zookeeper": (6_700.0, 5_000.0), "eager": (3_000.0, 5_000.0), "static": (3_000.0, 0.4)}
    runs = [
        run(
            "pause", name, converge_ms=ms, changes=[change("freeze", members=None, converge_ms=ms, healed_ms=healed_ms)]
        )
        for name, (ms, healed_ms) in figures.items()
    ]
    assert (
        "Every partition had one owner again 1.7 s after the heal in zookeeper, before the heal in eager, after 3.0 s "
        "in static (the slowest change)."
    ) in found(*runs)


@pytest.mark.parametrize(
    ("lasted_ms", "said"), [(5_400.0, "lasted 5.4 s)"), (7_200.0, "lasted 7.2 s, 5.0 s were asked for)")]
)
def test_fault_of_another_length_than_asked_for_says_both(lasted_ms: float, said: str) -> None:
    freeze = change("freeze", members=None, healed_ms=lasted_ms, asked_ms=5_000.0)
    text = found(run("pause", "zookeeper", changes=[freeze], **BROKEN))
    assert said in text[0]


def test_what_was_given_up_and_who_has_no_owner_is_said_where_it_happened() -> None:
    text = found(run("ghost-owner", "zookeeper", left_unnamed=4.0, rebalances_failed=1.0), run("ghost-owner", "server"))
    assert "Rebalances given up after the last attempt: 1 in zookeeper, none in server." in text
    assert "Partitions without an owner at the end, by the authority: 4 in zookeeper, none in server." in text
    assert not any("given up" in each or "at the end" in each for each in found(run("join", "eager")))


def test_group_that_never_waits_is_said_in_one_sentence() -> None:
    assert found(*(run("join", name, converge_ms=2.0) for name in ("zookeeper", "eager")))[0] == (
        "No partition was without its owner for long, in any design."
    )


def test_what_no_design_did_stands_once() -> None:
    quiet = [run("crash", design, changes=CUT) for design in ("zookeeper", "eager")]
    text = found(*quiet)
    assert text.count("No partition was delivered by two members at once, in any design.") == 1


def test_unexpected_verdicts_come_first() -> None:
    bad = Verdict(check="settles", kind=Kind.PROMISE, outcome=VerdictOutcome.NOT_EXPECTED, reason="never")
    assert found(run("join", "eager", verdicts=[bad]))[0] == "Not as expected in eager: settles: never."


def test_unmeasured_figures_are_not_mentioned() -> None:
    unknown = dict.fromkeys(("lost", "converge_ms", "stopped", "duplicates"))
    assert found(run("join", "eager", **unknown)) == []


WAITED = (("before", "p50", 0.5), ("during", "p50", 2.0), ("before", "p99", 4.5), ("during", "p99", 60.0))


def test_herd_says_what_the_largest_join_cost() -> None:
    dear = change("join", round=4, members=21, notifications=20, zk_reads=938)
    cheap = change(
        "join", round=4, members=21, notifications=0, zk_reads=0, requests={"JoinGroup": 22, "SyncGroup": 21}
    )
    text = found(run("herd", "zookeeper", changes=[dear]), run("herd", "eager", changes=[cheap]))
    assert (
        "One more member (join to 21) cost 20 notifications and 938 ZooKeeper reads in zookeeper, "
        "43 JoinGroup or SyncGroup requests in eager."
    ) in text


def test_herd_says_how_long_an_uninvolved_client_waited() -> None:
    waited = {f"bystander_get_{stage}_{share}_ms": ms for stage, share, ms in WAITED}
    text = found(run("herd", "zookeeper", **waited), run("herd", "eager"))
    assert (
        "A get by an uninvolved client of the same ZooKeeper took 0.50 ms before a join and 2 ms during it "
        "(median; 99th percentile 4.50 and 60 ms) in zookeeper."
    ) in text
    assert not [each for each in found(run("herd", "eager")) if "uninvolved" in each]


def test_slow_member_and_rolling_restart_have_their_remarks() -> None:
    assert any(text.startswith("In eager: m2 is slow; 3 members waited 5.0 s") for text in found(slowed("eager")))
    result = every_design()
    scenario = result.scenarios[0]
    text = [each.text for each in findings(scenario.scenario, columns_of(scenario, result), {})]
    assert any(each.startswith("Static: 0 stops instead of 108") for each in text)


def test_members_added_under_lag_have_their_dip_and_break_even() -> None:
    lag = {"lag_before": 700.0, "dip_records": 210.0}
    text = found(
        run("scale-out-under-lag", "zookeeper", **lag, break_even_s=2.4),
        run("scale-out-under-lag", "eager", **lag, break_even_s=None),
        run("scale-out-under-lag", "cooperative", lag_before=1.0, dip_records=0.0, break_even_s=0.0),
    )
    assert text[:3] == [
        "In zookeeper, with a lag of 700 records, members were added: the rebalance cost up to 210 records, made up "
        "for 2.40 s after.",
        "In eager, with a lag of 700 records, members were added: the rebalance cost up to 210 records, and that was "
        "not made up for.",
        "In cooperative, with a lag of 1 record, members were added: no fewer were delivered then.",
    ]


def test_copies_of_an_application_that_woke_up_are_counted() -> None:
    plain = Copies(
        transactions=False,
        records=20,
        copied=20,
        twice=20,
        late_write="",
        late_offset="UNKNOWN_MEMBER_ID",
        late_commit="",
    )
    fenced = Copies(
        transactions=True,
        records=20,
        copied=20,
        twice=0,
        late_write="FENCED",
        late_offset="FENCED",
        late_commit="FENCED",
    )
    text = found(run("read-process-write", "eager", copies=[plain, fenced]))
    assert text[0].startswith("Without transactions, 20 of 20 copied records are there twice")
    assert text[0].endswith("when it woke up was stored.")
    assert text[1].startswith("In transactions, 0 of 20 copied records are there twice")
    assert text[1].endswith("was refused (FENCED).")


def test_anchors_have_no_characters_that_mean_something_in_addresses() -> None:
    assert anchor_of("a b#c?d", "zookeeper") == "a-b-c-d-zookeeper"
