"""What makes groups of thousands cheap: cached slices are never stale, and no request costs more in a larger group."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.groups.answers import JoinAnswer
from coordinator.groups.errors import Error
from coordinator.groups.limits import Limits
from coordinator.groups.records import GroupRecord, MemberRecord
from coordinator.groups.requests import Protocol
from coordinator.service.group_answers import JOIN_ANSWERS, entries_ahead
from coordinator.service.record_codec import encode, encode_ahead
from kernel.platform.garbage import collection_put_off
from kernel.wire.codec import encode_response
from kernel.wire.versions import Api
from tests.support.groups.classic import Machine, subscription

LIMITS = Limits(initial_rebalance_delay_ms=50, session_timeout_ms_min=10, session_timeout_ms_max=60_000)
WHO = ("a", "b", "c")
#: What a member may come with: one or two protocols, other topics, other timeouts.
COMING = st.fixed_dictionaries(
    {
        "protocols": st.lists(
            st.builds(Protocol, st.sampled_from(["range", "sticky"]), st.sampled_from(["t", "u"]).map(subscription)),
            min_size=1,
            max_size=2,
            unique_by=lambda protocol: protocol.name,
        ).map(lambda protocols: (Protocol("common", protocols[0].metadata), *protocols)),
        "session_timeout_ms": st.sampled_from([10_000, 20_000]),
        "rebalance_timeout_ms": st.sampled_from([500, 700]),
        "instance_id": st.none() | st.sampled_from(["i", "j", "k"]),
    }
)


def by_kio(version: int, answer: JoinAnswer) -> bytes:
    body = {
        "error_code": int(answer.error),
        "generation_id": answer.generation,
        "protocol_type": answer.protocol_type,
        "protocol_name": answer.protocol_name or None,
        "leader": answer.leader,
        "skip_assignment": answer.skip_assignment,
        "member_id": answer.member_id,
        "members": [
            {"member_id": p.member_id, "group_instance_id": p.instance_id, "metadata": p.subscription}
            for p in answer.members
        ],
    }
    return encode_response(Api.JoinGroup, version, 7, body)[8:]


def uncached(record: GroupRecord) -> GroupRecord:
    """The same record without its cached slices."""
    bare = [MemberRecord(dataclasses.replace(p, listed=None, stored=None), given) for p, given in record.members]
    return record._replace(members=tuple(bare))


@given(
    st.lists(
        st.tuples(st.sampled_from(["join", "join", "new", "sync", "leave", "wait"]), st.sampled_from(WHO), COMING),
        max_size=25,
    ),
    st.sampled_from(sorted(JOIN_ANSWERS)),
)
def test_answers_from_cached_parts_equal_those_encoded_from_scratch(story, version):
    machine = Machine(LIMITS)
    for verb, who, coming in story:
        if verb == "sync":
            machine.sync(who, {name: name.encode() for name in WHO})
        elif verb == "leave":
            machine.leave(who)
        elif verb == "wait":
            machine.wait(100)
        else:
            machine.join(who, new=verb == "new", **coming)
    for outcome in machine.outcomes:
        for answer in [answer for _, answer in outcome.replies if isinstance(answer, JoinAnswer)]:
            for _ in entries_ahead(JOIN_ANSWERS[version], answer):
                pass
            assert JOIN_ANSWERS[version](answer).tail == by_kio(version, answer)
        for write in outcome.writes:
            for _ in encode_ahead(write.changes):
                pass
            for change in write.changes:
                if isinstance(change[1], GroupRecord):
                    assert encode(change) == encode((change[0], uncached(change[1])))


def test_a_member_that_rejoins_unchanged_keeps_its_slices():
    machine = Machine(LIMITS)
    machine.admit("a")
    machine.wait(200)
    machine.sync("a")
    member = machine.group.members[machine.ids["a"]]
    profile = member.profile("range")
    machine.join("a")  # the leader: a rebalance
    assert machine.group.generation == 2
    assert member.profile("range") is profile
    machine.sync("a")
    machine.join("a", session_timeout_ms=20_000)
    assert member.profile("range") is not profile
    assert member.profile("range").session_timeout_ms == 20_000


# -- the cost of one request ----------------------------------------------------------------------------------------


def calls_of(do: Callable[[], Any]) -> int:
    """How many functions are called, in Python and in C."""
    count = 0

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    with collection_put_off():  # a collection would count the finalizers of other tests' garbage
        sys.setprofile(counted)
        try:
            do()
        finally:
            sys.setprofile(before)
    return count


def crowd(count: int) -> Machine:
    """A Stable group of so many members, and one more whose id is pending."""
    machine = Machine(LIMITS)
    for number in range(count):
        machine.admit(f"m{number}")
    machine.wait(200)
    for number in range(count):
        machine.sync(f"m{number}")
    assert machine.state == "Stable"
    assert machine.join("late").answer.error is Error.MEMBER_ID_REQUIRED
    return machine


SMALL, LARGE = 10, 200


def cost_in(machine: Machine, asked: Callable[[Machine], object]) -> int:
    return calls_of(lambda: asked(machine))


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(lambda machine: machine.join("last"), id="new member's first JoinGroup"),
        pytest.param(lambda machine: machine.join("m1"), id="follower's unchanged JoinGroup"),
        pytest.param(lambda machine: machine.sync("m1"), id="follower's SyncGroup"),
        pytest.param(lambda machine: machine.heartbeat("m1"), id="Heartbeat"),
    ],
)
def test_a_request_costs_no_more_in_a_larger_group(asked):
    small, large = (cost_in(crowd(count), asked) for count in (SMALL, LARGE))
    assert large - small <= 12


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(lambda machine: machine.join("late"), id="new member's JoinGroup"),
        pytest.param(lambda machine: machine.leave("m1"), id="LeaveGroup"),
    ],
)
def test_starting_a_rebalance_costs_one_look_at_each_member(asked):
    small, large = (cost_in(crowd(count), asked) for count in (SMALL, LARGE))
    assert large - small <= LARGE - SMALL + 12  # for the longest of the rebalance timeouts


def test_joining_while_a_rebalance_is_prepared_costs_no_more_in_a_larger_group():
    machines = [crowd(count) for count in (SMALL, LARGE)]
    for machine in machines:
        machine.join("late")
    small, large = (cost_in(machine, lambda machine: machine.join("m1")) for machine in machines)
    assert large - small <= 12
