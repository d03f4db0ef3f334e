"""What a week costs is added up from single events, by properties of the sums and of their ranges."""

from __future__ import annotations

from itertools import product
from math import ceil

import hypothesis.strategies as st
import pytest
from hypothesis import given
from msgspec.structs import astuple

from comparison.choosing.advice import MEMBERS_MAX, ORDER, PARTITIONS_MAX, RULE
from comparison.choosing.answer import choice_of
from comparison.choosing.choice import EVENTS, Cell, Chooser, DesignCosts, Figure, Group, Tolerated
from comparison.choosing.costs import (
    MEASURES,
    REPEATS,
    REQUESTS,
    STANDSTILL,
    STANDSTILL_IN_ALL,
    STOPPED,
    Bounds,
    CostCell,
    Costs,
    Margin,
    is_used,
)
from comparison.scenarios.plan.parameters import RANGES
from kernel.designs import CONSUMER, DELAYED, EAGER, STATIC, ZOOKEEPER

MEMBERS, PARTITIONS, RATE = (2, 8), (10, 40), 10**9  # records follow each other at once
CORNERS = tuple(product(MEMBERS, PARTITIONS))
SLOW_S = (0, 1, 4)
SCENARIOS = ("rolling-restart", "crash", "join", "leave", "pause", "slow-record-1s", "slow-record-4s")
NOTHING: dict[str, float] = {}

amounts = st.floats(0, 1e4)
bounds = st.lists(amounts, min_size=3, max_size=3).map(sorted).map(lambda three: Bounds(*three))
counts = st.dictionaries(st.sampled_from([each.name for each in EVENTS]), st.floats(0.01, 1000))


def cell(
    scenario: str, members: int, partitions: int, found: Bounds, *, design: str = EAGER, failed: int = 0
) -> CostCell:
    assert is_used(scenario)
    figures = {each.metric: found for each in MEASURES}
    return CostCell(
        scenario=scenario, design=design, members=members, partitions=partitions, runs=3, failed=failed, figures=figures
    )


def table(*cells: CostCell, interval_s: float = 0.0) -> Costs:
    """With intervals of 0 s the moment of an event makes no difference, but for requests."""
    return Costs(
        command=["sweep"],
        made="",
        versions={},
        simulated=True,
        seeds=[1],
        rate=RATE,
        heartbeat_s=interval_s,
        commit_s=interval_s,
        cells=list(cells),
    )


tables = st.builds(
    lambda drawn, interval_s: table(*(cell(*place, each) for place, each in drawn.items()), interval_s=interval_s),
    st.fixed_dictionaries(dict.fromkeys(product(SCENARIOS, MEMBERS, PARTITIONS), bounds)),
    st.floats(0, 20),
)
groups = st.builds(
    Group,
    members=st.integers(*MEMBERS),
    partitions=st.integers(*PARTITIONS),
    rate=st.floats(0, 1e4),
    slowest_record_s=st.floats(SLOW_S[0], SLOW_S[-1]),
)
AT_A_CORNER = Group(members=2, partitions=10, rate=RATE, slowest_record_s=1)


def three(figure: Figure) -> tuple[float, ...]:
    assert figure.bounds is not None
    return astuple(figure.bounds)


def week(costs: Costs, group: Group, events: dict[str, float], tolerated: Tolerated | None = None) -> DesignCosts:
    return Chooser(costs).week(EAGER, group, events, tolerated or Tolerated())


@given(tables, groups, counts, st.sampled_from([each.name for each in EVENTS]))
def test_more_of_an_event_never_costs_less(costs: Costs, group: Group, events: dict[str, float], name: str) -> None:
    fewer, more = (week(costs, group, each) for each in (events, {**events, name: events.get(name, 0) + 1}))
    for metric, figure in fewer.figures.items():
        before, after = figure.bounds, more.figures[metric].bounds
        assert before is not None
        assert after is not None
        assert after.low >= before.low
        assert after.high >= before.high
        assert after.middle >= before.middle


@given(tables, st.sampled_from(["leave", "pause", "join", "rolling-restart"]), st.sampled_from(list(CORNERS)))
def test_one_event_at_a_value_that_was_run_has_its_runs_in_its_range(
    costs: Costs, scenario: str, corner: tuple[int, int]
) -> None:
    (name,) = (each.name for each in EVENTS if each.scenarios == (scenario,))
    group = Group(members=corner[0], partitions=corner[1], rate=RATE, slowest_record_s=0)
    (made,) = (each for each in costs.cells if (each.scenario, each.members, each.partitions) == (scenario, *corner))
    moment_s = costs.heartbeat_s + corner[1] / RATE
    share, left_over, in_turn = ceil(corner[1] / corner[0]), corner[1] % corner[0], scenario == "rolling-restart"
    margins = {
        Margin.INTERVAL: moment_s,
        Margin.PARTITIONS: moment_s * share,
        Margin.STOPS: share + left_over * in_turn,
        Margin.RECORDS: costs.commit_s * RATE / corner[0],
        Margin.REQUESTS: corner[0],
    }
    found = week(costs, group, {name: 1}).figures
    for measure in MEASURES:
        runs, stated, margin = made.figures[measure.metric], found[measure.metric], margins[measure.margin]
        if measure.margin is Margin.PARTITIONS and in_turn:
            margin += min(costs.heartbeat_s / 2 * corner[1], runs.high)
        if measure.margin in (Margin.RECORDS, Margin.STOPS) and not runs.high:
            margin = 0.0
        assert three(stated) == pytest.approx((max(0.0, runs.low - margin), runs.middle, runs.high + margin), abs=1e-6)
        assert stated.runs == made.runs
        assert stated.cells == [Cell(scenario, *corner)]


