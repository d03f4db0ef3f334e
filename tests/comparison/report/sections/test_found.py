"""Findings are filled from figures, name the design, and link to where they are seen."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.analysis import compose
from comparison.report.sections.evidence import anchor_of
from comparison.report.sections.found import findings
from comparison.report.summaries.repeats import columns_of
from comparison.report.view.model import About, Holding, Overlap, Reason
from comparison.results.outcomes import Kind, VerdictOutcome
from comparison.results.promises import by_design
from comparison.results.run import Copies, Verdict
from tests.comparison.report.drawing.test_lanes import SPLIT, lane, view
from tests.support.runs.results import change, refused, run, skipped, slowed, standstill


def found(*runs: Any, views: Any = None) -> list[str]:
    result = compose(list(runs))
    (scenario, *_) = result.scenarios
    return [each.text for each in findings(scenario.scenario, columns_of(scenario, result), views or {}, {})]


CUT = [change("cut", members=None, healed_ms=10_000.0)]
BROKEN = {"two_delivering_longest_s": 7.6, "two_delivering_partition_s": 21.8}


def split_brain() -> list[Any]:
    stale = {"stale_writes": 9.0, "moved_back": 3.0, "moved_back_records": 457.0}
    return [
        run("split-brain", "zookeeper", changes=CUT, **BROKEN, **stale, duplicates=561.0),
        run("split-brain", "eager", changes=CUT, fenced=3.0),
    ]


def test_split_brain_is_said_in_sentences_and_what_cells_say_is_not() -> None:
    assert found(*split_brain()) == [
        "Two members delivered the same partition for up to 7.60 s in zookeeper (the cut lasted 10.0 s).",
        "In all, committed offsets moved back by 457 records in zookeeper.",
    ]


def test_designs_in_which_two_members_delivered_are_told_together_with_faults_that_differ() -> None:
    longer = [change("cut", members=None, healed_ms=13_000.0)]
    texts = found(*split_brain(), run("split-brain", "consumer", changes=longer, **BROKEN))
    assert texts[0] == (
        "Two members delivered the same partition for up to 7.60 s (the cut lasted 10.0 s) in zookeeper, "
        "7.60 s (the cut lasted 13.0 s) in consumer."
    )


def test_broken_promises_are_told_by_the_designs_that_broke_them_with_figures_that_the_table_lacks() -> None:
    consumer = run("split-brain", "consumer", stale_deliveries=2.0, reset_behind=4.0)
    result = compose([*split_brain(), consumer])
    (scenario, *_) = result.scenarios
    shown = findings("split-brain", columns_of(scenario, result), {}, by_design(scenario, result))
    assert [each.text for each in shown if each.text.startswith("Broken in ")] == [
        "Broken in zookeeper and consumer: only the owner delivers.",
        "Broken in zookeeper: only the owner commits; no offset moves back.",
        "Broken in consumer: reading goes on where it was committed (reset behind a commit: 4).",
    ]


def test_skipped_records_are_told_with_the_partitions_they_are_of() -> None:
    skips = [skipped(partition, records) for partition, records in ((0, 5), (1, 9), (1, 2), (2, 7), (3, 1), (4, 1))]
    assert found(run("crash", "eager", skips=skips, skipped=25.0)) == [
        "In eager auto.offset.reset=latest skipped 25 records: 11 of t-1, 7 of t-2, 5 of t-0, "
        "and others of 2 more partitions."
    ]


def test_what_several_designs_skipped_is_told_by_how_many_partitions() -> None:
    runs = [run("crash", name, skips=[skipped(0, 5), skipped(1, 9)], skipped=14.0) for name in ("eager", "static")]
    assert found(*runs) == ["auto.offset.reset skipped to the latest of 2 partitions in eager and static."]


def test_longest_standstills_are_told_by_their_main_causes() -> None:
    stood = standstill(3.1, **{"fetch refused": 0.2, "no leader": 2.9})
    dead = standstill(6.0, **{"no owner": 4.0, "rebalance": 2.0})
    runs = [
        run("crash", "zookeeper", standstill_s=0.0),
        run("crash", "eager", standstills=[stood], standstill_s=3.1),
        run("crash", "consumer", standstills=[dead], standstill_s=6.0),
    ]
    assert found(*runs) == ["Behind the longest standstill: no leader in eager, no owner, rebalance in consumer."]
    same = [run("crash", name, standstills=[stood], standstill_s=3.1) for name in ("eager", "static")]
    assert found(*same) == ["Behind the longest standstill: no leader, in every design."]
    assert found(run("crash", "eager", standstills=[standstill(0.9, unknown=0.9)], standstill_s=0.9)) == []


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
    shown = findings("split-brain", columns_of(scenario, result), views, {})
    (link,) = shown[0].evidence
    assert (link.anchor, link.partition) == ("#split-brain-zookeeper-lanes", "t-0")
    assert link.from_s < 3.0 < 6.5 < link.until_s  # the overlap, with some margin
    assert link.label == "zookeeper: t-0 at 3.0 s"


def test_longest_overlap_of_all_partitions_is_linked() -> None:
    briefer = SPLIT.__class__(
        **{
            **{name: getattr(SPLIT, name) for name in SPLIT.__slots__},
            "name": "t-1",
            "overlaps": (Overlap(4_000, 4_100, ("m1", "m2")),),
            "delivering": (Holding(0, 4_100, "m1"), Holding(4_000, 9_000, "m2")),
        }
    )
    result = compose(split_brain())
    (scenario,) = result.scenarios
    shown = findings("split-brain", columns_of(scenario, result), {"zookeeper": view(briefer, SPLIT)}, {})
    assert shown[0].evidence[0].partition == "t-0"


def reason(from_ms: float, until_ms: float, text: str, about: About = About.OVERLAP, *partitions: str) -> Reason:
    return Reason(from_ms, until_ms, about=about, partitions=partitions or ("t-0",), text=text, moments=())


def test_when_and_why_two_members_delivered_is_told_of_the_longest_overlap() -> None:
    brief = reason(4_900, 5_100, "m1 and m3 both delivered t-0 for 0.2 s: m3 was slow.")
    long = reason(5_000, 8_500, "m1 and m2 both delivered t-0 for 3.5 s: m1 was cut off at 0.0 s.")
    views = {"zookeeper": view(SPLIT, reasons=(brief, long)), "eager": view(design="eager")}
    chain = f"In zookeeper, {long.text}"
    assert found(*split_brain(), views=views)[0] == chain
    both = [*split_brain(), run("split-brain", "consumer", changes=CUT, two_delivering_longest_s=1.2)]
    assert found(*both, views=views)[0] == (
        "Two members delivered the same partition for up to 7.60 s in zookeeper, 1.20 s in consumer (the cut lasted "
        f"10.0 s). {chain}"
    )


def test_when_and_why_is_told_of_the_longest_standstill_with_a_link() -> None:
    stood = [
        run("crash", design, standstills=[standstill(seconds, frozen=seconds)], standstill_s=seconds)
        for design, seconds in (("eager", 3.0), ("delayed", 6.0))
    ]
    there = reason(500, 7_100, "Nobody delivered t-2, t-3 for 6.1 s.", About.PAUSE, "t-2", "t-3")
    result = compose(stood)
    (scenario,) = result.scenarios
    views = {"delayed": view(lane("t-3"), design="delayed", reasons=(there,))}
    (shown,) = findings("crash", columns_of(scenario, result), views, {})
    assert shown.text == (
        "Behind the longest standstill: frozen, in every design. In delayed, nobody delivered t-2, t-3 for 6.1 s."
    )
    assert [each.label for each in shown.evidence] == ["delayed: t-3 at -1.0 s"]


def test_chain_of_something_else_is_not_told_in_its_place() -> None:
    """Reasons are of groups of partitions: one lasts from the first pause or overlap to the end of the last one."""
    pause = reason(2_000, 9_000, "Nobody delivered t-0 and t-1 for 1.0 to 3.0 s.", About.PAUSE, "t-0", "t-1")
    of_others = reason(
        4_900, 12_000, "m1 and m2 both delivered t-0 and t-1 for 0.5 to 6.0 s.", About.OVERLAP, "t-0", "t-1"
    )
    said = "Two members delivered the same partition for up to 7.60 s in zookeeper (the cut lasted 10.0 s)."
    assert found(*split_brain(), views={"zookeeper": view(SPLIT, reasons=(pause,))})[0] == said
    mine = reason(4_990, 8_600, "M1 and m2 both delivered t-0 for 3.5 s.")
    texts = found(*split_brain(), views={"zookeeper": view(SPLIT, reasons=(of_others, pause, mine))})
    assert texts[0] == f"In zookeeper, {mine.text}"


def test_medians_of_repeats_have_no_chain_of_one_of_them() -> None:
    runs = [run("split-brain", "zookeeper", changes=CUT, seed=seed, path=f"/{seed}", **BROKEN) for seed in (1, 2)]
    views = {"zookeeper": view(SPLIT, reasons=(reason(5_000, 8_500, "m1 and m2 both delivered t-0."),))}
    assert found(*runs, views=views)[0].startswith("Two members delivered the same partition for up to 7.60 s")


@pytest.mark.parametrize(
    ("lasted_ms", "said"), [(5_400.0, "lasted 5.4 s)"), (7_200.0, "lasted 7.2 s, 5.0 s were asked for)")]
)
def test_fault_of_another_length_than_asked_for_says_both(lasted_ms: float, said: str) -> None:
    freeze = change("freeze", members=None, healed_ms=lasted_ms, asked_ms=5_000.0)
    text = found(run("pause", "zookeeper", changes=[freeze], **BROKEN))
    assert said in text[0]


def test_unexpected_verdicts_come_first() -> None:
    bad = Verdict(check="settles", kind=Kind.PROMISE, outcome=VerdictOutcome.NOT_EXPECTED, reason="never")
    assert found(run("join", "eager", verdicts=[bad]))[0] == "Not as expected in eager: settles: never."


def test_what_all_cells_say_is_said_in_no_sentence() -> None:
    costs = {"converge_ms": 10_800.0, "stopped": 30.0, "lost": 3.0, "rebalances_failed": 1.0, "left_unnamed": 4.0}
    assert found(run("join", "zookeeper", **costs), run("join", "eager")) == []


def test_slow_member_has_who_waited_for_whom() -> None:
    assert found(slowed("eager"))[0].startswith("In eager: m2 is slow; 3 members waited 5.0 s")


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
