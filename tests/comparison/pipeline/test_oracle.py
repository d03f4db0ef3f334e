"""The oracle itself: on traces written by hand, and compared with runs whose figures are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comparison.pipeline.generated.runs import Faults, write_synthetic
from comparison.pipeline.measured import ChangeWindow, FinalOffsets, KeptThrough, MemberPhase, Round, Turnover
from tests.support.oracle import twin as oracle
from tests.support.oracle.twin import AUTHORITY, BELIEVED, DELIVERING, OFFSETS, SERIALS
from tests.support.trace.strategies import traces
from tests.support.trace.traces import MS, e

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from comparison.pipeline.generated.truth import Truth
    from comparison.pipeline.measured import CommitTotals, Coverage, Measured

WHOLE = -1
Event = dict[str, Any]


def started(at_ms: float, process: str, group: str = "g") -> Event:
    return e(at_ms, process, "member_started", member=process, group=group)


def notified(at_ms: float, process: str, what: str, t: str = "t0") -> Event:
    return e(at_ms, process, f"partitions_{what}", t=t, member=process, stream=0)


def polled(at_ms: float, process: str, first: int, last: int) -> Event:
    serials = {"serial_first": first, "serial_last": last}
    return e(at_ms, process, "records_delivered", p=0, first=first, last=last, member=process, stream=0, **serials)


def named(at_ms: float, owner: str, group: str = "g") -> Event:
    return e(at_ms, "observer", "authority_named", group=group, p=0, owner=f"{owner}-0", epoch=1)


def cleared(at_ms: float, group: str = "g") -> Event:
    return e(at_ms, "observer", "authority_cleared", group=group, p=0, owner="", epoch=1, reason="delete")


def written(at_ms: float, by: str, offset: int, group: str = "g") -> Event:
    return e(at_ms, "observer", "offset_written", group=group, p=0, offset=offset, by=by, epoch=1)


def stage(at_ms: float, name: str) -> Event:
    return e(at_ms, "runner", "stage_entered", stage=name)


def measured(*events: Event, tolerance_ms: int = 1, design: str = "zookeeper") -> Measured:
    """The events in order of time, as their files have them."""
    in_order = sorted(events, key=lambda event: event["t_ns"])
    return oracle.measured_of(oracle.numbered(in_order), tolerance_ns=tolerance_ms * MS, design=design)


def doubled(coverage: Coverage) -> tuple[float, float | None]:
    longest = coverage.doubled_longest
    return coverage.doubled / MS, longest / MS if longest is not None else None


# -- overlaps ----------------------------------------------------------------------------------------------------------

#: m1 has t0 all the time.
FIRST = [notified(0, "m1", "assigned"), stage(0, "steady"), stage(1_000, "final")]


@pytest.mark.parametrize(
    ("tolerance_ms", "others", "expected"),
    [
        (1, [(100, 103)], (3, 3)),
        (1, [(100, 101), (101, 102), (102, 103)], (3, 3)),
        (1, [(100, 103), (101, 102)], (4, 3)),
        (1, [(100, 101)], (0, None)),
        (1, [(100, 101), (200, 203)], (3, 3)),
        (50, [(100, 103)], (0, None)),
        (50, [(100, 130), (130, 151)], (51, 51)),
    ],
    ids=[
        "one other",
        "a new one each time",
        "a third in the middle",
        "within the tolerance",
        "only the long one",
        "of two boots",
        "long for two boots",
    ],
)
def test_overlap_counts_as_a_whole(
    tolerance_ms: int, others: list[tuple[int, int]], expected: tuple[float, float | None]
) -> None:
    events = [
        event
        for number, (begin, end) in enumerate(others, start=2)
        for event in (notified(begin, f"m{number}", "assigned"), notified(end, f"m{number}", "revoked"))
    ]
    assert doubled(measured(*FIRST, *events, tolerance_ms=tolerance_ms).coverage[WHOLE, BELIEVED]) == expected


def test_overlap_names_its_first_two_holders() -> None:
    events = [notified(100, "m2", "assigned"), notified(102, "m3", "assigned"), notified(103, "m2", "revoked")]
    coverage = measured(*FIRST, *events).coverage[WHOLE, BELIEVED]
    assert coverage.doubled_first is not None
    first = coverage.doubled_first
    assert (first.low, first.high, first.owner, first.other) == (100 * MS, 1_000 * MS, "m1/m1/0", "m2/m2/0")
    assert coverage.unsettled_until == 1_000 * MS


def test_overlap_counts_in_a_window_that_shows_little_of_it() -> None:
    change = e(102.5, "runner", "change_started", change="join", round=1, members=2)
    events = [notified(100, "m2", "assigned"), notified(103, "m2", "revoked"), change]
    found = measured(*FIRST, *events).coverage
    assert (doubled(found[WHOLE, BELIEVED]), doubled(found[0, BELIEVED])) == ((3, 3), (0.5, 0.5))


def test_delivery_is_not_bridged_over_a_change_of_the_claim() -> None:
    """A clean hand-over there and back, all within a second."""
    events = [
        notified(0, "m1", "assigned"),
        polled(100, "m1", 0, 9),
        notified(200, "m1", "revoked"),
        notified(210, "m2", "assigned"),
        polled(250, "m2", 10, 19),
        polled(300, "m2", 20, 29),
        notified(350, "m2", "revoked"),
        notified(360, "m1", "assigned"),
        polled(600, "m1", 30, 39),
        polled(700, "m1", 40, 49),
    ]
    coverage = measured(*events).coverage[WHOLE, DELIVERING]
    assert (coverage.held, coverage.doubled) == (150 * MS, 0)
    # Events about another partition do not matter.
    others = [notified(event["t_ns"] / MS, "m1", "revoked", "t1") for event in events if event["process"] == "m1"]
    kept = [event for event in events if "partitions" not in event]
    assert doubled(measured(*kept, *others).coverage[WHOLE, DELIVERING]) == (50, 50)


def test_delivery_is_one_stretch_up_to_a_second() -> None:
    polls = [polled(0, "m1", 0, 0), polled(1_000, "m1", 1, 1), polled(2_000.001, "m1", 2, 2), polled(2_100, "m1", 3, 3)]
    assert measured(*polls).coverage[WHOLE, DELIVERING].held == 1_100 * MS - 1_000


def test_gaps_and_duplicates_are_counted_by_number() -> None:
    acked = e(0, "runner", "records_acked", p=0, first=0, last=9, serial_first=0, serial_last=9)
    found = measured(acked, polled(1, "m1", 0, 3), polled(2, "m2", 2, 5), polled(3, "m1", 3, 3), polled(4, "m1", 8, 8))
    offsets, serials = found.coverage[WHOLE, OFFSETS], found.coverage[WHOLE, SERIALS]
    assert (offsets.held, offsets.doubled, offsets.doubled_longest, offsets.gap) == (7, 3, 2, 0)
    assert (serials.held, serials.gap, serials.gap_longest, serials.unsettled_until) == (7, 3, 2, 10)


def test_unowned_time_lasts_as_long_as_the_topic_is_wanted() -> None:
    wanted = [e(ms, "runner", "topic_wanted", topic="t", wanted=count) for ms, count in ((0, 1), (500, 0))]
    events = [
        stage(0, "steady"),
        *wanted,
        notified(100, "m1", "assigned"),
        notified(300, "m1", "lost"),
        stage(900, "final"),
    ]
    coverage = measured(*events).coverage[WHOLE, BELIEVED]
    assert (coverage.gap, coverage.gap_longest, coverage.unsettled_until) == (300 * MS, 200 * MS, 500 * MS)


def test_gap_is_one_gap_where_the_topic_goes_on_being_wanted() -> None:
    wanted = [e(ms, "runner", "topic_wanted", topic="t", wanted=count) for ms, count in ((0, 1), (500, 3), (600, 1))]
    events = [
        stage(0, "steady"),
        *wanted,
        notified(100, "m1", "assigned"),
        notified(300, "m1", "lost"),
        stage(900, "final"),
    ]
    coverage = measured(*events).coverage[WHOLE, BELIEVED]
    assert (coverage.gap, coverage.gap_longest) == ((700 + 2 * 100) * MS, 600 * MS)


def test_member_id_that_is_used_again_is_open_again() -> None:
    closed = e(100, "m1", "member_closed", member="m1", group="g")
    coverage = measured(*FIRST, closed, notified(200, "m1", "assigned")).coverage[WHOLE, BELIEVED]
    assert coverage.held == 900 * MS


# -- commits and deliveries --------------------------------------------------------------------------------------------


def commits(*events: Event, tolerance_ms: int = 1) -> CommitTotals:
    found = measured(*events, tolerance_ms=tolerance_ms).commits
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("tolerance_ms", "at_ms", "records"),
    [(1, 100, 0), (1, 101, 10), (1, 100.999, 0), (50, 149, 0), (50, 150, 10)],
)
def test_delivery_is_stale_beyond_the_tolerance(tolerance_ms: int, at_ms: float, records: int) -> None:
    events = [named(0, "m1"), named(100, "m2"), polled(at_ms, "m1", 0, 9)]
    assert commits(*events, tolerance_ms=tolerance_ms).stale_delivered == records


def test_delivery_at_the_moment_of_its_naming_is_the_owners() -> None:
    assert commits(polled(100, "m2", 0, 9), named(100, "m2"), named(0, "m1")).stale_delivered == 0
    # It becomes the owner only later, but by less than clocks can tell.
    assert commits(polled(99.5, "m2", 0, 9), named(100, "m2"), named(0, "m1")).stale_delivered == 0
    assert commits(polled(98, "m2", 0, 9), named(100, "m2"), named(0, "m1")).stale_delivered == 10


def test_delivery_while_no_owner_is_named_is_not_stale() -> None:
    assert commits(named(0, "m1"), cleared(50), polled(100, "m2", 0, 9), named(100.5, "m1")).stale_delivered == 0


def test_groups_on_one_topic_are_independent() -> None:
    one = [
        started(0, "m1"),
        notified(1, "m1", "assigned"),
        named(1, "m1"),
        polled(5, "m1", 0, 9),
        polled(6, "m1", 10, 19),
        written(10, "m1", 20),
        written(30, "m1", 21),
    ]
    other = [
        started(0, "n1", "h"),
        notified(1, "n1", "assigned"),
        named(1, "n1", "h"),
        polled(5, "n1", 0, 9),
        polled(6, "n1", 10, 19),
        written(20, "n1", 5, "h"),
        e(900, "n1", "position_started", p=0, offset=6, member="n1", stream=0),
    ]
    found = commits(*one, *other)
    assert (found.written, found.moved_back, found.stale_writes, found.stale_delivered) == (3, 0, 0, 0)
    assert found.started_behind == 0
    coverage = measured(*one, *other).coverage
    assert {
        view: coverage[WHOLE, view].doubled for view in (BELIEVED, AUTHORITY, DELIVERING, OFFSETS)
    } == dict.fromkeys((BELIEVED, AUTHORITY, DELIVERING, OFFSETS), 0)


def test_commits_are_judged_by_what_was_true_then() -> None:
    events = [
        named(0, "m1"),
        written(1, "m1", 5),
        named(2, "m2"),
        written(3, "m2", 9),
        written(4, "m1", 6),
        written(4, "", 9),
        cleared(5),
        written(6, "m1", 9),
    ]
    found = commits(*events)
    assert (found.written, found.stale_writes, found.moved_back, found.moved_back_records) == (5, 1, 1, 3)


def test_old_and_fenced_commits() -> None:
    def group(at_ms: float, state: str, generation: int) -> Event:
        fields = {"state": state, "generation": generation, "members": 1, "reason": ""}
        return e(at_ms, "broker-1", "group_changed", group="g", **fields)

    def stored(at_ms: float, generation: int) -> Event:
        return e(at_ms, "broker-1", "offset_written", group="g", p=0, offset=1, by="a", epoch=generation)

    def refused(at_ms: float, by: str) -> Event:
        return e(
            at_ms, "broker-1", "offset_refused", group="g", p=0, offset=1, by=by, epoch=1, error="ILLEGAL_GENERATION"
        )

    joined = e(0, "broker-1", "group_member_joined", group="g", id="a")
    events = [joined, group(0, "Stable", 1), group(200, "CompletingRebalance", 2)]
    found = commits(*events, stored(299, 1), stored(301, 1), stored(302, -1), refused(303, "a"), refused(304, "b"))
    assert (found.old_accepted, found.refused, found.fenced) == (1, 2, 1)


def test_final_offsets_are_compared_with_commits_that_were_not_in_flight() -> None:
    def final(committed: int, end: int) -> Event:
        return e(1_000, "runner", "final_offset", group="g", p=0, committed=committed, end=end)

    assert measured(written(900, "m1", 9), final(8, 9)).final_offsets == FinalOffsets(read=1, behind=1, beyond=0)
    assert measured(written(901, "m1", 9), final(8, 9)).final_offsets == FinalOffsets(read=1, behind=0, beyond=0)
    assert measured(written(900, "m1", 9), final(10, 9)).final_offsets == FinalOffsets(read=1, behind=0, beyond=1)


# -- changes and rounds ------------------------------------------------------------------------------------------------


def test_change_has_its_window_and_what_it_moved() -> None:
    found = measured(
        *FIRST,
        named(0, "m1"),
        e(100, "runner", "change_started", change="join", round=1, members=2),
        notified(120, "m1", "revoked"),
        notified(130, "m2", "assigned"),
        named(130, "m2"),
        e(150, "runner", "change_settled", change="join", round=1, members=2),
        e(200, "runner", "fault_started", fault="freeze", target="m2"),
        e(250, "runner", "fault_ended", fault="freeze", target="m2"),
    )
    assert found.changes == [
        ChangeWindow(
            window=0,
            change="join",
            round=1,
            members=2,
            from_ns=100 * MS,
            settled_ns=150 * MS,
            healed_ns=None,
            until_ns=200 * MS,
        ),
        ChangeWindow(
            window=1,
            change="freeze",
            round=1,
            members=None,
            from_ns=200 * MS,
            settled_ns=None,
            healed_ns=250 * MS,
            until_ns=1_000 * MS,
        ),
    ]
    assert found.turnover == {0: Turnover(moved=1, stopped=1, stopped_kept=0)}
    assert [(each.before, each.after) for each in found.owners[0]] == [("m1-0", "m2-0")]
    assert found.coverage[0, BELIEVED].gap == 10 * MS


def test_round_and_what_was_kept_through_it() -> None:
    who = {"member": "m1", "stream": 0}
    found = measured(
        *FIRST,
        notified(0, "m1", "assigned", "t1"),
        e(10, "m1", "rebalance_started", stream=0, trigger="join"),
        e(20, "m1", "phase_entered", stream=0, phase="join", attempt=1),
        polled(30, "m1", 0, 9),
        e(40, "m1", "rebalance_ended", **who, outcome="ok"),
        design="cooperative",
    )
    assert found.rounds == [Round(10 * MS, 40 * MS)]
    assert found.phases == [
        MemberPhase(process="m1", member="m1", phase="rebalance", from_ns=10 * MS, until_ns=40 * MS),
        MemberPhase(process="m1", member="m1", phase="join", from_ns=20 * MS, until_ns=40 * MS),
    ]
    assert found.kept == {0: KeptThrough(kept=2, delivered=1)}


# -- known runs, any run -----------------------------------------------------------------------------------------------


def figures(found: Measured) -> dict[str, int]:
    """What a synthetic run's truth has, from a measurement."""
    believed, authority, delivering, serials, offsets = (
        found.coverage[WHOLE, view] for view in (BELIEVED, AUTHORITY, DELIVERING, SERIALS, OFFSETS)
    )
    assert found.commits is not None
    assert found.final_offsets is not None
    return {
        "events": sum(count.n for count in found.counts if count.kind == "total"),
        "torn": sum(count.n for count in found.counts if count.kind == "quarantined"),
        "deaths": sum(count.n for count in found.counts if count.kind == "process_ended"),
        "rounds": len(found.rounds),
        "rebalances": len([each for each in found.phases if each.phase == "rebalance"]),
        "delivered": offsets.held,
        "duplicates": offsets.doubled,
        "lost": serials.gap,
        "out_of_order": found.out_of_order,
        "double_owned_ms": believed.doubled // MS,
        "double_owned_longest_ms": (believed.doubled_longest or 0) // MS,
        "unowned_ms": believed.gap // MS,
        "unowned_longest_ms": (believed.gap_longest or 0) // MS,
        "unowned_authority_ms": authority.gap // MS,
        "two_delivering_ms": delivering.doubled // MS,
        "two_delivering_longest_ms": (delivering.doubled_longest or 0) // MS,
        "stale_deliveries": found.commits.stale_delivered,
        "commits": found.commits.written,
        "stale_writes": found.commits.stale_writes,
        "moved_back": found.commits.moved_back,
        "moved_back_records": found.commits.moved_back_records,
        "started_behind": found.commits.started_behind,
        "final_read": found.final_offsets.read,
        "final_behind": found.final_offsets.behind,
        "final_beyond": found.final_offsets.beyond,
    }