@given(tables, groups, counts)
def test_range_has_its_middle_inside_and_the_runs_around_the_input(
    costs: Costs, group: Group, events: dict[str, float]
) -> None:
    for figure in week(costs, group, events).figures.values():
        assert figure.bounds is not None
        low, middle, high = figure.bounds.low, figure.bounds.middle, figure.bounds.high
        assert low <= middle * (1 + 1e-9) + 1e-9
        assert middle <= high * (1 + 1e-9) + 1e-9
    (deploys,) = (week(costs, group, {"deploys": 1}).figures[STANDSTILL].bounds,)
    corners = [each.figures[STANDSTILL] for each in costs.cells if each.scenario == "rolling-restart"]
    assert deploys is not None
    moment_s = costs.heartbeat_s + group.partitions / RATE
    assert max(0.0, min(each.low for each in corners) - moment_s) <= deploys.low + 1e-9
    assert deploys.high <= max(each.high for each in corners) + moment_s + 1e-9


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"members": 1}, "deploys: members 1 is not within 2 to 8"),
        ({"members": 9}, "deploys: members 9 is not within 2 to 8"),
        ({"partitions": 41}, "deploys: partitions 41 is not within 10 to 40"),
        ({"slowest_record_s": 4.5}, "slow-joins: slowest record, s: 4.5 is not within 0 to 4"),
    ],
)
def test_nobody_can_say_outside_of_what_was_run(changed: dict[str, float], why: str) -> None:
    costs = table(*(cell(*place, Bounds(1, 2, 3)) for place in product(SCENARIOS, MEMBERS, PARTITIONS)))
    group = Group(**{**{"members": 4, "partitions": 20, "rate": RATE, "slowest_record_s": 2.0}, **changed})
    found = choice_of(costs, group, {"deploys": 1, "slow-joins": 1}, Tolerated(repeats=0), designs=[EAGER])
    figure = found.designs[0].figures[REPEATS]
    assert figure.bounds is None
    assert figure.why == why
    assert found.designs[0].meets is None
    assert found.advice.startswith("Nobody can say")
    slow = f"docs/sweeps/choose/slow-record-{group.slowest_record_s:g}s.toml"
    assert found.answered_by == (
        f"rebalance-lab sweep --simulated --grid scenario=rolling-restart,{slow} --grid design=eager "
        f"--grid members={group.members} --grid partitions={group.partitions} --seeds 2 -o runs/choice"
    )


def test_no_sweep_of_whole_groups_is_larger_than_a_run_may_be() -> None:
    assert (RANGES["members"][1], RANGES["partitions"][1]) == (MEMBERS_MAX, PARTITIONS_MAX)
    group = Group(members=MEMBERS_MAX + 1, partitions=20, rate=RATE, slowest_record_s=0)
    assert choice_of(table(cell("leave", 2, 10, Bounds(1, 2, 3))), group, {"leaves": 1}, Tolerated()).answered_by == ""


def test_nobody_can_say_where_a_run_failed_or_there_is_none() -> None:
    failed = cell("crash", 2, 10, Bounds(1, 2, 3), failed=1)
    costs = table(failed, cell("join", 2, 10, Bounds(1, 2, 3)))
    figure = week(costs, AT_A_CORNER, {"crashes": 1}).figures[STANDSTILL]
    assert figure.why == "crashes: 1 of 4 runs of crash with 2 members and 10 partitions failed"
    nowhere = week(costs, AT_A_CORNER, {"leaves": 1}).figures[STANDSTILL]
    assert nowhere.why == "leaves: no run of leave"


def test_partitions_and_records_are_scaled_and_the_longest_standstill_is_not() -> None:
    costs = table(*(cell("join", 2, partitions, Bounds(10, 20, 40)) for partitions in PARTITIONS))
    twice = Group(members=2, partitions=20, rate=2 * RATE, slowest_record_s=0)
    found = week(costs, twice, {"joins": 3}).figures
    assert three(found[REPEATS]) == pytest.approx((60, 120, 240))
    assert three(found[STANDSTILL]) == pytest.approx((10, 20, 40))
    low, _, high = three(found["standstill_partition_s"])
    assert (low, high) == pytest.approx((3 * 10 * 20 / 40, 3 * 40 * 20 / 10))


