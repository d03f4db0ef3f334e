"""Where the messages of a rebalance are in its picture."""

from __future__ import annotations

import re

import pytest

from comparison.report.drawing.scale import Scale
from comparison.report.drawing.sequences import SequencePicture, sequence
from comparison.report.view.model import ANSWER, NOTE, REFUSED, REQUEST, WATCH, Conversation, Message

MESSAGES = (
    Message(100.0, 101.0, WATCH, "ZooKeeper", "m1", "the children of ids have changed"),
    Message(101.0, 101.0, NOTE, "m1", "", "begins a rebalance"),
    Message(101.0, 101.5, REFUSED, "m1", "ZooKeeper", "R11 create"),
    Message(102.0, 102.0, REQUEST, "m2", "broker 1", "JoinGroup"),
    Message(2102.0, 2102.0, ANSWER, "broker 1", "m2", "JoinGroup: generation 2"),
    Message(2000.0, 2103.0, REQUEST, "broker 1", "ZooKeeper", "x" * 200),
)


@pytest.fixture(scope="module")
def drawn() -> SequencePicture:
    told = Conversation(
        number=1,
        from_ms=100.0,
        until_ms=2103.0,
        generations=(2,),
        causes="m1: members",
        actors=("m1", "m2", "ZooKeeper", "broker 1"),
        messages=MESSAGES,
        members_left_out=(),
        messages_left_out=0,
    )
    return sequence(told, Scale(100.0, 0.0, 3_000.0))


def arrow(drawn: SequencePicture, kind: str) -> list[tuple[int, ...]]:
    """The begin and the end of each arrow of a kind."""
    path = dict(drawn.arrows)[kind]
    return [tuple(map(int, found)) for found in re.findall(r"M(\d+) (\d+)L(\d+) (\d+)", path)]


def test_each_actor_has_a_lifeline_in_order(drawn: SequencePicture) -> None:
    places = [x for x, _ in drawn.actors]
    assert [name for _, name in drawn.actors] == ["m1", "m2", "ZooKeeper", "broker 1"]
    assert places == sorted(places)
    assert drawn.lifelines.count("M") == 4
    assert max(places) < drawn.width


def test_messages_go_down_in_their_order_and_slant_by_their_time(drawn: SequencePicture) -> None:
    x = {name: x for x, name in drawn.actors}
    (watch,) = arrow(drawn, WATCH)
    (refused,) = arrow(drawn, REFUSED)
    asked, slow = arrow(drawn, REQUEST)
    assert (watch[0], watch[2]) == (x["ZooKeeper"], x["m1"])
    assert (asked[0], asked[2]) == (x["m2"], x["broker 1"])
    ends = [watch[3], refused[3], asked[3], slow[3]]
    assert ends == sorted(ends)
    assert all(begin < end for _, begin, _, end in (watch, refused, asked, slow))
    assert slow[3] - slow[1] > watch[3] - watch[1] > asked[3] - asked[1]


def test_long_time_without_a_message_is_a_gap(drawn: SequencePicture) -> None:
    (answer,) = arrow(drawn, ANSWER)
    asked, slow = arrow(drawn, REQUEST)
    assert answer[3] - asked[3] > 2 * (slow[1] - answer[3])


def test_wait_for_an_answer_is_a_bar_on_the_lifeline(drawn: SequencePicture) -> None:
    (wait,) = drawn.waits
    asked, _ = arrow(drawn, REQUEST)
    (answer,) = arrow(drawn, ANSWER)
    top = int(str(wait.attributes["y"]))
    assert (top, top + int(str(wait.attributes["height"]))) == (asked[1], answer[3])


def test_labels_are_in_the_picture_and_cut_where_they_are_too_long(drawn: SequencePicture) -> None:
    labels = sorted((*drawn.labels, *drawn.labels_left), key=lambda each: each.y)
    assert [each.text[:9] for each in labels] == [each.text[:9] for each in MESSAGES]
    assert labels[-1].text.endswith("…")
    assert all(0 < each.y < drawn.height for each in labels)
    assert drawn.labels_left == [labels[-1]]  # its arrow goes to the left


def test_table_has_every_message_whole_with_the_seconds_of_the_axis(drawn: SequencePicture) -> None:
    assert drawn.rows[0] == ("0.001", "ZooKeeper", "m1", "the children of ids have changed")
    assert drawn.rows[-1][3] == "x" * 200
    assert [text for _, text in drawn.times] == ["0.001", "0.002", "2.002", "2.003"]


def test_conversation_without_messages_is_an_empty_picture() -> None:
    empty = Conversation(
        number=1,
        from_ms=0.0,
        until_ms=1.0,
        generations=(),
        causes="",
        actors=(),
        messages=(),
        members_left_out=(),
        messages_left_out=0,
    )
    drawn = sequence(empty, Scale(0.0, 0.0, 1.0))
    assert (drawn.rows, list(drawn.arrows)) == ([], [])
