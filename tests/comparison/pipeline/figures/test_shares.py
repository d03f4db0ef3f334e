"""How evenly a change left the partitions divided."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.figures.shares import balance, members_in, unsubscribed
from comparison.pipeline.measured import ChangeWindow, Measured, MemberPhase, PartitionOwners, ProcessEnded, RunnerEvent
from comparison.pipeline.measured_members import Refused


def window(members: int | None) -> ChangeWindow:
    ends: dict[str, Any] = {"settled_ns": None, "healed_ns": None, "until_ns": 9}
    return ChangeWindow(window=0, change="join", round=1, members=members, from_ns=1, **ends)


def measured(*after: str | None, **given: Any) -> Measured:
    owners = [PartitionOwners(topic="t", partition=n, before="gone", after=owner) for n, owner in enumerate(after)]
    return Measured(owners={0: owners}, **given)


@pytest.mark.parametrize(
    ("after", "members", "expected"),
    [
        ("aab", 2, 1),
        ("aabb", 2, 0),
        ("aaab", 3, 3),  # the third one owns nothing
        ("ab", 7, 1),
        ("abc", 2, None),  # more owners than members: somebody is counted twice
        ("", 2, None),
        ("ab", None, None),  # a fault
    ],
)
def test_balance_is_what_the_largest_share_has_more_than_the_smallest(
    after: str, members: int | None, expected: int | None
) -> None:
    assert balance(measured(*after), window(members), {}) == expected


def test_balance_ignores_partitions_without_owner() -> None:
    assert balance(measured("a", None, "b"), window(2), {}) == 0


@pytest.mark.parametrize(("parameters", "groups"), [({"streams": 2}, []), ({}, ["g", "h"])])
def test_balance_of_streams_or_of_several_groups_is_not_known(parameters: dict[str, Any], groups: list[str]) -> None:
    assert balance(measured("a", "b", groups=groups), window(2), parameters) is None


def refusal(process: str, t_ns: int, admitted_ns: int | None = None) -> Refused:
    return Refused(process=process, group="g", api="JoinGroup", error="E", t_ns=t_ns, admitted_ns=admitted_ns)


@pytest.mark.parametrize(
    ("refusals", "ended", "members"),
    [
        ([refusal("m3", 2)], [], 2),
        ([refusal("m3.2", 2), refusal("m3.3", 5)], [(3, "m3.2")], 2),  # one place
        ([refusal("m3", 2), refusal("m4", 3)], [], 1),
        ([refusal("m3", 2, 5)], [], 3),  # in at last
        ([refusal("m3", 2, 9)], [], 2),  # too late
        ([refusal("m3", 9)], [], 3),
        ([refusal("m3", 2)], [(3, "m3")], 3),  # the three are others
        ([refusal("m3", 2)], [(1, "m3"), (3, "m2"), (9, "m3")], 2),
    ],
)
def test_members_are_those_that_the_group_did_not_refuse(
    refusals: list[Refused], ended: list[tuple[int, str]], members: int
) -> None:
    ends: list[RunnerEvent] = [ProcessEnded(t_ns=t_ns, target=target) for t_ns, target in ended]
    assert members_in(Measured(refusals=refusals, runner=ends), window(3)) == members
    assert members_in(Measured(refusals=refusals, runner=ends), window(None)) is None


def test_balance_counts_no_refused_members() -> None:
    assert balance(measured(*"aabbcd", refusals=[refusal("m5", 2), refusal("m6", 2)]), window(6), {}) == 1


def phases(**processes: str) -> list[MemberPhase]:
    return [
        MemberPhase(process=process, member=member, phase="decide", from_ns=0, until_ns=1)
        for member, process in processes.items()
    ]


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        ({"m1": ["t"], "m2": ["t"]}, 0),
        ({"m1": ["t"], "m2": ["u"]}, 2),
        ({"m1": ["t"]}, 0),  # m2 subscribed to everything
        ({}, None),
    ],
)
def test_partitions_of_topics_that_their_owner_did_not_subscribe_to_are_counted(
    topics: dict[str, list[str]], expected: int | None
) -> None:
    found = measured("a", "b-0", "b-0", None, phases=phases(a="m1.2", b="m2"))
    assert unsubscribed(found, window(2), {"subscriptions": topics}) == expected


def test_subscription_of_an_unknown_owner_is_not_known() -> None:
    assert unsubscribed(measured("a"), window(2), {"subscriptions": {"m1": ["t"]}}) is None