@pytest.mark.parametrize(
    ("tolerated", "meets", "because"),
    [
        (Tolerated(), True, ""),
        (Tolerated(repeats=3, standstill_s=3.01), True, ""),
        (Tolerated(standstill_s=2.5), None, "longest standstill, s: up to 3, 2.5 tolerated"),
        (Tolerated(standstill_s=0.5), False, "longest standstill, s: 1 at least, 0.5 tolerated"),
        (Tolerated(standstill_s=0.5, repeats=2), False, "longest standstill, s: 1 at least, 0.5 tolerated"),
    ],
)
def test_what_is_tolerated_is_met_by_the_whole_range(tolerated: Tolerated, meets: bool | None, because: str) -> None:
    found = week(table(cell("leave", 2, 10, Bounds(1, 2, 3))), AT_A_CORNER, {"leaves": 1}, tolerated)
    assert (found.meets, found.because) == (meets, because)


LEAVES = {"leaves": 1.0}
Weeks = dict[str, dict[str, tuple[float, float]]]


def advised(weeks: Weeks, tolerated: Tolerated | None = None) -> str:
    """By the ranges of some figures of each design; the other figures are 5 everywhere."""
    cells = [cell("leave", 2, 10, Bounds(5, 5, 5), design=design) for design in weeks]
    for made in cells:
        made.figures.update({name: Bounds(low, low, high) for name, (low, high) in weeks[made.design].items()})
    found = choice_of(table(*cells), AT_A_CORNER, LEAVES, tolerated or Tolerated())
    return f"{found.advice} {found.why}".rstrip()


def test_advice_is_among_those_that_surely_meet_what_is_tolerated() -> None:
    weeks: Weeks = {EAGER: {STANDSTILL: (1, 1)}, CONSUMER: {STANDSTILL: (9, 9)}, STATIC: {STANDSTILL: (0, 9)}}
    assert advised(weeks, Tolerated(standstill_s=2)) == (
        "What you tolerate: surely met by eager; surely missed by consumer; it cannot be said of static. "
        "Choose eager: the only one of today's consumers that surely meet it."
    )
    assert advised(weeks, Tolerated(standstill_s=0.5, repeats=9)) == (
        "What you tolerate: surely missed by eager, consumer; it cannot be said of static. Cannot say "
        "which to choose: in the way is longest standstill (0.5 tolerated, at best 0 to 9 in static)."
    )
    assert "No design of today's consumers meets" in advised(weeks, Tolerated(repeats=1))


def test_figure_whose_ranges_overlap_decides_nothing() -> None:
    weeks: Weeks = {
        EAGER: {STANDSTILL: (1, 3), STANDSTILL_IN_ALL: (1, 3), STOPPED: (30, 30)},
        CONSUMER: {STANDSTILL: (2, 4), STANDSTILL_IN_ALL: (2, 5), STOPPED: (9, 9)},
        STATIC: {STANDSTILL: (2, 5), STANDSTILL_IN_ALL: (4, 5), STOPPED: (0, 0)},
        ZOOKEEPER: {STANDSTILL: (0, 0)},
        DELAYED: {STANDSTILL: (0, 0)},
    }
    left_out = (
        "Not advised: zookeeper (no consumer of today's Kafka clients has ZooKeeper sessions); delayed (only Kafka "
        "Connect delays reassignments)."
    )
    assert advised(weeks) == (
        "Choose consumer of eager, consumer, static, by partitions stopped: 9 (4 to 14) a week; next is eager with 30 "
        "(25 to 35). By longest standstill the runs do not tell eager, consumer, static apart. By standstill of all "
        "partitions static drops out. By standstill of all partitions the runs do not tell eager, consumer apart. "
        f"{RULE} {left_out}"
    )


@pytest.mark.parametrize("design", [EAGER, CONSUMER])
def test_first_figure_of_the_order_that_differs_clearly_decides(design: str) -> None:
    other = ({EAGER, CONSUMER} - {design}).pop()
    assert tuple(ORDER) == (STANDSTILL, STANDSTILL_IN_ALL, STOPPED, REPEATS, REQUESTS)
    for metric, words in ORDER.items():
        after = list(ORDER)[list(ORDER).index(metric) + 1 :]
        dearer: dict[str, tuple[float, float]] = dict.fromkeys(after, (400, 400))
        weeks: Weeks = {design: {metric: (50, 51), **dearer}, other: {metric: (90, 91)}}
        assert f"Choose {design} of eager, consumer, by {words}: " in advised(dict(sorted(weeks.items(), reverse=True)))


def test_nothing_is_chosen_where_no_figure_differs() -> None:
    assert advised({EAGER: {}, CONSUMER: {STANDSTILL: (4, 6)}}) == (
        f"Cannot say which of eager, consumer to choose. By {', '.join(ORDER.values())} the runs do not tell eager, "
        f"consumer apart. {RULE}"
    )