def truth_and_figures(folder: Path, seed: int, faults: Faults) -> tuple[Truth, dict[str, int]]:
    truth = write_synthetic(
        folder / "run",
        events_min=500 + 100 * seed,
        members=2 + seed % 3,
        partitions=2 + seed % 4,
        seed=seed,
        faults=faults,
    )
    events, tolerance_ns = oracle.events_of(folder / "run")
    assert tolerance_ns == truth.tolerance_ms * MS
    return truth, figures(oracle.measured_of(events, tolerance_ns=tolerance_ns))


@pytest.mark.parametrize("seed", range(30))
def test_synthetic_truth_is_what_the_oracle_finds(tmp_path: Path, seed: int) -> None:
    truth, found = truth_and_figures(tmp_path, seed, Faults())
    assert found == {name: getattr(truth, name) for name in found}


@pytest.mark.parametrize("seed", range(30))
def test_synthetic_truth_with_faults_is_what_the_oracle_finds(tmp_path: Path, seed: int) -> None:
    faults = Faults(zombies=0.7, brief=0.3, deaths=0.2, torn=seed % 3, foreign=seed % 2)
    truth, found = truth_and_figures(tmp_path, seed, faults)
    assert found == {name: getattr(truth, name) for name in found}


@given(traces(), st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_oracle_finds_the_same_in_any_order_of_lines(events: list[Event], shuffle: random.Random) -> None:
    shuffled = events.copy()
    shuffle.shuffle(shuffled)
    found, again = (oracle.measured_of(each, design="cooperative") for each in (events, shuffled))
    assert oracle.differences(again, found) == []


def test_differences_say_what_is_where() -> None:
    one, other = measured(*FIRST), measured(*FIRST, notified(10, "m2", "assigned"))
    assert oracle.differences(one, one) == []
    complaints = oracle.differences(one, other)
    assert any(complaint.startswith("coverage[(-1, 'believed')]") for complaint in complaints)
    assert all(complaint.startswith(("coverage", "counts")) for complaint in complaints)
    assert oracle.differences(one, other, leaving_out=("coverage", "counts")) == []
