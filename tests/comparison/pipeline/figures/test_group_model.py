"""The models of the designs with a coordinator, compared with librdkafka on Kafka 4.1.1."""

from __future__ import annotations

import pytest

from comparison.pipeline.figures.group_model import GroupSetting, moved_by_strategy, predict

#: (JoinGroup, SyncGroup, generations, stopped, moved); members after the change, twelve partitions.
MEASURED = [
    ("eager", "join", 5, None, 3, (6, 5, 1, 12, 3)),
    ("static", "join", 5, None, 3, (5, 5, 1, 12, 3)),
    ("cooperative", "join", 5, None, None, (11, 10, 2, 2, 2)),
    ("delayed", "join", 5, None, None, (11, 10, 2, 2, 2)),
    # The leaving member had 3 of the 12; the other 9 are taken from members that stay.
    ("eager", "leave", 3, 3, 6, (3, 3, 1, 9, 6)),
    ("static", "leave", 3, 3, 6, (3, 3, 1, 9, 6)),
    ("cooperative", "leave", 3, 3, None, (3, 3, 1, 0, 3)),
    ("eager", "crash", 3, 3, 6, (3, 3, 1, 9, 6)),
    ("cooperative", "crash", 3, 3, None, (3, 3, 1, 0, 3)),
    # A rolling restart of five, one of them: 10/108/46 and 15/10/23 in all.
    ("eager", "restart", 5, 3, 18, (10, 9, 2, 21, 18)),
    ("static", "restart", 5, 3, None, (1, 1, 0, 0, 0)),
    ("cooperative", "restart", 5, 3, None, (15, 14, 3, 2, 5)),
    ("consumer", "join", 5, None, None, (0, 0, 1, 2, 2)),
    ("consumer", "leave", 3, 3, None, (0, 0, 1, 0, 3)),
    ("consumer", "crash", 3, 3, None, (0, 0, 1, 0, 3)),
    ("consumer", "restart", 5, 3, None, (0, 0, 2, 2, 5)),  # 10/10/22 in all
    # Derived: the delay costs a round. There is none if the leader left, or a member without partitions.
    ("delayed", "crash", 3, 3, None, (6, 6, 2, 0, 3)),
    ("delayed", "leave", 3, 0, None, (3, 3, 1, 0, 0)),
    # More members than partitions: nobody has to revoke anything.
    ("cooperative", "join", 13, None, None, (14, 13, 1, 0, 0)),
    ("consumer", "join", 13, None, None, (0, 0, 1, 0, 0)),
]
NAMES = ("JoinGroup", "SyncGroup", "generations", "stopped", "moved")


@pytest.mark.parametrize(("design", "change", "members", "released", "moved", "counts"), MEASURED)
def test_counts_of_a_change(
    design: str, change: str, members: int, released: int | None, moved: int | None, counts: tuple[int, ...]
) -> None:
    at = GroupSetting(members=members, partitions=12, released=released, moved=moved)
    assert tuple(predict(design, change, at)[name].count for name in NAMES) == counts


def test_crash_of_the_leader_loses_its_memory_of_the_assignment() -> None:
    at = GroupSetting(members=3, partitions=12, released=3, leader_went=True)
    assert predict("delayed", "crash", at)["generations"].count == 1


def test_rounds_are_not_predicted_after_a_late_sync() -> None:
    at = GroupSetting(members=5, partitions=12, synced_late=True)
    assert {name: each.count for name, each in predict("cooperative", "join", at).items()} == {"stopped": 2, "moved": 2}
    assert predict("eager", "join", at)["generations"].count == 1


def test_members_of_the_server_design_send_no_join_and_are_never_notified() -> None:
    predicted = predict("server", "join", GroupSetting(members=5, partitions=12, moved=3))
    assert {name: each.count for name, each in predicted.items()} == {
        "generations": 1,
        "stopped": 12,
        "moved": 3,
        "notifications": 0,
        "coordinator notifications": 1,
        "coordinator reads": 2,
    }


@pytest.mark.parametrize(("change", "notifications", "reads"), [("leave", 1, 1), ("crash", 1, 1), ("restart", 2, 3)])
def test_only_the_coordinator_is_notified_in_the_server_design(change: str, notifications: int, reads: int) -> None:
    predicted = predict("server", change, GroupSetting(members=5, partitions=12))
    counts = (predicted["coordinator notifications"].count, predicted["coordinator reads"].count)
    assert counts == (notifications, reads)


@pytest.mark.parametrize(
    ("design", "change"), [("eager", "leave"), ("cooperative", "leave"), ("eager", "restart"), ("consumer", "restart")]
)
def test_counts_that_depend_on_something_unknown_are_left_out(design: str, change: str) -> None:
    predicted = predict(design, change, GroupSetting(members=3, partitions=12))
    assert "moved" not in predicted
    assert {"JoinGroup", "SyncGroup", "generations"} <= predicted.keys()


def test_restart_in_delayed_is_not_predicted() -> None:
    assert predict("delayed", "restart", GroupSetting(members=5, partitions=12, released=3)) == {}


def ids(members: str) -> list[str]:
    return list(members)


def partitions(topics: int = 1) -> list[tuple[str, int]]:
    return [(f"t{topic}", partition) for topic in range(topics) for partition in range(12 // topics)]


def test_rolling_restart_moves_as_many_as_on_the_real_broker() -> None:
    """Five members, twelve partitions: each member leaves once and returns with an id that sorts at the same place."""
    for strategy, moved in (("range", 46), ("roundrobin", 100)):
        rounds = [
            (moved_by_strategy(strategy, partitions(), ids("abcde"), ids("abcde".replace(gone, ""))) or 0)
            + (moved_by_strategy(strategy, partitions(), ids("abcde".replace(gone, "")), ids("abcde")) or 0)
            for gone in "abcde"
        ]
        assert sum(rounds) == moved, strategy


def test_joins_and_leaves_move_as_many_as_on_the_real_broker() -> None:
    moved = [
        moved_by_strategy(strategy, partitions(), ids(before), ids(after))
        for strategy in ("range", "roundrobin")
        for before, after in (("abcd", "abcde"), ("abcd", "abc"))
    ]
    assert moved == [3, 6, 8, 9]


def test_range_assigns_topic_by_topic() -> None:
    assert moved_by_strategy("range", partitions(topics=4), ids("ab"), ids("abc")) == 8
    assert moved_by_strategy("roundrobin", partitions(topics=4), ids("ab"), ids("abc")) == 8


def test_moves_of_a_strategy_with_a_memory_are_not_known() -> None:
    assert moved_by_strategy("sticky", partitions(), ids("ab"), ids("abc")) is None
    assert moved_by_strategy("range", partitions(), ids("ab"), []) is None
