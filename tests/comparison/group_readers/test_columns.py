"""The columns of `watch` and `describe`, as Kafka's own tools of 0.8.2.2 and 1.1.1 printed them for the same groups."""

from __future__ import annotations

from comparison.group_readers.columns import GroupSeen, Keeper, MemberRow, Part, PartitionRow, assignment_text, tables
from kernel.values import TopicPartition

MEMBER = "consume-92d85f0d-569c-4d9e-8cc7-5c1a3360d855"
ORDERS = tuple(TopicPartition("orders", number) for number in range(2))


def seen(keeper: Keeper, **given: object) -> GroupSeen:
    return GroupSeen(group="zg", keeper=keeper, **given)  # type: ignore[arg-type]


def lines(group: GroupSeen, part: Part) -> list[str]:
    (table,) = tables(group, [part])
    return table.lines()


def test_offsets_in_zookeeper_are_shown_as_by_consumer_offset_checker() -> None:
    rows = (
        PartitionRow(partition=ORDERS[0], current=2, end=5, owner="zg_vm-1795451798818-51b81ed1-0"),
        PartitionRow(partition=ORDERS[1], end=5),
    )
    assert lines(seen(Keeper.ZOOKEEPER, partitions=rows), Part.OFFSETS) == [
        "Group           Topic                          Pid Offset          logSize         Lag             Owner",
        "zg              orders                         0   2               5               3               "
        "zg_vm-1795451798818-51b81ed1-0",
        "zg              orders                         1   unknown         5               unknown         none",
    ]


def test_offsets_with_a_coordinator_are_shown_as_by_kafka_consumer_groups() -> None:
    rows = (
        PartitionRow(partition=ORDERS[0], current=2, end=2, owner=MEMBER, host="/127.0.0.1", client="consume"),
        PartitionRow(partition=ORDERS[1], end=2),
    )
    assert lines(seen(Keeper.COORDINATOR, partitions=rows), Part.OFFSETS) == [
        "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             "
        "CONSUMER-ID                                  HOST            CLIENT-ID",
        "zg              orders          0          2               2               0               "
        f"{MEMBER} /127.0.0.1      consume",
        "zg              orders          1          -               2               -               "
        "-                                            -               -",
    ]


def test_members_have_their_assignment_and_static_ones_their_instance() -> None:
    member = MemberRow(member=MEMBER, host="/127.0.0.1", client="consume", owned=ORDERS)
    assert lines(seen(Keeper.COORDINATOR, members=(member,)), Part.MEMBERS) == [
        "GROUP           CONSUMER-ID                                  HOST            CLIENT-ID       #PARTITIONS     "
        "ASSIGNMENT",
        f"zg              {MEMBER} /127.0.0.1      consume         2               orders(0,1)",
    ]
    static = MemberRow(member="m", instance="first")
    assert lines(seen(Keeper.COORDINATOR, members=(static,)), Part.MEMBERS) == [
        "GROUP           CONSUMER-ID     GROUP-INSTANCE-ID HOST            CLIENT-ID       #PARTITIONS     ASSIGNMENT",
        "zg              m               first             -               -               0               -",
    ]


def test_state_has_the_coordinator_and_the_strategy() -> None:
    group = seen(Keeper.COORDINATOR, coordinator="127.0.0.1:38933 (1001)", strategy="range", state="Stable", members=())
    assert lines(group, Part.STATE) == [
        "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY       STATE                #MEMBERS",
        "zg              127.0.0.1:38933 (1001)    range                     Stable               0",
    ]


def test_columns_are_narrower_where_there_is_little_room() -> None:
    (table,) = tables(
        seen(Keeper.ZOOKEEPER, partitions=(PartitionRow(partition=ORDERS[0], owner="a-0"),)), [Part.OFFSETS]
    )
    assert table.lines(120) == table.lines()
    assert table.lines(80) == [
        "Group Topic  Pid Offset  logSize Lag     Owner",
        "zg    orders 0   unknown unknown unknown a-0",
    ]


def test_assignment_names_each_topic_once() -> None:
    assert assignment_text([TopicPartition("b", 2), *ORDERS, TopicPartition("b", 0)]) == "b(0,2), orders(0,1)"


def test_control_characters_are_shown_as_escapes() -> None:
    row = PartitionRow(partition=TopicPartition("t\x1b[2J", 0), owner="a\nb")
    shown = "\n".join(lines(seen(Keeper.ZOOKEEPER, partitions=(row,)), Part.OFFSETS))
    assert "\\x1b[2J" in shown
    assert "a\\nb" in shown
    assert shown.count("\n") == 1
