"""Cooperative members together, in every order of polls, answers, callbacks and crashes (KIP-429)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.membership.classic import events
from coordinator.membership.classic.member import MemberState
from coordinator.membership.events import Closed, Polled
from tests.coordinator.membership.classic.cooperative_world import EVERYTHING, World
from tests.support.properties import examples

CLIENTS = 4

numbers = st.integers(0, CLIENTS - 1)
topics = st.sampled_from([("t",), ("u",), ("t", "u")])
#: Most steps are ones in which things go well.
happenings = st.one_of(
    st.tuples(st.sampled_from(["answer", "answer", "callback", "poll", "heartbeat"]), numbers),
    st.tuples(st.sampled_from(["answer", "answer", "callback", "poll", "heartbeat"]), numbers),
    st.tuples(st.sampled_from(["answer", "callback", "poll", "heartbeat"]), numbers),
    st.tuples(st.sampled_from(["expel", "hurry", "unsubscribe", "close"]), numbers),
    st.tuples(topics, numbers),
)


def let(world: World, what: object, number: int) -> None:
    match what:
        case "answer":
            world.answer(number)
        case "callback":
            world.callback(number)
        case "poll":
            world.say(number, Polled())
        case "heartbeat":
            world.heartbeat(number)
        case "expel":
            world.expel(number)
        case "hurry":
            world.hurry()
        case "unsubscribe":
            world.say(number, events.Unsubscribed())
        case "close":
            world.say(number, Closed())
        case _:
            assert isinstance(what, tuple)
            world.say(number, events.SubscriptionChanged(frozenset(what)))


def wanted(world: World) -> frozenset[object]:
    """The partitions to which some member subscribes."""
    topics = {
        topic
        for client in world.clients
        if client.member.state is not MemberState.LEFT
        for topic in client.member.topics or ()
    }
    return frozenset(tp for tp in EVERYTHING if tp.topic in topics)


@settings(max_examples=examples(200), deadline=None)
@given(st.booleans(), st.lists(st.tuples(happenings), max_size=80))
def test_no_partition_has_two_owners_and_the_group_settles(settled: bool, course: list[tuple[tuple]]) -> None:
    world = World()
    for _ in range(CLIENTS):
        world.start("t")
    if settled:
        world.go_well()
    for ((what, number),) in course:
        let(world, what, number)
    world.go_well()
    resting = (MemberState.STABLE, MemberState.UNJOINED, MemberState.LEFT)
    assert all(client.member.state in resting for client in world.clients), world.clients
    stable = [client for client in world.clients if client.member.state is MemberState.STABLE]
    assert all(client.member.topics is None for client in world.clients if client.member.state is MemberState.UNJOINED)
    assert frozenset().union(*(client.member.owned for client in stable)) == wanted(world)
    assert {client.member.generation for client in stable} <= {world.generation}
    if len({client.member.topics for client in stable}) == 1:
        shares = [len(client.member.owned) for client in stable]
        assert max(shares) - min(shares) <= 1


def formed(number: int, *topics: str) -> World:
    world = World()
    for _ in range(number):
        world.start(*topics)
    world.go_well()
    forget_what_was_given_up(world)
    return world


def forget_what_was_given_up(world: World) -> None:
    for client in world.clients:
        client.gave_up = frozenset()


def test_join_costs_two_generations_and_leave_costs_one():
    world = formed(3)
    generation = world.generation
    had = [client.member.owned for client in world.clients]
    world.start("t")
    world.go_well()
    assert world.generation == generation + 2
    gave_up = frozenset().union(*(client.gave_up for client in world.clients))
    assert gave_up == world.clients[3].member.owned
    assert all(client.member.owned <= before for client, before in zip(world.clients, had, strict=False))
    forget_what_was_given_up(world)
    world.say(3, Closed())
    world.go_well()
    assert world.generation == generation + 3
    assert not any(client.gave_up for client in world.clients)


def test_crash_costs_one_generation_and_stops_no_other_member():
    world = formed(3)
    generation = world.generation
    dead = world.clients.pop()
    world.remove(dead.member.member_id)
    world.go_well()
    assert world.generation == generation + 1
    assert not any(client.gave_up for client in world.clients)


def test_unsubscribed_topic_is_revoked_before_the_join():
    world = formed(2, "t", "u")
    for number in range(2):
        world.say(number, events.SubscriptionChanged(frozenset({"t"})))
    world.go_well()
    assert {tp.topic for client in world.clients for tp in client.gave_up} == {"u"}
    assert all(client.member.state is MemberState.STABLE for client in world.clients)
