"""The links of a simulated run: what a text says, what is drawn, and complaints."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comparison.scenarios.plan.links import DEFAULT, LOOPBACK, PRESETS, Duration, Kind, Links, canonical, links_of
from kernel.errors import ConfigurationError

MS = 1_000_000
SECOND = 1_000 * MS


@st.composite
def durations(draw: st.DrawFn) -> Duration:
    ns = draw(st.integers(0, 10 * SECOND))
    return Duration(ns, draw(st.integers(0, ns)))


@st.composite
def links(draw: st.DrawFn) -> Links:
    pairs = st.frozensets(st.sampled_from(Kind), min_size=1, max_size=2)
    usual = draw(st.one_of(st.sampled_from([*PRESETS.values()]), durations()))
    return Links(
        usual=usual,
        between=draw(st.dictionaries(pairs, durations(), max_size=4)),
        cost=draw(st.one_of(st.none(), durations())),
        start=draw(st.one_of(st.none(), durations())),
        disk=draw(st.one_of(st.none(), durations())),
    )


@given(links())
def test_what_is_written_is_read_as_the_same_delays(given: Links) -> None:
    read = links_of(str(given))

    assert [read.delay(one, other) for one in Kind for other in Kind] == [
        given.delay(one, other) for one in Kind for other in Kind
    ]
    for ours, theirs in ((read.cost, given.cost), (read.start, given.start), (read.disk, given.disk)):
        assert (ours or Duration(0)).ns == (theirs or Duration(0)).ns
    assert canonical([str(given)]) == str(read) == str(links_of(str(read)))


@given(links(), st.integers())
def test_delays_and_costs_are_drawn_within_their_spread_and_from_the_seed_alone(given: Links, seed: int) -> None:
    delay, again = given.delays(Random(seed)), given.delays(Random(seed))

    for one in Kind:
        for other in Kind:
            said = given.delay(one, other)
            drawn = [delay(one, other) for _ in range(5)]
            assert all(said.ns - said.spread_ns <= each <= said.ns + said.spread_ns for each in drawn)
            assert drawn == [again(one, other) for _ in range(5)]
    for said_to_take, draws in ((given.cost, given.costs), (given.start, given.starts), (given.disk, given.disks)):
        draw = draws(Random(seed))
        assert (said_to_take is None) == (draw is None)
        if said_to_take is not None and draw is not None:
            assert abs(draw() - said_to_take.ns) <= said_to_take.spread_ns


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ((), DEFAULT),
        (("loopback",), DEFAULT),
        (("60us±40",), DEFAULT),
        (("runner-broker=0.06ms±0.04",), DEFAULT),
        (("cost=0us",), DEFAULT),
        (("priorities=0",), DEFAULT),
        (("priorities=3", "zone"), "zone,priorities=3"),
        (("member-broker=1ms±0.5", "zone"), "zone,member-broker=1ms+-0.5"),
        (("broker-member=1000µs+-500us, zone",), "zone,member-broker=1ms+-0.5"),
        (("zookeeper-zookeeper=.5 s", "cost=20us±5"), "loopback,zookeeper-zookeeper=500ms,cost=20us+-5"),
        (("2ms±1", "member-broker=2ms±1"), "2ms+-1"),
        (("start=50ms±20", "cost=20us"), "loopback,cost=20us,start=50ms+-20"),
        (("disk=2ms±1", "start=1ms"), "loopback,start=1ms,disk=2ms+-1"),
    ],
)
def test_the_same_links_are_written_in_one_way(texts: tuple[str, ...], said: str) -> None:
    assert canonical(texts) == said


def test_the_runner_is_beside_everybody_unless_its_links_are_given() -> None:
    far = links_of("region, member-runner=7ms")

    assert far.delay(Kind.MEMBER, Kind.BROKER) == PRESETS["region"]
    assert far.delay(Kind.BROKER, Kind.RUNNER) == LOOPBACK.usual
    assert far.delay(Kind.RUNNER, Kind.MEMBER) == Duration(7 * MS)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("zoen", "unknown --link 'zoen'. Did you mean 'zone'?"),
        ("5", "unknown --link '5'. Use loopback, zone, region, or a time such as"),
        ("zone,region", "--link region: how far all processes are apart is said twice"),
        ("member=1ms", "'member' is no link. Use two of member, broker, zookeeper, runner"),
        ("member-brokr=1ms", "unknown end of --link member-brokr=1ms: 'brokr'. Did you mean 'broker'?"),
        ("member-broker=1", "'1' is no time. Use a number and ns, us, ms or s"),
        ("member-broker=1ms±-1", "'1ms±-1' is no time"),
        ("1ms±2", "the spread is more than the time. Use at most 1ms+-1"),
        ("11s", "11s is too long. Use at most 10s"),
        ("member-broker=1ms,broker-member=2ms", "--link broker-member is given twice"),
        ("cost=1us,cost=1us", "--link cost is given twice"),
        ("start=1ms,zone,start=1ms", "--link start is given twice"),
    ],
)
def test_what_is_no_link_is_refused_with_what_to_do(text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        links_of(text)

    assert complaint in str(refused.value)
