"""Groups and steps as they are written, and what is said about mistakes in them."""

from __future__ import annotations

import pytest

from comparison.assigning.group import AddPartitions, Group, GroupMember, Join, Leave, Restart, Subscribe, changed
from comparison.assigning.notation import parse_members, parse_step, parse_topics, with_subscriptions
from comparison.assigning.strategies import chosen
from kernel.errors import ConfigurationError

TOPICS = ("t0", "t1")
GROUP = Group({"t0": 2, "t1": 0}, (GroupMember(name="C0", topics=TOPICS), GroupMember(name="C1", topics=("t1",))))


@pytest.mark.parametrize(
    ("text", "member"),
    [
        ("C0", GroupMember(name="C0", topics=TOPICS)),
        (" C0 ,", GroupMember(name="C0", topics=TOPICS)),
        ("C0@I0", GroupMember(name="C0", topics=TOPICS, instance_id="I0")),
        ("C0:2", GroupMember(name="C0", topics=TOPICS, streams=2)),
        ("C0:t1", GroupMember(name="C0", topics=("t1",))),
        ("C0@I0:2:t1+t0", GroupMember(name="C0", topics=("t1", "t0"), instance_id="I0", streams=2)),
    ],
)
def test_member_has_an_instance_streams_and_topics(text: str, member: GroupMember) -> None:
    assert parse_members(text, TOPICS) == (member,)


def test_number_that_is_a_topic_is_a_topic() -> None:
    (member,) = parse_members("C0:2", ("1", "2"))
    assert (member.topics, member.streams) == (("2",), 1)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no member in ''. Write NAME"),
        ("C0,C0", "member 'C0' is in the group already"),
        ("C0@I,C1@I", "instance id 'I' is given twice"),
        ("C0@", "'' is not the name of a member"),
        ("C 0", "'C 0' is not the name of a member"),
        ("C0:0", "'0' is not a number of streams of C0. Use one between 1 and 100"),
        ("C0:t2", "unknown topic 't2'. Use one of t0, t1"),
        ("C0:t0,t1", "'t1' is a topic. Write the topics of a member as NAME:TOPIC+TOPIC"),
    ],
)
def test_wrong_members_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_members(text, TOPICS)
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("t0", "'t0' is not a topic with its partitions. Write NAME=NUMBER"),
        ("t0=many", "'many' is not a number of partitions of t0"),
        ("t0=-1", "'-1' is not a number"),
        ("t0=20001", "Use one between 0 and 20000"),
        ("t0=" + "9" * 5000, "is not a number"),
        ("t0=1,t0=2", "topic 't0' is given twice"),
        ("a/b=1", "'a/b' is not a topic's name"),
        ("..=1", "'..' is not a topic's name"),
    ],
)
def test_wrong_topics_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_topics(text)
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("verb", "rest", "change"),
    [
        ("join", "C2, C3:t0", Join((GroupMember(name="C2", topics=TOPICS), GroupMember(name="C3", topics=("t0",))))),
        ("leave", "C0,C1", Leave(("C0", "C1"))),
        ("add-partitions", "t0=1,t1=4", AddPartitions({"t0": 1, "t1": 4})),
        ("subscribe", "C1=t0,t1", Subscribe("C1", TOPICS)),
        ("subscribe", "C1=", Subscribe("C1", ())),
        ("restart", "C0=C5", Restart({"C0": "C5"})),
    ],
)
def test_step_is_a_change(verb: str, rest: str, change: object) -> None:
    step, after = parse_step(verb, rest, GROUP)
    assert (step.text, step.change) == (f"{verb} {rest}", change)
    assert after == changed(GROUP, step.change)


def test_steps_build_on_each_other() -> None:
    group = GROUP
    for verb, rest in (("join", "C2"), ("leave", "C0"), ("add-partitions", "t1=3"), ("restart", "C2=C0")):
        _, group = parse_step(verb, rest, group)
    assert group == Group(
        {"t0": 2, "t1": 3}, (GroupMember(name="C1", topics=("t1",)), GroupMember(name="C0", topics=TOPICS))
    )
    assert with_subscriptions(group, ["C0=t1", "C1=t0,t1"]).by_name["C0"].topics == ("t1",)


@pytest.mark.parametrize(
    ("verb", "rest", "complaint"),
    [
        ("leav", "C0", "unknown step 'leav'. Did you mean 'leave'? Use one of join, leave, "),
        ("leave", "C4", "unknown member 'C4'. Use one of C0, C1"),
        ("leave", "", "nobody leaves"),
        ("join", "C0", "member 'C0' is in the group already"),
        ("add-partitions", "t9=1", "unknown topic 't9'"),
        ("add-partitions", "t0=0", "no partitions are added"),
        ("add-partitions", "t0=19999", "20001 partitions are too many"),
        ("subscribe", "C0", "'C0' is not a subscription. Write NAME=TOPIC,TOPIC"),
        ("subscribe", "C0=t9", "unknown topic 't9'"),
        ("restart", "C0", "Write restart OLD=NEW"),
        ("restart", "C0=C1", "'C1' is the id of another member"),
        ("restart", "C0=C5,C1=C5", "'C5' is the id of another member"),
    ],
)
def test_wrong_steps_are_refused(verb: str, rest: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_step(verb, rest, GROUP)
    assert complaint in str(refused.value)


def test_instance_id_of_a_present_member_is_refused() -> None:
    group = Group({"t0": 1}, parse_members("C0@I", ("t0",)))
    with pytest.raises(ConfigurationError, match="instance id 'I' is in the group already"):
        parse_step("join", "C1@I", group)


def test_strategies_are_named_by_protocol_class_or_all_together() -> None:
    java = "org.apache.kafka.clients.consumer.StickyAssignor"
    assert chosen(["thread-range, sticky", java]) == ("thread-range", "sticky")
    of_members = ("range", "roundrobin", "sticky", "cooperative-sticky")
    assert chosen(["all"]) == (*of_members, "uniform", "broker-range", "random")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("stiky", "unknown strategy 'stiky'. Did you mean 'sticky'?"), ("delayed", "docs/design-delayed.md")],
)
def test_strategies_that_cannot_be_rehearsed_are_refused(name: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        chosen([name])
    assert complaint in str(refused.value)
