"""Why members own nothing: the sentences, by what brokers and ZooKeeper say."""

from __future__ import annotations

import pytest

from comparison.group_readers.columns import GroupSeen, Keeper, MemberRow, PartitionRow, PatternKind, Subscribed
from comparison.group_readers.idle_reasons import (
    GroupFacts,
    Idle,
    Saying,
    blocked,
    lookup_failure,
    reasons,
    reasons_of_members,
    unsent,
)
from kernel.values import TopicPartition

TOPICS = {"orders": 2, "orders-eu": 1, "invoices": 4, "__consumer_offsets": 50, "__transaction_state": 50}


def facts(**changes: object) -> GroupFacts:
    known: dict[str, object] = {"group": "g", "brokers": 1, "topics": TOPICS}
    return GroupFacts(**{**known, **changes})  # type: ignore[arg-type]


def seen(
    state: str = "Stable",
    members: tuple[MemberRow, ...] = (),
    *,
    owned: tuple[TopicPartition, ...] = (),
    strategy: str = "range",
    keeper: Keeper = Keeper.COORDINATOR,
) -> GroupSeen:
    owner = f"{members[0].member}-0" if members else "m-0"
    rows = tuple(PartitionRow(partition=tp, owner=owner) for tp in owned)
    return GroupSeen(
        group="g",
        keeper=keeper,
        coordinator="h:1 (1)",
        strategy=strategy,
        state=state,
        members=members,
        partitions=rows,
    )


def named(*topics: str) -> Idle:
    return Idle(subscribed=Subscribed(topics=topics))


def pattern(text: str, kind: PatternKind = PatternKind.JAVA) -> Idle:
    return Idle(subscribed=Subscribed(pattern=text, kind=kind))


def members(count: int, *topics: str) -> tuple[MemberRow, ...]:
    return tuple(MemberRow(member=f"m{n}", subscribed=Subscribed(topics=topics)) for n in range(count))


def partitions(topic: str, count: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, number) for number in range(count))


def only(idle: Idle, known: GroupFacts, design: str = "") -> str:
    (reason,) = reasons(idle, known, design)
    return reason


def test_nothing_else_is_said_while_no_server_answers() -> None:
    assert only(named("ordrs"), facts(unreachable="h:1 refused")) == "h:1 refused"


def test_zookeeper_without_brokers_has_no_topics_to_share() -> None:
    assert only(named("orders"), facts(brokers=0, topics={})).startswith("no broker is registered in ZooKeeper.")


def test_broker_says_why_there_is_no_coordinator() -> None:
    known = facts(
        lookup_error="COORDINATOR_NOT_AVAILABLE",
        lookup_message="__consumer_offsets could not be created: too few",
        topics={"orders": 2},
    )
    told = only(named("orders"), known)
    assert told == f"group 'g' has no coordinator: {lookup_failure(known)}"
    assert "COORDINATOR_NOT_AVAILABLE (__consumer_offsets could not be created: too few)" in told
    assert "offsets.topic.replication.factor says, and 1 broker can be reached" in told


def test_offsets_topic_that_exists_needs_no_smaller_factor() -> None:
    known = facts(lookup_error="COORDINATOR_NOT_AVAILABLE", lookup_message="__consumer_offsets-3 has no leader")
    assert lookup_failure(known) == "COORDINATOR_NOT_AVAILABLE (__consumer_offsets-3 has no leader)"


def test_mistyped_topic_is_named_with_the_one_that_is_meant() -> None:
    assert only(named("ordrs"), facts()).startswith("topic 'ordrs' does not exist. Did you mean 'orders'? ")
    assert "Did you mean" not in only(named("zzz"), facts())
    assert len(reasons(named("ordrs", "invices", "orders"), facts())) == 2


