"""One rebalance as a sequence diagram: a lifeline for each who took part, and time from top to bottom.

Every message has a row, so that all can be read, and a long time without messages has a gap. A message slants by the
time from when it can have been sent to when it had arrived; slants and gaps grow with the digits of that time.
"""

from __future__ import annotations

from math import log10
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.markup import Shape
from comparison.report.view.model import ANSWER, NOTE, REFUSED, REQUEST, WATCH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comparison.report.drawing.scale import Scale
    from comparison.report.view.model import Conversation, Message

_GUTTER, _RIGHT, _TOP = 62, 70, 26
#: Distances between lifelines: enough for a label, and not wider than a page.
_APART, _WIDTH = 120, 720
#: How much higher a message begins than it ends, by the time that it took; also the one that took none.
_SLANT, _SLANT_MIN, _SLANT_MAX = 6.0, 4, 26
#: What a row needs above and below its line, and the same for a note, whose text is beside it.
_MESSAGE, _NOTE = (13, 3), (8, 7)
#: The height of a gap grows with the digits of the milliseconds that nothing was sent.
_GAP_MS, _GAP = 5.0, 9
_LETTERS, _LETTER, _LINE = 76, 5.7, 12
HEADINGS = ("s", "from", "to", "what")


class Label(NamedTuple):
    """A text and its place."""

    x: int
    y: int
    text: str


class SequencePicture(NamedTuple):
    """A picture; `arrows` are paths by kind, `labels` the text of each row at its actor."""

    width: int
    height: int
    actors: Sequence[tuple[float, str]]
    lifelines: str
    arrows: Sequence[tuple[str, str]]
    labels: Sequence[Label]
    labels_left: Sequence[Label]  #: those that end where the others begin
    waits: Sequence[Shape]
    times: Sequence[tuple[float, str]]
    rows: Sequence[tuple[str, str, str, str]]


def sequence(conversation: Conversation, scale: Scale) -> SequencePicture:
    """The picture of a conversation; its times are those of the scale."""
    return _Picture(conversation, scale).drawn()


class _Picture:
    def __init__(self, conversation: Conversation, scale: Scale) -> None:
        self._messages, self._scale = conversation.messages, scale
        apart = max(_APART, _WIDTH / max(1, len(conversation.actors) - 1))
        self._x = {name: round(_GUTTER + place * apart) for place, name in enumerate(conversation.actors)}
        self._width = max(self._x.values(), default=_GUTTER) + _RIGHT
        self._slants = [_slant(each) for each in self._messages]
        self._y = list(_rows(self._messages, self._slants))

    def drawn(self) -> SequencePicture:
        labels = list(self._labels())
        bottom = (self._y[-1] if self._y else _TOP) + 12
        return SequencePicture(
            width=self._width,
            height=bottom + 18,
            actors=[(x, name) for name, x in self._x.items()],
            lifelines="".join(f"M{x} {_TOP - 8}V{bottom}" for x in self._x.values()),
            arrows=list(self._arrows()),
            labels=[label for label, is_left in labels if not is_left],
            labels_left=[label for label, is_left in labels if is_left],
            waits=list(self._waits()),
            times=list(self._times()),
            rows=[
                (f"{self._scale.seconds(each.until_ms):.3f}", each.sender, each.receiver, each.text)
                for each in self._messages
            ],
        )

    def _arrows(self) -> Iterator[tuple[str, str]]:
        """All messages of a kind as one path."""
        paths = dict.fromkeys((REQUEST, REFUSED, ANSWER, WATCH, NOTE), "")
        for place, each in enumerate(self._messages):
            x, y = self._x[each.sender], self._y[place]
            paths[each.kind] += f"M{x - 3} {y - 3}h6v6h-6z" if each.kind == NOTE else self._arrow(place, each)
        yield from ((kind, path) for kind, path in paths.items() if path)

    def _arrow(self, place: int, message: Message) -> str:
        low, high = self._x[message.sender], self._x[message.receiver]
        y, from_y = self._y[place], self._y[place] - self._slants[place]
        back = -6 if high > low else 6
        head = f"m{back} -4l{-back} 4l{back} 4" if message.kind != REFUSED else "m-4 -4l8 8m0 -8l-8 8"
        return f"M{low} {from_y}L{high} {y}{head}"

    def _labels(self) -> Iterator[tuple[Label, bool]]:
        """Beside whoever acts, on the side of the other end, where there is room; whether that is the left one."""
        for place, each in enumerate(self._messages):
            text = each.text if len(each.text) <= _LETTERS else f"{each.text[: _LETTERS - 1]}…"
            is_received = each.kind in (ANSWER, WATCH)
            x, other = self._x[each.sender], self._x.get(each.receiver, 0)
            if is_received:
                x, other = other, x
            is_left = x + _LETTER * len(text) > self._width or (each.kind != NOTE and other < x)
            y = self._y[place] + (4 if each.kind == NOTE else -self._slants[place] - 3)
            yield Label(x - 6 if is_left else x + 6, y, text), is_left

    def _waits(self) -> Iterator[Shape]:
        """A bar on the lifeline of a member whose request waits for its answer."""
        asked: dict[tuple[str, str, str], int] = {}
        for place, each in enumerate(self._messages):
            if each.kind == REQUEST:
                asked[each.sender, each.receiver, each.text] = place
            elif each.kind == ANSWER:
                since = asked.pop((each.receiver, each.sender, each.text.partition(":")[0]), None)
                if since is not None:
                    y = self._y[since] - self._slants[since]
                    x = self._x[each.receiver] - 2
                    yield Shape("rect", {"x": x, "y": y, "width": 4, "height": self._y[place] - y})

    def _times(self) -> Iterator[tuple[float, str]]:
        """The seconds of the first row, and of each that comes at least a millisecond later, where there is room."""
        shown_ms: int | None = None
        free = 0
        for y, each in zip(self._y, self._messages, strict=True):
            at_ms = round(self._scale.seconds(each.until_ms) * 1000)
            if (shown_ms is None or at_ms > shown_ms) and y >= free:
                yield y + 4, f"{at_ms / 1000:.3f}"
                shown_ms, free = at_ms, y + _LINE


def _slant(message: Message) -> int:
    if message.kind == NOTE:
        return 0
    return min(_SLANT_MAX, _SLANT_MIN + round(_SLANT * log10(1 + 10 * message.length_ms)))


def _rows(messages: Sequence[Message], slants: Sequence[int]) -> Iterator[int]:
    """Where each message ends."""
    bottom, before_ms = _TOP, messages[0].until_ms if messages else 0.0
    for each, slant in zip(messages, slants, strict=True):
        gap_ms = each.until_ms - before_ms
        above, below = _NOTE if each.kind == NOTE else _MESSAGE
        y = bottom + above + slant + (round(_GAP * log10(gap_ms / _GAP_MS)) if gap_ms > _GAP_MS else 0)
        yield y
        bottom, before_ms = y + below, max(each.until_ms, before_ms)
