"""A change's counts and the model's: the model's input from the trace, and where no model applies."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from comparison.pipeline.figures.predictions import ObservedChange, compare_counts
from comparison.pipeline.figures.window_counts import WindowCounts
from comparison.pipeline.measured import EventCount, PartitionOwners
from kernel.designs import COORDINATED

PARAMETERS = {"topics": 1, "partitions": 4, "brokers": 1, "streams": 1}
#: The departed member had two of the four.
OWNERS = [("a", "a"), ("b", "a"), ("c", "b"), ("c", "b")]


def owners_of(*pairs: tuple[str | None, str | None]) -> list[PartitionOwners]:
    return [
        PartitionOwners(topic="t", partition=n, before=before, after=after) for n, (before, after) in enumerate(pairs)
    ]


def count(n: int, kind: str, name: str = "", *, outcome: str = "ok", step: str = "", area: str = "") -> EventCount:
    return EventCount(
        window=0, role="member", kind=kind, name=name, outcome=outcome, step=step, area=area, n=n, first_ns=None
    )


def leave(*more: EventCount, claims: int = 4) -> WindowCounts:
    """A leave from a group of three without a conflict: four partitions, two of them released by the others."""
    return WindowCounts(
        (
            count(34 - 4, "zk_op", "getData", step="R6", area="ids"),
            count(4, "zk_op", "getData", step="R8", area="offsets"),
            count(2, "zk_op", "delete", step="R5", area="owners"),
            count(claims, "zk_op", "create", step="R11", area="owners"),
            count(9, "zk_op", "setData", step="R4", area="offsets"),
            count(3, "zk_notified"),
            count(2, "attempt_ended"),
            *more,
        )
    )


def compared(
    counts: WindowCounts, design: str = "zookeeper", **parameters: Any
) -> dict[str, tuple[int | None, int | None]]:
    observed = ObservedChange(change="leave", members=2, rounds=1, stopped=2, moved=3, owners=owners_of(*OWNERS))
    found = compare_counts(design, observed, counts, {**PARAMETERS, **parameters})
    return {each.what: (each.measured, each.model) for each in found}


def test_leave_without_a_conflict() -> None:
    assert compared(leave()) == {"reads": (34, 34), "writes": (6, 6), "notifications": (3, 3)}


def test_one_claim_too_many_is_a_mismatch() -> None:
    assert compared(leave(claims=5))["writes"] == (7, 6)


#: Two more offsets read, one claim made and released, the other lost and read.
CONFLICT = (
    count(1, "attempt_ended", outcome="conflict"),
    count(11, "zk_op", "getData", step="R6", area="ids"),
    count(2, "zk_op", "getData", step="R8", area="offsets"),
    count(1, "zk_op", "create", step="R11", area="owners"),
    count(1, "zk_op", "create", step="R11", area="owners", outcome="NodeExists"),
    count(1, "zk_op", "getData", step="R11", area="owners"),
    count(1, "zk_op", "delete", step="R11", area="owners"),
)


def test_requests_of_failed_attempts_are_predicted() -> None:
    assert compared(leave(*CONFLICT)) == {"reads": (48, 48), "writes": (9, 9), "notifications": (3, 3)}


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (count(1, "zk_op", "delete", step="R11", area="owners"), "writes"),  # releases what it never claimed
        (count(1, "zk_op", "getData", step="R11", area="owners"), "reads"),  # reads a claim that it did not lose
        (count(1, "zk_op", "getData", step="R8", area="offsets"), "reads"),  # more than a member's share
    ],
)
def test_failed_attempt_with_too_many_requests_is_a_mismatch(more: EventCount, what: str) -> None:
    measured, predicted = compared(leave(*CONFLICT, more))[what]
    assert measured != predicted


@pytest.mark.parametrize(
    ("counts", "design", "parameters"),
    [
        (leave(count(1, "attempt_ended", outcome="error")), "zookeeper", {}),
        (leave(), "eager", {"streams": 2}),
        (leave(), "unknown", {}),
    ],
)
def test_nothing_is_predicted_where_no_model_applies(
    counts: WindowCounts, design: str, parameters: dict[str, Any]
) -> None:
    assert compared(counts, design, **parameters) == {}


ABCD, ABCDE, ABC = "aaabbbcccddd", "aaabbbccddee", "aaaabbbbcccc"
TWELVE = {"topics": 1, "partitions": 12, "brokers": 1, "streams": 1}


@pytest.mark.parametrize(
    ("design", "change", "before", "after", "stopped", "moved", "requests"),
    [
        ("eager", "join", ABCD, ABCDE, 12, 3, (6, 5)),
        ("static", "join", ABCD, ABCDE, 12, 3, (5, 5)),
        ("eager", "leave", ABCD, ABC, 9, 6, (3, 3)),
        ("eager", "crash", ABCD, ABC, 9, 6, (3, 3)),
        ("cooperative", "crash", ABCD, "aaaabbbbcccc", 0, 3, (3, 3)),
    ],
)
def test_counts_of_a_coordinators_group(
    design: str, change: str, before: str, after: str, stopped: int, moved: int, requests: tuple[int, int]
) -> None:
    members = len(set(after))
    owners = owners_of(*zip(before, after, strict=True))
    observed = ObservedChange(change=change, members=members, rounds=1, stopped=stopped, moved=moved, owners=owners)
    joins, syncs = requests
    counts = WindowCounts(
        (count(joins, "request_answered", "JoinGroup"), count(syncs, "request_answered", "SyncGroup"))
    )
    found = {each.what: (each.measured, each.model) for each in compare_counts(design, observed, counts, TWELVE)}
    expected = {
        "JoinGroup": requests[0],
        "SyncGroup": requests[1],
        "generations": 1,
        "stopped": stopped,
        "moved": moved,
    }
    assert found == {name: (number, number) for name, number in expected.items()}


@pytest.mark.parametrize("design", COORDINATED)
@pytest.mark.parametrize("change", ["leave", "crash", "partition-increase"])
def test_nothing_is_predicted_of_a_group_that_nobody_is_left_in(design: str, change: str) -> None:
    observed = ObservedChange(
        change=change, members=0, rounds=1, stopped=0, moved=0, owners=owners_of(("a", None), ("a", None))
    )
    assert compare_counts(design, observed, WindowCounts(()), TWELVE) == []


def restarted(strategy: str | None, before: str, after: str, **given: Any) -> dict[str, int | None]:
    observed = ObservedChange(
        change="restart",
        members=5,
        rounds=2,
        stopped=0,
        moved=0,
        owners=owners_of(*zip(before, after, strict=True)),
        **given,
    )
    found = compare_counts("eager", observed, WindowCounts(()), {**TWELVE, "strategy": strategy})
    return {each.what: each.model for each in found}


def test_partitions_moved_by_a_restart_are_those_of_two_assignments() -> None:
    # A member that returns with a later id goes to the end of the list: 0 left, f joins.
    assert restarted("range", "000bbbccddee", "bbbcccddeeff")["moved"] == 9 + 3
    # The same place in the list: there and back.
    assert restarted(None, "000bbbccddee", "111bbbccddee")["moved"] == 9 + 9
    assert "moved" not in restarted("sticky", "000bbbccddee", "111bbbccddee")
    # A member owns nothing, so its place in the list is not known.
    assert "moved" not in restarted("range", "000bbbccdddd", "111bbbccdddd")


def test_several_members_at_once_are_not_predicted() -> None:
    observed = ObservedChange(
        change="scale-out", members=10, rounds=1, stopped=12, moved=9, owners=owners_of(("a", "b"))
    )
    assert compare_counts("eager", observed, WindowCounts(()), TWELVE) == []


def test_reads_of_the_server_designs_coordinator_are_counted_at_the_broker() -> None:
    def broker(n: int, kind: str, name: str, **given: str) -> EventCount:
        return msgspec.structs.replace(count(n, kind, name, **given), role="broker")

    counts = WindowCounts(
        (
            broker(1, "zk_notified", "children", area="ids"),
            broker(1, "zk_notified", "children", area="brokers"),
            broker(1, "zk_op", "getChildren", step="server-ids", area="ids"),
            broker(1, "zk_op", "getData", step="server-ids", area="ids"),
            broker(7, "zk_op", "getData", step="metadata", area="topics"),
            count(3, "zk_op", "create", step="register", area="ids"),
        )
    )
    observed = ObservedChange(change="join", members=5, rounds=1, stopped=12, moved=3, owners=None)
    found = {each.what: (each.measured, each.model) for each in compare_counts("server", observed, counts, TWELVE)}
    assert found["coordinator notifications"] == (1, 1)
    assert found["coordinator reads"] == (2, 2)
    assert found["notifications"] == (0, 0)


@pytest.mark.parametrize(
    ("design", "after", "stopped", "moved", "requests"),
    [
        ("eager", "aaaabbbbcccc", 6, 4, 3),  # all but the first two have another owner
        ("cooperative", "aabbccaabbcc", 0, 0, 3),
    ],
)
def test_counts_of_a_topic_that_grows(design: str, after: str, stopped: int, moved: int, requests: int) -> None:
    before = [*"aabbcc", *[None] * 6]
    owners = owners_of(*zip(before, after, strict=True))
    observed = ObservedChange(
        change="partition-increase", members=3, rounds=1, stopped=stopped, moved=moved, owners=owners
    )
    counts = WindowCounts(
        (count(requests, "request_answered", "JoinGroup"), count(requests, "request_answered", "SyncGroup"))
    )
    found = compare_counts(design, observed, counts, {**TWELVE, "partitions": 6})
    assert {each.what: each.measured for each in found} == {each.what: each.model for each in found}
    assert {each.what for each in found} == {"JoinGroup", "SyncGroup", "generations", "stopped", "moved"}


def test_member_of_zookeeper_releases_its_claims_and_claims_more_when_a_topic_grows() -> None:
    owners = owners_of(("a", "a"), ("b", "a"), (None, "b"), (None, "b"))
    observed = ObservedChange(change="partition-increase", members=2, rounds=1, stopped=2, moved=1, owners=owners)
    counts = WindowCounts((count(2 + 4, "zk_op", "create", step="R11", area="owners"), count(2, "zk_notified")))
    found = {each.what: (each.measured, each.model) for each in compare_counts("zookeeper", observed, counts, TWELVE)}
    assert found == {"writes": (6, 6), "notifications": (2, 2)}
    nothing = ObservedChange(change="partition-increase", members=2, rounds=1, stopped=2, moved=1, owners=None)
    assert compare_counts("zookeeper", nothing, counts, TWELVE) == []
