"""The runner's view of the group, from the members' events."""

from __future__ import annotations

import pytest

from comparison.scenarios.testbed.group_view import GroupView
from kernel.values import TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def owns(
    process: str, *partitions: TopicPartition, kind: str = "partitions_assigned", ns: int = 0
) -> dict[str, object]:
    """It is given these, or gives them up."""
    rows = [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]
    return {"ns": ns, "kind": kind, "process": process, "member": f"{process}-id", "stream": 0, "partitions": rows}


def about(kind: str, process: str, ns: int = 0, **fields: object) -> dict[str, object]:
    return {"ns": ns, "kind": kind, "process": process, "member": f"{process}-id", "stream": None, **fields}


@pytest.fixture
def view() -> GroupView:
    return GroupView([P0, P1])


def test_a_group_is_settled_when_every_partition_has_one_owner_and_every_member_owns_one(view: GroupView) -> None:
    view.apply(owns("m1", P0))
    assert not view.settled(2, 0)
    view.apply(owns("m2", P1))
    assert view.settled(2, 0)


def test_a_process_that_has_stopped_polling_is_known_and_nothing_has_moved(view: GroupView) -> None:
    view.apply({"kind": "polling_stopped", "process": "m1"})
    assert view.stopped_polling == {"m1"}
    assert view.moved_ns == 0


def test_a_group_is_not_settled_while_a_partition_is_owned_twice(view: GroupView) -> None:
    view.apply(owns("m1", P0, P1))
    assert view.settled(1, 0)
    view.apply(owns("m2", P1))
    assert not view.settled(2, 0)
    assert "owned twice: t-1" in view.summary()


def test_more_members_than_partitions_settle_with_idle_ones(view: GroupView) -> None:
    view.apply(owns("m1", P0))
    view.apply(owns("m2", P1))
    assert view.settled(3, 0)


def test_a_group_is_not_settled_while_an_unsubscribed_member_owns_a_partition(view: GroupView) -> None:
    view.subscribed = {"m1": frozenset({"t"}), "m2": frozenset({"t"})}
    view.apply(owns("m1", P0))
    view.apply(owns("m2", P1))
    assert view.settled(2, 0)
    view.subscribed["m2"] = frozenset({"u"})
    assert not view.settled(2, 0)
    assert "owned by an unsubscribed member: t-1" in view.summary()


def test_a_group_is_not_settled_before_added_partitions_are_owned(view: GroupView) -> None:
    view.apply(owns("m1", P0, P1))
    added = TopicPartition("t", 2)
    view.grow([added])
    assert not view.settled(1, 0)
    view.apply(owns("m1", P0, P1, added))
    assert view.settled(1, 0)


def test_what_was_delivered_of_a_deleted_topic_is_forgotten_when_it_is_created_again(view: GroupView) -> None:
    delivered = {"topic": "t", "partition": 1, "first": 0, "last": 7}
    view.apply(owns("m1", P0))
    view.apply(about("records_delivered", "m1", **delivered))
    view.shrink([P1])
    assert view.settled(1, 0)
    view.grow([P1])
    assert not view.settled(1, 0)
    assert view.delivered == {}


def test_a_member_without_partitions_has_joined_after_its_first_rebalance(view: GroupView) -> None:
    view.apply(owns("m1", P0))
    view.apply(owns("m2", P1))
    for process in ("m1", "m2"):
        view.apply(about("rebalance_ended", process, outcome="ok"))
    assert view.settled(2, 2)
    assert not view.settled(3, 3)
    view.apply(about("rebalance_ended", "m3", outcome="failed"))
    assert not view.settled(3, 3)
    view.apply(about("rebalance_ended", "m3", outcome="ok"))
    assert view.settled(3, 3)


def test_a_member_that_is_forgotten_has_to_join_again_and_counts_once(view: GroupView) -> None:
    for process, partition in (("m1", P0), ("m2", P1)):
        view.apply(owns(process, partition))
        view.apply(about("rebalance_ended", process, outcome="ok"))
    assert view.settled(2, 2)
    view.apply(about("rebalance_started", "m2") | {"member": None})
    assert not view.settled(2, 2)
    view.apply(about("rebalance_ended", "m2", outcome="ok") | {"member": "another"})
    assert view.settled(2, 2)
    assert not view.settled(3, 3), "a third one has not joined yet"


def test_members_of_one_process_count_each() -> None:
    view = GroupView([P0], several_each=True)
    view.apply(owns("m1", P0))
    for member in ("m1-id", "m1-other"):
        assert not view.settled(2, 2)
        view.apply(about("rebalance_ended", "m1", outcome="ok") | {"member": member})
    assert view.settled(2, 2)


def test_a_group_is_not_settled_while_a_member_may_have_lost_what_it_believes_in() -> None:
    view = GroupView([P0, P1], claims_in_sessions=True)
    view.apply(owns("m1", P0))
    view.apply(owns("m2", P1))
    assert view.settled(2, 0)
    for state, session in (("lost", "1f"), ("connected", "2f")):
        view.apply(about("session_changed", "m2", state=state, session=session))
        assert not view.settled(2, 0)
        assert "without the session of what they own: m2" in view.summary()
    view.leave_out("m2")
    view.apply(owns("m1", P1))
    assert view.settled(1, 0), "who has gone is not asked"


def test_a_group_of_many_topics_settles_with_members_that_range_gives_nothing() -> None:
    other = TopicPartition("u", 0)
    view = GroupView([P0, P1, other])
    view.apply(owns("m1", P0, other))
    view.apply(owns("m2", P1))
    assert view.settled(3, 0)


