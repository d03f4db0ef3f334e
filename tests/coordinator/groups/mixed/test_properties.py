"""Whatever members of both protocols ask, and whatever cannot be stored: one group, whose log says what it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coordinator.groups.errors import Error
from coordinator.groups.requests import Commit, Heartbeat, Leave, Leaving, OffsetToCommit
from tests.support.groups.mixed import GROUP, MixedPartition

CLASSIC, CONSUMER, INSTANCES = ("a", "b"), ("m", "n"), ("i", "j")
OWNED = st.one_of(st.just({}), st.just({"foo": [0, 1, 2]}), st.just({"foo": range(6)}))

STEPS = st.one_of(
    st.tuples(st.just("classic joins"), st.sampled_from(CLASSIC), st.sampled_from(("foo", "bar")), OWNED),
    st.tuples(st.just("static joins"), st.sampled_from(INSTANCES)),
    st.tuples(st.just("anybody joins"), st.integers(0, 1)),
    st.tuples(st.just("syncs"), st.integers(0, 4)),
    st.tuples(st.just("beats"), st.integers(0, 4)),
    st.tuples(st.just("leaves"), st.integers(0, 4)),
    st.tuples(st.just("instance leaves"), st.sampled_from(INSTANCES)),
    st.tuples(st.just("consumer joins"), st.sampled_from(CONSUMER), st.sampled_from((None, *INSTANCES))),
    st.tuples(st.just("consumer beats"), st.integers(0, 4), st.none() | OWNED),
    st.tuples(st.just("consumer leaves"), st.integers(0, 4)),
    st.tuples(st.just("commits"), st.integers(0, 4)),
    st.tuples(st.just("waits"), st.sampled_from((1, 60, 3_000, 11_000))),
)


def members_of(at: MixedPartition) -> list[str]:
    group = at.machine.consumer.find(GROUP)
    return sorted(at.machine.classic.groups[GROUP].members if group is None else group.members) if known(at) else []


def known(at: MixedPartition) -> bool:
    return at.machine.consumer.find(GROUP) is not None or GROUP in at.machine.classic.groups


def take(at: MixedPartition, step: tuple[Any, ...]) -> None:
    match step:
        case "classic joins", member, topic, owned:
            at.join(member, topic, owned=owned, rebalance_timeout_ms=2_000)
        case "static joins", instance:
            at.join(instance_id=instance)
        case "anybody joins", _:
            at.join()
        case "consumer joins", member, instance:
            at.consumer(member, instance_id=instance)
        case "instance leaves", instance:
            at.ask(Leave, members=(Leaving("", instance),))
        case "waits", ms:
            at.advance(ms)
        case kind, number, *rest:
            if not (members := members_of(at)):
                return
            of_one(at, kind, members[number % len(members)], *rest)


def of_one(at: MixedPartition, kind: str, member: str, *rest: Any) -> None:
    group = at.machine.consumer.find(GROUP)
    epoch = at.classic.generation if group is None else group.members[member].epoch
    at.epochs[member] = epoch
    match kind:
        case "syncs":
            at.sync(member, assignments=((member, b""),))
        case "beats":
            at.ask(Heartbeat, member_id=member, generation=epoch)
        case "leaves":
            at.ask(Leave, members=(Leaving(member),))
        case "commits":
            at.ask(Commit, member_id=member, generation=epoch, offsets=(OffsetToCommit("foo", 0, 7, -1, ""),))
        case "consumer beats":
            at.consumer(member, max(epoch, 1), owned=rest[0])
        case "consumer leaves":
            at.consumer(member, -1)


def described(at: MixedPartition) -> Any:
    shown = at.machine.consumer.describe(GROUP)
    return replace(shown, members=tuple(sorted(shown.members, key=lambda member: member.member_id)))


def check(at: MixedPartition) -> None:
    rows = [row for row in at.machine.list() if row is not None]
    assert len(rows) <= 1
    group = at.machine.consumer.find(GROUP)
    classic = at.machine.classic.groups.get(GROUP)
    if group is not None:
        assert classic is None or not classic.members
        held = [
            (topic, number)
            for member in group.members.values()
            for given in (member.assigned, member.revoking)
            for topic, numbers in given.items()
            for number in numbers
        ]
        assert len(held) == len(set(held)) == len(group.owners)
        assert set(group.sessions) >= set(group.members)
        assert all(member.classic is None or member.classic.protocols for member in group.members.values())
    after = at.successor()
    if group is None and rows:  # a classic group exists although its first record could not be stored
        assert not described(after).members
    else:
        assert described(after) == described(at)


@given(st.lists(STEPS, max_size=25))
def test_group_is_one_and_its_log_says_which(steps: list[tuple[Any, ...]]) -> None:
    at = MixedPartition()
    for step in steps:
        take(at, step)
        check(at)


FATES = st.lists(st.sampled_from((None, Error.COORDINATOR_NOT_AVAILABLE)), min_size=1, max_size=5)


@given(st.lists(st.tuples(st.lists(STEPS, max_size=5), FATES), max_size=6))
def test_group_survives_writes_that_fail(rounds: list[tuple[list[tuple[Any, ...]], list[Error | None]]]) -> None:
    """Several at a time are on their way to the log; each of them may fail."""
    at = MixedPartition()
    for steps, fates in rounds:
        at.hold()
        for step in steps:
            take(at, step)
        at.settle(*fates)
        check(at)
