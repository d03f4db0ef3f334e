"""Fill the places of `consumer-protocol.md` that come from the code, and draw its figure: `make names`.

The tables and the figure show the stories of `reconciliation` and `migration`; a test compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.report.markup import Shape, path, rect, text
from docs.generators.figure_text import WIDTH, figure, head, width_of, wrapped
from docs.generators.migration import migration
from docs.generators.pages import DOCS, FIGURES, filled, folded, markdown_table
from docs.generators.reconciliation import PARTITIONS, fenced, reconciliation, records, static, too_slow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from docs.generators.reconciliation import Owner, Row

PAGE, FIGURE = DOCS / "consumer-protocol.md", FIGURES / "reconciliation.svg"
TITLE = "One reconciliation, heartbeat by heartbeat"
_ALT_TEXT = "the heartbeats of three members, and the owner of each partition after each, as in the table below"
#: The members of the figure, with their colours.
KINDS: Mapping[str, str] = {"m1": "k0", "m2": "k1", "m3": "k2"}
_LINES: Mapping[str, int] = {"m1": 22, "m2": 66, "m3": 110}
_COORDINATOR, _STRIP, _CELL = 292, 300, 17
_LINE = 14.5


# -- the figure --------------------------------------------------------------------------------------------------------


def picture() -> str:
    """Every row is a request and its answer; the strip at the right is what the coordinator knows then."""
    rows = reconciliation()
    y = 26.0
    shapes: list[Shape] = []
    tops: list[tuple[float, float]] = []
    for number, row in enumerate(rows, start=1):
        for line in wrapped(f"{number}. {row.says}", WIDTH - 14):
            shapes.append(text(line, 7, y + 12, class_="b"))
            y += _LINE
        top = y + 4
        shapes += _exchange(row, top)
        shapes += _strip(row.owners, top + 9)
        y = top + 50
        tops.append((top, y - 7))
    lines = [
        path(f"M{x} {top}V{low}", class_=f"line s-{KINDS[member]}") for member, x in _LINES.items() for top, low in tops
    ]
    lines += [path(f"M{_COORDINATOR} {top}V{low}", class_="line ink") for top, low in tops]
    return figure(TITLE, [*_head(), *lines, *shapes], y - 2, _words(rows))


def _head() -> Iterator[Shape]:
    for member, x in _LINES.items():
        yield rect(x - 15, 6, 30, 16, class_=f"box {KINDS[member]}", rx=3)
        yield text(member, x, 18, class_="b on", text_anchor="middle")
    yield text("the coordinator", _COORDINATOR - 4, 18, class_="b", text_anchor="end")
    yield text("owners of 0 to 5", _STRIP, 18, class_="b")


def _exchange(row: Row, y: float) -> Iterator[Shape]:
    kind, x = KINDS[row.who], _LINES[row.who]
    ask, answer = y + 15, y + 36
    label = _COORDINATOR - 9
    yield text(row.sent, label, ask - 5, class_="", text_anchor="end")
    yield path(f"M{x} {ask:.1f}H{_COORDINATOR - 7}", class_=f"line s-{kind}")
    yield head(_COORDINATOR, ask, 1, kind)
    yield text(row.answered, label, answer - 5, class_="", text_anchor="end")
    yield path(f"M{_COORDINATOR} {answer:.1f}H{x + 7}", class_="line ink", stroke_dasharray="5 3")
    yield head(x, answer, -1)


def _strip(owners: Sequence[Owner], y: float) -> Iterator[Shape]:
    """A cell for each partition; one that is on its way out is half as high."""
    for number, owner in enumerate(owners):
        x = _STRIP + number * _CELL
        height = 14 if owner.leaves else 24
        yield rect(x + 0.5, y, _CELL - 1, 24, class_="edge", rx=2)
        if owner.member:
            yield rect(x + 0.5, y + 24 - height, _CELL - 1, height, class_=KINDS[owner.member], rx=2)
        place = y + 22 if owner.leaves else y + 16
        classes = "b on" if owner.member else "faint"
        yield text(str(number), x + _CELL / 2, place, class_=classes, text_anchor="middle")


def _words(rows: Iterable[Row]) -> str:
    said = (f"{n}. {row.says}: {row.who} sends {row.sent}, answered {row.answered}." for n, row in enumerate(rows, 1))
    return " ".join(said)


# -- the tables --------------------------------------------------------------------------------------------------------


def story_table(rows: Sequence[Row]) -> str:
    """A story; the last column says who has what, where that changes. What no step changes is left out."""
    shown = [("step", "what happens", "sent", "answered", "the member then", "who then has what")]
    for number, row in enumerate(rows, start=1):
        who = f"{row.who}: {row.state or 'not in the group'}" if row.who else ""
        shown.append((str(number), row.says, row.sent, _answer(row.answered), who, owned(row.owners)))
    changing = [column for column in zip(*shown, strict=True) if len({*column[1:]}) > 1]
    headings, *steps = zip(*changing, strict=True)
    return markdown_table(headings, _last_when_new(steps))


def _last_when_new(steps: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """The last cell only where it differs from the one above."""
    above = ""
    for *others, last in steps:
        yield *others, "" if last == above else last
        above = last


def _answer(answered: str) -> str:
    return f"`{answered}`" if answered.isupper() else answered


def owned(owners: Sequence[Owner]) -> str:
    """`m1 0 1 (2), m3 4`: in brackets what is on its way out."""
    by_member: dict[str, list[str]] = {}
    for number, owner in enumerate(owners):
        by_member.setdefault(owner.member, []).append(f"({number})" if owner.leaves else str(number))
    free = by_member.pop("", [])
    said = [f"{member} {' '.join(numbers)}" for member, numbers in sorted(by_member.items())]
    return ", ".join([*said, *([f"free {' '.join(free)}"] if free else [])])


def migration_table() -> str:
    rows = [(step.says, f"{step.who}: {step.sent}", _answer(step.answered), step.group) for step in migration()]
    return markdown_table(("what happens", "sent", "answered", "the group then"), _last_when_new(rows))


def records_table() -> str:
    rows = [(str(version), f"`{name}`", member, says) for version, name, member, says in records()]
    return markdown_table(("key version", "record", "of", "says"), rows)


def places() -> Mapping[str, str]:
    """The generated places of the page, by name."""
    figure = f"![{_ALT_TEXT}](diagrams/figures/{FIGURE.name})"
    table = folded("The same as a table", story_table(reconciliation()))
    return {
        "reconciliation": f"{figure}\n\n{table}",
        "too-slow": story_table(too_slow()),
        "fenced": story_table(fenced()),
        "static": story_table(static()),
        "records": records_table(),
        "migration": migration_table(),
    }


def files() -> Mapping[Path, str]:
    """The page with its places filled, and its figure."""
    return {PAGE: filled(PAGE, places()), FIGURE: picture()}


assert len(reconciliation()[0].owners) == PARTITIONS
assert width_of("epoch 3, assigned 2, 5") < _COORDINATOR - _LINES["m3"] - 9, "labels fit between the lines"
