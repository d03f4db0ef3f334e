"""Any interleaving of several members over a model of ZooKeeper's rules: what must hold, and what need not."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.assignors.thread_range import thread_range
from kernel.values import TopicPartition
from kernel.zookeeper import paths
from tests.support.rebalance_world import GROUP, ModelMember, World
from zkconsumer import effects
from zkconsumer.state import State

#: Actions are drawn as numbers: who (modulo the members), what, and how many steps it takes.
ACTIONS = st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["step", "step", "step", "hear"]), st.integers(1, 6)))
RETRIES = 60  # enough for every member to win in the end


def grown_world(joins: list[int], partitions: int) -> World:
    """A broker, a topic, and members that have just registered; `joins` are their streams."""
    world = World()
    world.zookeeper.set_broker(0)
    world.zookeeper.set_topic("t", partitions)
    for number, streams in enumerate(joins):
        world.join(f"c{number}", {"t": streams}, max_retries=RETRIES)
    return world


def act(world: World, actions: list[tuple[int, str, int]]) -> None:
    members = list(world.members.values())
    for who, what, times in actions:
        member = members[who % len(members)]
        for _ in range(times):
            if what == "hear":
                member.hear()
            elif member.batch:
                member.take_step()
            check_no_two_owners(world)


def check_no_two_owners(world: World) -> None:
    """While no session ends, nobody delivers what another delivers, and everything delivered is owned."""
    owners = world.zookeeper.owners()
    delivered: dict[TopicPartition, str] = {}
    for member in world.members.values():
        for stream, partitions in member.machine.delivering.items():
            for partition in partitions:
                assert partition not in delivered, f"{partition}: {delivered[partition]} and {member.name}"
                delivered[partition] = member.name
                # In R4 and R5 the stream is stopped a moment before the node goes, never after.
                if member.machine.state is not State.STOPPING:
                    assert owners[partition] == f"{member.consumer_id}-{stream}"


def expected_owners(world: World, partitions: int) -> dict[TopicPartition, str]:
    threads = [
        f"{member.consumer_id}-{n}"
        for member in world.members.values()
        if paths.member_id(GROUP, member.consumer_id) in world.zookeeper.nodes
        for n in range(member.topics["t"])
    ]
    if not threads:
        return {}
    pieces = thread_range(range(partitions), threads)
    return {TopicPartition("t", number): thread for thread, part in pieces.items() for number in part}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.integers(0, 7), ACTIONS)
def test_members_that_join_at_once_end_with_the_range_rule(
    joins: list[int], partitions: int, actions: list[tuple[int, str, int]]
) -> None:
    world = grown_world(joins, partitions)
    act(world, actions)
    world.settle()
    check_no_two_owners(world)
    assert world.zookeeper.owners() == expected_owners(world, partitions)


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 4), st.integers(1, 7), st.integers(0, 3), ACTIONS, ACTIONS)
def test_a_member_that_leaves_in_the_middle_leaves_its_partitions_to_the_others(
    members: int, partitions: int, leaver: int, before: list[tuple[int, str, int]], after: list[tuple[int, str, int]]
) -> None:
    world = grown_world([1] * members, partitions)
    act(world, before)
    list(world.members.values())[leaver % members].tell(effects.CloseDemanded())
    act(world, after)
    world.settle()
    assert world.zookeeper.owners() == expected_owners(world, partitions)


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 4), st.integers(1, 7), st.integers(0, 3), ACTIONS, ACTIONS)
def test_a_session_that_expires_and_returns_is_healed_by_the_next_change(
    members: int, partitions: int, victim: int, before: list[tuple[int, str, int]], after: list[tuple[int, str, int]]
) -> None:
    """Repeated deletes may hit others' nodes meanwhile: nobody notices that before something else changes."""
    world = grown_world([1] * members, partitions)
    act(world, before)
    expired = list(world.members.values())[victim % members]
    expired.lose_session()
    for who, what, times in after:
        member = list(world.members.values())[who % members]
        if member is not expired:  # it is cut off: nothing that it asks for gets through
            move(member, what, times)
    expired.renew_session()
    world.settle()
    world.zookeeper.set_topic("t", partitions)
    world.settle()
    assert world.zookeeper.owners() == expected_owners(world, partitions)
    check_no_two_owners(world)


def move(member: ModelMember, what: str, times: int) -> None:
    for _ in range(times):
        if what == "hear":
            member.hear()
        elif member.batch:
            member.take_step()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.integers(0, 5), ACTIONS)
def test_rebalances_attempts_and_ownership_are_told_in_pairs(
    joins: list[int], partitions: int, actions: list[tuple[int, str, int]]
) -> None:
    world = grown_world(joins, partitions)
    act(world, actions)
    world.settle()
    for member in world.members.values():
        told = [line.split()[1] for line in member.told if line.strip().startswith("trace")]
        for begun, ended in (("rebalance_started", "rebalance_ended"), ("attempt_started", "attempt_ended")):
            assert [kind for kind in told if kind in (begun, ended)] == [begun, ended] * told.count(begun)
        for stream in range(member.topics["t"]):
            mine = [line for line in member.told if f"stream={stream} " in line]
            kinds = [line.split()[1].removeprefix("partitions_") for line in mine if line.strip().startswith("trace")]
            assert kinds == (["assigned", "revoked"] * len(kinds))[: len(kinds)]