@pytest.mark.parametrize(
    ("written", "kind", "meant"),
    [
        ("orders*", PatternKind.JAVA, None),  # it matches `orders`
        ("order*", PatternKind.JAVA, "'order.*'"),
        ("*", PatternKind.RE2, None),  # no expression
        ("orders?eu", PatternKind.JAVA, "'orders.eu'"),
        ("order", PatternKind.JAVA, "'order.*'"),
        ("^order", PatternKind.RE2, "'^order.*'"),
        ("rder$", PatternKind.JAVA, "'.*rder.*'"),
        ("-eu", PatternKind.JAVA, "'.*-eu'"),
        ("ORDERS", PatternKind.JAVA, "'(?i)ORDERS'"),
        ("orders,invoices", PatternKind.JAVA, "'orders|invoices'"),
        ("orders,invoices", PatternKind.WHITE_LIST, None),  # a comma is an `or` in 0.8
        ("'orders'", PatternKind.WHITE_LIST, None),  # which drops quotes, too
        ("order*", PatternKind.WHITE_LIST, "'order.*'"),
    ],
)
def test_pattern_that_matches_nothing_is_shown_as_a_regular_expression(
    written: str, kind: PatternKind, meant: str | None
) -> None:
    (reason, *_) = reasons(pattern(written, kind), facts())
    assert ("matches no topic" in reason) is (meant is not None), reason
    if meant is not None:
        assert f"did you mean {meant}, which matches '" in reason


def test_glob_without_any_match_is_explained_all_the_same() -> None:
    assert only(pattern("bills*"), facts()).endswith(
        "In a regular expression * repeats what stands before it: write 'bills.*' for names of that form"
    )
    assert only(pattern("bills.*"), facts()) == (
        "pattern 'bills.*' matches no topic of 'invoices', 'orders', 'orders-eu'"
    )


def test_internal_topics_are_matched_by_no_pattern() -> None:
    assert "matches no topic" in only(pattern("__.*"), facts())
    assert "there is none" in only(pattern("o.*"), facts(topics={"__consumer_offsets": 50}))


def test_blacklist_that_excludes_everything_is_named() -> None:
    assert only(pattern(".*", PatternKind.BLACK_LIST), facts()).startswith("blacklist '.*' excludes every topic: ")


def test_more_streams_than_partitions_leave_some_without() -> None:
    group = seen(members=members(3, "orders"), owned=partitions("orders", 2))
    assert only(named("orders"), facts(seen=group)) == (
        "2 partitions of 'orders' are shared by 3 streams of group 'g', which leaves this consumer with nothing"
    )
    several = Idle(subscribed=Subscribed(topics=("orders",)), idle=1, streams=3)
    assert only(several, facts(seen=group)).endswith("which leaves 1 of the 3 streams of this consumer with nothing")
    elsewhere = (*members(2, "orders"), *members(4, "invoices"))
    assert "shared by" not in only(named("orders"), facts(seen=seen(members=elsewhere, owned=partitions("orders", 2))))


def test_streams_of_one_member_in_zookeeper_count_each() -> None:
    member = MemberRow(member="m", subscribed=Subscribed(topics=("orders",)), streams=5)
    group = seen("all owned", (member,), owned=partitions("orders", 2), strategy="", keeper=Keeper.ZOOKEEPER)
    assert "are shared by 5 streams" in only(named("orders"), facts(seen=group), "zookeeper")


def test_members_whose_subscription_is_not_known_share_what_the_group_has() -> None:
    group = seen(members=tuple(MemberRow(member=f"m{n}") for n in range(3)), owned=partitions("orders", 2))
    (told,) = reasons_of_members(facts(seen=group))
    assert told.startswith("2 partitions of 'orders' are shared by 3 streams of group 'g'")


def test_claims_of_a_member_that_is_gone_are_named_in_zookeeper() -> None:
    rows = tuple(PartitionRow(partition=tp, owner="g_old-1-0") for tp in partitions("orders", 2))
    member = MemberRow(member="g_new-2", subscribed=Subscribed(topics=("orders",)))
    group = GroupSeen(group="g", keeper=Keeper.ZOOKEEPER, state="all owned", members=(member,), partitions=rows)
    assert only(named("orders"), facts(seen=group), "zookeeper") == (
        "2 partitions of 'orders' are claimed by g_old-1, which is not registered: its claims disappear when its "
        "ZooKeeper session ends"
    )


