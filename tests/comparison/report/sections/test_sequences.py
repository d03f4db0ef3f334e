"""Which rebalances of a run a page draws, and what it says of the others."""

from __future__ import annotations

from comparison.report.drawing.scale import Scale
from comparison.report.sections.sequences import LINES_FAIR, LINES_MAX, LINES_PER_MARK, Sequences, lines_for, sequences
from comparison.report.view.model import NOTE, Change, Conversation, Message
from tests.comparison.report.sections.run_views import empty_view

SCALE = Scale(2_000.0, -2_000.0, 8_000.0)


def told(number: int, *, messages: int = 20, **given: object) -> Conversation:
    at_ms = 1_000.0 * number
    values = {
        "number": number,
        "from_ms": at_ms,
        "until_ms": at_ms + 500,
        "generations": (number,),
        "causes": "m1: members",
        "actors": ("m1",),
        "messages": tuple(Message(at_ms + n, at_ms + n, NOTE, "m1", "", f"says {n}") for n in range(messages)),
        "members_left_out": (),
        "messages_left_out": 0,
        **given,
    }
    return Conversation(**values)  # type: ignore[arg-type]


def seen(*conversations: Conversation, lines: int = 1_000) -> Sequences:
    changes = (Change("kill", 2_000.0),)
    view = empty_view(changes=changes, path="runs/a b/eager", conversations=conversations)
    found = sequences("crash-eager", view, SCALE, lines)
    assert found is not None
    return found


def test_rebalance_is_named_by_its_generation_its_time_and_its_causes() -> None:
    (drawn,) = seen(told(3)).drawn
    assert drawn.title == "rebalance 3 (generation 3), 1.000 to 1.500 s: m1: members"
    assert drawn.anchor == "crash-eager-rebalance-3"
    assert (drawn.from_ms, drawn.until_ms) == (3_000, 3_500)  # from the left end of the lanes
    assert drawn.from_s < 1.0 < 1.5 < drawn.until_s
    assert drawn.remark == ""


def test_first_rebalances_after_the_change_are_drawn_and_the_others_named() -> None:
    found = seen(*(told(number) for number in range(1, 7)), lines=40)
    assert [each.anchor[-1] for each in found.drawn] == ["2", "3"]
    command = "rebalance-lab diagram 'runs/a b/eager' --rebalance 1"
    assert found.others == f"Not drawn here: rebalances 1, 4 to 6; to see one: {command}"


def test_rebalance_that_is_cut_says_by_how_much_and_how_to_see_it() -> None:
    (drawn,) = seen(told(2, members_left_out=("m7", "m8"), messages_left_out=5), lines=15).drawn
    assert len(drawn.picture.rows) == 15
    assert drawn.remark == (
        "Not drawn: 10 later messages and those of m7, m8; "
        "to see them: rebalance-lab diagram 'runs/a b/eager' --rebalance 2"
    )


def test_rebalance_without_messages_is_only_named() -> None:
    found = seen(told(2, messages=0))
    assert (list(found.drawn), found.others[:27]) == ([], "Not drawn here: rebalance 2")


def test_few_runs_share_the_room_and_of_many_the_first_are_told() -> None:
    assert lines_for(2, 4_000) == [LINES_MAX, LINES_MAX]
    assert lines_for(6, int(50 / LINES_PER_MARK) + 1) == [50] * 6
    scarce = lines_for(6, int(20 / LINES_PER_MARK) + 1)
    assert scarce[:2] == [LINES_FAIR, LINES_FAIR]
    assert scarce[3:] == [0, 0, 0]
    assert sum(scarce) == 120
    assert lines_for(0, 100) == []
