"""A run's rebalances as sequences of messages: the first after the change are drawn, the others named."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.drawing.sequences import HEADINGS, sequence
from comparison.screen.number_ranges import number_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comparison.report.drawing.scale import Scale
    from comparison.report.drawing.sequences import SequencePicture
    from comparison.report.view.model import Conversation, RunView

#: Messages for each bar of the lanes, and the most of one run.
LINES_PER_MARK, LINES_MAX = 0.12, 240
#: So many tell most of a rebalance; where each run has fewer, those of the first designs are drawn instead.
LINES_FAIR = 45
#: The least that say something.
LINES_MIN = 12


def lines_for(runs: int, marks_max: int) -> list[int]:
    """How many messages are drawn of each of a scenario's runs, which have `marks_max` bars each."""
    whole = int(runs * marks_max * LINES_PER_MARK)
    if not runs or whole >= runs * LINES_FAIR:
        return [min(LINES_MAX, whole // runs)] * runs if runs else []
    full = whole // LINES_FAIR
    return [LINES_FAIR] * full + [whole - full * LINES_FAIR] + [0] * (runs - full - 1)


class Drawn(NamedTuple):
    """One rebalance; `from_ms` and `until_ms` are milliseconds from the left end of the lanes."""

    anchor: str
    number: int
    title: str
    from_ms: int
    until_ms: int
    from_s: float
    until_s: float
    picture: SequencePicture
    remark: str


class Sequences(NamedTuple):
    """The rebalances of one run; `others` says which are not drawn, and how to see them."""

    drawn: Sequence[Drawn]
    others: str
    headings: Sequence[str] = HEADINGS


def sequences(anchor: str, view: RunView, scale: Scale, lines: int) -> Sequences | None:
    """At most so many `lines`; None for a run without rebalances."""
    if not view.conversations:
        return None
    left = lines
    drawn: dict[int, Drawn] = {}
    for each in _first_after_the_change(view):
        if each.messages and left >= min(LINES_MIN, len(each.messages)):
            shown = _cut(each, left)
            left -= len(shown.messages)
            drawn[each.number] = _drawn(anchor, view, shown, scale)
    others = [each.number for each in view.conversations if each.number not in drawn]
    return Sequences([drawn[number] for number in sorted(drawn)], _others(others, view))


def _first_after_the_change(view: RunView) -> Iterator[Conversation]:
    yield from (each for each in view.conversations if each.until_ms > view.zero_ms)
    yield from (each for each in view.conversations if each.until_ms <= view.zero_ms)


def _cut(conversation: Conversation, most: int) -> Conversation:
    kept = conversation.messages[:most]
    left_out = conversation.messages_left_out + len(conversation.messages) - len(kept)
    return replace(conversation, messages=kept, messages_left_out=left_out)


def _drawn(anchor: str, view: RunView, conversation: Conversation, scale: Scale) -> Drawn:
    from_s, until_s = (scale.seconds(ms) for ms in (conversation.from_ms, conversation.until_ms))
    margin = max(0.15, 0.3 * (until_s - from_s))
    return Drawn(
        anchor=f"{anchor}-rebalance-{conversation.number}",
        number=conversation.number,
        title=f"{_named(conversation)}, {from_s:.3f} to {until_s:.3f} s: {conversation.causes}",
        from_ms=scale.unit(conversation.from_ms),
        until_ms=scale.unit(conversation.until_ms),
        from_s=round(from_s - margin, 3),
        until_s=round(until_s + margin, 3),
        picture=sequence(conversation, scale),
        remark=_remark(view, conversation),
    )


def _named(conversation: Conversation) -> str:
    numbers = conversation.generations
    if not numbers:
        return f"rebalance {conversation.number}"
    many = "s" if len(numbers) > 1 else ""
    return f"rebalance {conversation.number} (generation{many} {', '.join(map(str, numbers))})"


def _remark(view: RunView, conversation: Conversation) -> str:
    left_out = []
    if conversation.messages_left_out:
        left_out.append(f"{conversation.messages_left_out:,} later messages")
    if conversation.members_left_out:
        names = conversation.members_left_out
        left_out.append(f"those of {', '.join(names[:3])}" + (f" and {len(names) - 3} more" if len(names) > 3 else ""))
    if not left_out:
        return ""
    return f"Not drawn: {' and '.join(left_out)}; to see them: {_command(view)} --rebalance {conversation.number}"


def _others(numbers: Sequence[int], view: RunView) -> str:
    if not numbers:
        return ""
    many = "s" if len(numbers) > 1 else ""
    named = number_ranges(numbers, " to ")
    return f"Not drawn here: rebalance{many} {named}; to see one: {_command(view)} --rebalance {numbers[0]}"


def _command(view: RunView) -> str:
    return f"rebalance-lab diagram {shlex.quote(view.path)}"