def test_what_blocks_a_whole_group_needs_no_idle_member() -> None:
    assert blocked(facts(unreachable="h:1 refused")) == ("h:1 refused",)
    assert blocked(facts(lookup_error="COORDINATOR_NOT_AVAILABLE")) == (
        "group 'g' has no coordinator: COORDINATOR_NOT_AVAILABLE",
    )
    assert blocked(facts()) == ()


def test_range_divides_each_topic_by_itself() -> None:
    both = ("orders", "invoices")
    owned = (*partitions("orders", 2), *partitions("invoices", 4))
    assert "4 partitions of the largest topic of 'invoices', 'orders'" in only(
        named(*both), facts(seen=seen(members=members(5, *both), owned=owned))
    )
    sticky = seen(members=members(5, *both), owned=owned, strategy="sticky")
    assert only(named(*both), facts(seen=sticky)) == "group 'g' is Stable, with 5 members"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("PreparingRebalance", "waits until every known member has joined again"),
        ("CompletingRebalance", "its leader's assignment"),
        ("Assigning", "its coordinator's assignment"),
        ("Reconciling", "must first give up"),
    ],
)
def test_group_that_is_not_done_says_for_whom_it_waits(state: str, words: str) -> None:
    assert words in only(named("orders"), facts(seen=seen(state, members(1, "orders"))), "eager")


def test_partitions_without_owner_are_explained_by_what_the_design_waits_for() -> None:
    group = seen(members=members(1, "orders"), owned=partitions("orders", 1))
    assert "1 partition of 'orders' has no owner: they wait for a lost member" in only(
        named("orders"), facts(seen=group), "delayed"
    )
    assert "every metadata.max.age.ms" in only(named("orders"), facts(seen=group), "cooperative")
    in_zookeeper = seen("1 of 2 unowned", members(1, "orders"), keeper=Keeper.ZOOKEEPER)
    assert "have given up" in only(named("orders"), facts(seen=in_zookeeper), "zookeeper")


def test_coordinator_of_another_chroot_sees_no_znode_of_the_server_design() -> None:
    told = only(named("orders"), facts(seen=seen("Dead")), "server")
    assert told.startswith("the coordinator h:1 (1) does not see this consumer's znode.")


def test_idle_members_of_one_subscription_share_a_sentence() -> None:
    owning = MemberRow(member="m", subscribed=Subscribed(topics=("orders",)), owned=partitions("orders", 2))
    group = seen(members=(owning, *members(3, "orders")), owned=partitions("orders", 2))
    assert reasons_of_members(facts(seen=group)) == (
        "2 partitions of 'orders' are shared by 4 streams of group 'g', which leaves 3 members with nothing",
    )
    small = (owning, *members(2, "orders"))
    pair = seen(members=(*small[:2], MemberRow(member="x", owned=partitions("orders", 1))), owned=owning.owned)
    (told,) = reasons_of_members(facts(seen=pair))
    assert told.endswith("'g', which leaves member m0 with nothing")
    assert not reasons_of_members(facts(seen=seen(members=(owning,), owned=owning.owned)))
    assert not reasons_of_members(facts())


def test_records_that_are_not_stored_are_explained_by_their_topic() -> None:
    told = unsent("ordrs", "UNKNOWN_TOPIC_OR_PARTITION", TOPICS, ())
    assert told.startswith(
        "topic 'ordrs' does not exist, and the brokers do not create it (UNKNOWN_TOPIC_OR_PARTITION). Did you mean "
        "'orders'? "
    )
    assert "no leader of topic 'orders', partition 0, 1: " in unsent("orders", "", TOPICS, (0, 1))
    assert "acknowledges" in unsent("orders", "", TOPICS, ())


def test_each_reason_is_said_once_and_that_it_is_over() -> None:
    saying = Saying(4.0)
    assert not saying.is_due(10.0, idle=True)
    assert not saying.is_due(13.9, idle=True)
    assert saying.is_due(14.0, idle=True)
    assert saying.new(["a", "b"]) == ("a", "b")
    assert saying.new(["b", "a"]) == ()
    assert saying.new(["a", "c"]) == ("c",)
    assert saying.new(["a", "b"]) == ("b",)
    assert not saying.is_due(20.0, idle=False)
    assert saying.over()
    assert not saying.over()
    assert not saying.is_due(21.0, idle=True)
