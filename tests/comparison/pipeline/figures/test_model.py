"""The count model compared with the original consumers, and the minimum of partitions moved."""

from __future__ import annotations

import pytest

from comparison.pipeline.figures.model import CRASH, JOIN, LEAVE, Setting, Troubles, moved_minimum, zookeeper

NONE = Troubles()


@pytest.mark.parametrize(
    ("change", "members", "partitions", "brokers", "reads"),
    [
        # Measured on Kafka 0.8.2.2, one topic: joins and leaves of groups of 4 to 99.
        (JOIN, 5, 100, 3, 221),
        (JOIN, 10, 100, 3, 391),
        (JOIN, 20, 100, 3, 881),
        (JOIN, 50, 100, 3, 3_551),
        (JOIN, 100, 100, 3, 12_001),
        (LEAVE, 4, 100, 3, 192),
        (LEAVE, 9, 100, 3, 352),
        (LEAVE, 19, 100, 3, 822),
        (LEAVE, 49, 100, 3, 3_432),
        (LEAVE, 99, 100, 3, 11_782),
        (JOIN, 5, 12, 1, 103),
        (LEAVE, 3, 12, 1, 60),
        (CRASH, 3, 12, 1, 60),
        # n(n-1) + 14n + 13, less 2 for each member that gets no partition.
        (JOIN, 21, 12, 1, 21 * 20 + 14 * 21 + 13 - 2 * 9),
    ],
)
def test_reads_of_a_change_equal_the_originals(
    change: str, members: int, partitions: int, brokers: int, reads: int
) -> None:
    at = Setting(members=members, topics=1, partitions=partitions, brokers=brokers)
    assert zookeeper(change, at, NONE)["reads"].count == reads


def test_join_as_of_1_1_has_the_counts_of_1_1_1() -> None:
    """104 reads and 28 writes were measured on 1.1.1; 0.8.2.2 makes 103 and 25."""
    at = Setting(members=5, topics=1, partitions=12, brokers=1, release_1_1=True)
    predicted = zookeeper(JOIN, at, NONE)
    assert (predicted["reads"].count, predicted["writes"].count) == (104, 28)
    left = Setting(members=3, topics=1, partitions=12, brokers=1, release_1_1=True)
    assert zookeeper(LEAVE, left, NONE)["reads"].count == 60


@pytest.mark.parametrize(("change", "reads"), [(JOIN, 103 - 5), (LEAVE, 103 - 1 - 5)])
def test_watch_registered_by_a_single_read_saves_one_read_per_member(change: str, reads: int) -> None:
    at = Setting(members=5, topics=1, partitions=12, brokers=1, one_read=True)
    predicted = zookeeper(change, at, NONE)["reads"]
    assert (predicted.count, "N(T+3B+8)" in predicted.formula) == (reads, True)


@pytest.mark.parametrize(("change", "notifications"), [(JOIN, 4), (LEAVE, 6), (CRASH, 5)])
def test_notifications_of_a_change(change: str, notifications: int) -> None:
    at = Setting(members=5, topics=1, partitions=12, brokers=1)
    assert zookeeper(change, at, NONE)["notifications"].count == notifications


@pytest.mark.parametrize(
    ("change", "released", "writes"),
    [
        # Measured on Kafka 0.8.2.2 with 12 partitions: a join to 5, and the leave of a member with 3.
        (JOIN, None, 25),
        (LEAVE, 3, 21),
        (CRASH, 3, 21),
        (CRASH, 0, 24),  # it had owned nothing
    ],
)
def test_writes_of_a_change(change: str, released: int | None, writes: int) -> None:
    at = Setting(members=5, topics=1, partitions=12, brokers=1, released=released)
    assert zookeeper(change, at, NONE)["writes"].count == writes


def test_writes_of_a_leave_are_not_predicted_without_knowing_what_the_member_owned() -> None:
    assert "writes" not in zookeeper(LEAVE, Setting(members=5, topics=1, partitions=12, brokers=1), NONE)


@pytest.mark.parametrize(
    ("members", "topics", "partitions", "streams", "share"),
    [(3, 1, 12, 1, 4), (5, 1, 12, 1, 3), (21, 1, 24, 1, 2), (4, 2, 24, 1, 6), (2, 1, 12, 4, 8), (5, 1, 3, 4, 3)],
)
def test_most_partitions_that_a_member_owns(
    members: int, topics: int, partitions: int, streams: int, share: int
) -> None:
    at = Setting(members=members, topics=topics, partitions=partitions, brokers=1, streams=streams)
    assert at.share == share


@pytest.mark.parametrize(
    ("troubles", "reads", "writes"),
    [
        # One attempt for 3 partitions, 2 of which were still owned: it releases 1 claim.
        (Troubles(attempts=1, offset_reads=15, conflicts=2), 3 + 2, 3 + 1),
        (Troubles(attempts=1, offset_reads=14, conflicts=2), 2 + 2, 2),
        # No attempt claims more than a member's share, fails without a conflict, or has more of them than claims.
        (Troubles(attempts=1, offset_reads=20, conflicts=2), 3 + 2, 3 + 1),
        (Troubles(attempts=1, offset_reads=15, conflicts=0), 3 + 1, 3 + 2),
        (Troubles(attempts=1, offset_reads=14, conflicts=5), 2 + 2, 2),
        (Troubles(attempts=1, offset_reads=11, conflicts=0), 0, 0),
    ],
)
def test_failed_attempt_adds_its_requests_within_bounds(troubles: Troubles, reads: int, writes: int) -> None:
    at = Setting(members=5, topics=1, partitions=12, brokers=2)
    calm, troubled = zookeeper(JOIN, at, NONE), zookeeper(JOIN, at, troubles)
    assert troubled["reads"].count - calm["reads"].count == (5 + 1 + 4 + 6) + reads
    assert troubled["writes"].count - calm["writes"].count == writes
    assert "failed" in troubled["reads"].formula


def test_trace_does_not_change_the_prediction_without_failed_attempts() -> None:
    at = Setting(members=5, topics=1, partitions=12, brokers=2)
    assert zookeeper(JOIN, at, Troubles(offset_reads=15, conflicts=3)) == zookeeper(JOIN, at, NONE)


def owners(before: str, after: str) -> list[tuple[str | None, str | None]]:
    return [(b if b != "." else None, a if a != "." else None) for b, a in zip(before, after, strict=True)]


@pytest.mark.parametrize(
    ("before", "after", "members", "minimum"),
    [
        ("aaabbbcccddd", "aaabbbccddee", 5, 2),  # range, one joins: as in the originals
        ("aaabbbcccddd", "aaaabbbbcccc", 3, 3),  # range, one leaves
        ("aabb", "aabb", 2, 0),
        ("aaaa", "bbbb", 1, 4),
        ("aaaa", "aabb", 2, 2),
        ("....", "aabb", 2, 0),  # nobody owned anything: nothing had to move
        ("aabb", "ab..", 2, 0),
    ],
)
def test_fewest_partitions_that_had_to_move(before: str, after: str, members: int, minimum: int) -> None:
    assert moved_minimum(owners(before, after), members) == minimum