def test_a_frozen_member_does_not_count_until_it_resumes(view: GroupView) -> None:
    view.apply(owns("m1", P0))
    view.apply(owns("m2", P1))
    view.leave_out("m2")
    assert not view.settled(1, 0)
    view.apply(owns("m1", P0, P1))
    assert view.settled(1, 0)
    view.take_back("m2")
    assert not view.settled(2, 0)
    view.apply(owns("m2", P1, kind="partitions_lost"))
    view.apply(owns("m1", P1, kind="partitions_revoked"))
    view.apply(owns("m2", P1))
    assert view.settled(2, 0)


def test_a_group_is_quiet_without_open_rebalances_and_recent_events(view: GroupView) -> None:
    view.apply(about("rebalance_started", "m1", ns=0, trigger="children"))
    assert not view.quiet(10**12, 300)
    view.apply(about("rebalance_ended", "m1", ns=1_000_000_000, outcome="ok"))
    assert not view.quiet(1_200_000_000, 300)
    assert view.quiet(1_300_000_000, 300)


def test_an_open_rebalance_of_a_killed_member_is_ignored(view: GroupView) -> None:
    view.apply(about("rebalance_started", "m1", trigger="children"))
    view.leave_out("m1")
    assert view.quiet(10**9, 300)


def test_deliveries_and_commits_only_move_forward(view: GroupView) -> None:
    for last in (9, 4):
        view.apply(about("records_delivered", "m1", topic="t", partition=0, first=0, last=last))
    assert view.delivered == {P0: 10}
    for offset, outcome in ((7, "accepted"), (3, "accepted"), (99, "refused")):
        view.apply(about("commit_answered", "m1", topic="t", partition=0, offset=offset, outcome=outcome))
    assert view.committed == {P0: 7}


def test_a_failure_is_kept_for_the_message_of_a_wait(view: GroupView) -> None:
    view.apply(about("member_failed", "m1", error="no brokers"))
    assert "m1: no brokers" in view.summary()


def completed(view: GroupView, generation: int, *processes: str) -> None:
    for process in processes:
        view.apply(about("rebalance_started", process, trigger="group"))
        view.apply(about("rebalance_ended", process, outcome="ok", generation=generation))


LATER = 10**12


def test_members_without_partitions_settle_when_all_have_what_the_group_decided(view: GroupView) -> None:
    view.apply(owns("m1", P0, P1))
    completed(view, 1, "m1")
    assert view.settled(1, 1, LATER)
    assert not view.settled(2, 2, LATER)  # m2 has not joined
    completed(view, 2, "m2")
    assert not view.settled(2, 2, LATER)  # m1 still has what the generation before decided
    completed(view, 2, "m1")
    assert view.settled(2, 2, LATER)


def test_members_without_partitions_settle_only_when_nothing_is_under_way(view: GroupView) -> None:
    view.apply(owns("m1", P0, P1))
    completed(view, 1, "m1", "m2")
    assert not view.settled(2, 2, 299_000_000)
    assert view.settled(2, 2, 300_000_000)
    view.apply(about("rebalance_started", "m2", trigger="revoked"))
    assert not view.settled(2, 2, LATER)


def test_what_a_member_has_under_an_earlier_id_does_not_count(view: GroupView) -> None:
    view.apply(owns("m1", P0, P1))
    view.apply({**about("rebalance_ended", "m2", outcome="ok", generation=1), "member": "earlier"})
    completed(view, 2, "m1")
    assert not view.settled(2, 2, LATER)
    completed(view, 2, "m2")
    assert view.settled(2, 2, LATER)


def test_a_member_without_partitions_that_has_gone_is_not_waited_for(view: GroupView) -> None:
    view.apply(owns("m1", P0, P1))
    completed(view, 1, "m1", "m2")
    view.leave_out("m2")
    assert view.settled(1, 1, LATER)


def test_topics_without_a_common_subscriber_count_for_themselves() -> None:
    other = TopicPartition("u", 0)
    view = GroupView([P0, P1, other])
    view.subscribed = {"m1": frozenset({"t"}), "m2": frozenset({"t"}), "m3": frozenset({"u"}), "m4": frozenset({"u"})}
    view.apply(owns("m1", P0, P1))
    view.apply(owns("m3", other))
    assert not view.settled(4, 0)
    view.apply(owns("m1", P1, kind="partitions_revoked"))
    view.apply(owns("m2", P1))
    assert view.settled(4, 0)  # one partition cannot occupy both m3 and m4


def test_members_that_are_told_one_by_one_have_settled_when_their_shares_are_even() -> None:
    p2, p3 = TopicPartition("t", 2), TopicPartition("t", 3)
    view = GroupView([P0, P1, p2, p3], heartbeat_ms=1_000)
    view.subscribed = {"m1": frozenset({"t"}), "m2": frozenset({"t"})}
    completed(view, 1, "m1", "m2")
    view.apply(owns("m1", P0, P1, p2))
    view.apply(owns("m2", p3))
    assert not view.settled(2, 2, view.moved_ns)  # each has one owner, and m1 has not given up the next one yet
    assert view.settled(2, 2, view.moved_ns + 3_000_000_000)
    view.apply(owns("m1", p2, kind="partitions_revoked"))
    view.apply(owns("m2", p2))
    assert view.settled(2, 2, view.moved_ns)


def test_shares_of_members_with_different_subscriptions_need_not_be_even() -> None:
    view = GroupView([P0, P1], heartbeat_ms=1_000)
    view.subscribed = {"m1": frozenset({"t"}), "m2": frozenset({"u"})}
    completed(view, 1, "m1", "m2")
    view.apply(owns("m1", P0, P1))
    assert not view.settled(2, 2, view.moved_ns)
    assert view.settled(2, 2, view.moved_ns + 3_000_000_000)
