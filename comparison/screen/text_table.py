"""Tables as lines of text for a screen of any width: no figure is cut, and no label is lost.

Columns that do not fit beside each other get closer to each other first. Then text is wrapped at blanks. Then the
columns are shown in blocks, one below the other, each with the labels of the rows. If one of them does not fit beside
the labels even alone, the table is written as a list, a line for each cell. So a line is wider than the screen only if
a word is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType

_WORD = re.compile(r"[^ ]+")
_HEADING = "bold"
_RULE = "─"
#: Of the cells below their row's labels, in a list.
_INDENT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column and how it gives way where there is little room; by default, not at all."""

    heading: str = ""
    is_label: bool = False  #: says what its row is about; shown in every block
    is_right: bool = False  #: as figures are
    wraps: bool = False  #: at blanks
    narrowest: int | None = None  #: wrapped no further to make room for other columns; None: not at all for them
    widest: int | None = None  #: wrapped at this width even where there is room
    padded: int = 0  #: this wide where there is room
    follows: bool = False  #: stays beside the column before it


class _Block(NamedTuple):
    """Columns beside each other."""

    places: Sequence[int]
    widths: Sequence[int]
    gap: int


class TextTable:
    """Columns under headings, and rows of cells. `gaps` are the blanks between two columns, the wished ones first.

    With `is_framed` an empty line stands above and below it, and a blank before each line.
    """

    def __init__(
        self, columns: Sequence[Column], *, gaps: Sequence[int] = (3, 1), is_ruled: bool = True, is_framed: bool = False
    ) -> None:
        self._columns = columns
        self._gaps = gaps
        self._is_ruled = is_ruled
        self._is_framed = is_framed
        self._rows: list[tuple[list[Text], str]] = []

    def add(self, *cells: Text | str, style: str = "") -> None:
        """Add a row with a cell for each column."""
        assert len(cells) == len(self._columns)
        self._rows.append(([Text(cell) if isinstance(cell, str) else cell for cell in cells], style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield from self.lines(options.max_width)

    def lines(self, width: int | None = None) -> list[Text]:
        """The table, without blanks at the ends of lines; None: as wide as it gets."""
        margin = Text(" " * self._is_framed)
        room = None if width is None else width - len(margin)
        found: list[Text] = []
        blocks = self._blocks(room)
        for block in blocks:
            found += [Text()] if found else []
            found += [margin + line for line in self._beside(block)]
        if not blocks:
            assert room is not None, "everything fits where room is not limited"
            found = [margin + line for line in self._listed(room)]
        return [Text(), *found, Text()] if self._is_framed else found

    # -- what fits -------------------------------------------------------------------------------------------------

    def _blocks(self, room: int | None) -> list[_Block]:
        """As few blocks as possible, and as much space between the columns as these allow; none if a column is left."""
        sizes = [_Sizes.of(column, self._texts(place)) for place, column in enumerate(self._columns)]
        if room is None:
            return [_Block(range(len(sizes)), [max(size.whole, size.padded) for size in sizes], self._gaps[0])]
        return min(
            (self._blocks_with(gap, sizes, room) for gap in self._gaps), key=lambda found: (not found, len(found))
        )

    def _blocks_with(self, gap: int, sizes: Sequence[_Sizes], room: int) -> list[_Block]:
        labels = [place for place, column in enumerate(self._columns) if column.is_label]
        blocks: list[_Block] = []
        for places in self._kept_together():
            wider = [*blocks[-1].places, *places] if blocks else []
            if blocks and (widths := _fitting([sizes[place] for place in wider], gap, room)):
                blocks[-1] = _Block(wider, widths, gap)
                continue
            alone = [*labels, *places]
            of_these = [sizes[place] for place in alone]
            widths = _fitting(of_these, gap, room) or _fitting([size.alone() for size in of_these], gap, room)
            if not widths:
                return []
            blocks.append(_Block(alone, widths, gap))
        return blocks

    def _kept_together(self) -> list[list[int]]:
        """The columns without the labels, with those that follow them."""
        found: list[list[int]] = []
        for place, column in enumerate(self._columns):
            if column.follows:
                found[-1].append(place)
            elif not column.is_label:
                found.append([place])
        return found

    def _texts(self, place: int) -> Iterator[Text]:
        yield Text(self._columns[place].heading)
        for cells, _ in self._rows:
            yield cells[place]

    # -- lines -----------------------------------------------------------------------------------------------------

    def _beside(self, block: _Block) -> Iterator[Text]:
        headings = [Text(self._columns[place].heading, _HEADING) for place in block.places]
        yield from self._row(block, headings)
        if self._is_ruled:
            yield Text(_RULE * (sum(block.widths) + block.gap * (len(block.widths) - 1)))
        for cells, style in self._rows:
            for line in self._row(block, [cells[place] for place in block.places]):
                line.stylize(style)
                yield line

    def _row(self, block: _Block, cells: Sequence[Text]) -> Iterator[Text]:
        wrapped = [_wrapped(cell, width) for cell, width in zip(cells, block.widths, strict=True)]
        for number in range(max(map(len, wrapped))):
            line = Text()
            at = 0
            for place, width, lines in zip(block.places, block.widths, wrapped, strict=True):
                cell = lines[number] if number < len(lines) else Text()
                blanks = width - cell.cell_len if self._columns[place].is_right else 0
                if cell.plain.strip():
                    line.pad_right(at + blanks - line.cell_len)
                    line.append_text(cell)
                at += width + block.gap
            yield line

    def _listed(self, room: int) -> Iterator[Text]:
        for cells, style in self._rows:
            row = [(column, _in_one_line(cell)) for column, cell in zip(self._columns, cells, strict=True)]
            labels = [_named(column, cell) for column, cell in row if column.is_label and cell]
            lines = _wrapped(Text("  ").join(labels), room)
            for column, cell in row:
                if cell and not column.is_label:
                    lines += [Text(" " * _INDENT) + line for line in _wrapped(_named(column, cell), room - _INDENT)]
            for line in lines:
                line.stylize(style)
                yield line


@dataclass(frozen=True, slots=True)
class Heading:
    """A line across the screen that begins with a text; only the text where there is no room for both."""

    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        rest = options.max_width - self.text.cell_len - 1
        yield self.text + Text(f" {_RULE * rest}", "dim") if rest > 0 else self.text


def trimmed(console: Console, *parts: RenderableType) -> str:
    """What a console prints, without blanks at the ends of lines."""
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


class _Sizes(NamedTuple):
    """Widths of a column: without wrapping, the least one beside others, of its longest word, and the wished one."""

    whole: int
    least: int
    word: int
    padded: int

    @classmethod
    def of(cls, column: Column, texts: Iterator[Text]) -> _Sizes:
        lines = [line.plain for text in texts for line in text.split(allow_blank=True)]
        whole = max(map(cell_len, lines), default=0)
        if not column.wraps:
            return cls(whole, whole, whole, column.padded)
        word = max((cell_len(line[start:end]) for line in lines for start, end in _words(line)), default=0)
        whole = max(word, whole if column.widest is None else min(whole, column.widest))
        least = whole if column.narrowest is None else min(whole, max(word, column.narrowest))
        return cls(whole, least, word, column.padded)

    def alone(self) -> _Sizes:
        return self._replace(least=self.word)


def _fitting(sizes: Sequence[_Sizes], gap: int, room: int) -> list[int]:
    """The widths of these columns beside each other, the widest of them made narrower; empty if they do not fit."""
    room -= gap * (len(sizes) - 1)
    widths = [max(size.whole, size.padded) for size in sizes]
    if sum(widths) <= room:
        return widths
    widths = [max(size.least, min(size.whole, room)) for size in sizes]
    while sum(widths) > room:
        wider = [place for place, size in enumerate(sizes) if widths[place] > size.least]
        if not wider:
            return []
        widths[max(wider, key=widths.__getitem__)] -= 1
    return widths


def _words(line: str) -> Iterator[tuple[int, int]]:
    """The beginning and end of each word; blanks at the beginning of the line belong to the first one."""
    for number, word in enumerate(_WORD.finditer(line)):
        yield (word.start() if number else 0), word.end()


def _wrapped(text: Text, width: int) -> list[Text]:
    """The text in lines of at most this width, unless a word is wider."""
    found = []
    for line in text.split(allow_blank=True):
        first = last = 0
        for start, end in _words(line.plain):
            if last and cell_len(line.plain[first:end]) > width:
                found.append(line[first:last])
                first = start
            last = end
        found.append(line[first:last])
    return found


def _named(column: Column, cell: Text) -> Text:
    return Text.assemble((f"{column.heading}: ", _HEADING), cell) if column.heading else cell


def _in_one_line(text: Text) -> Text:
    """Stripped, as indented labels and figures with a range below them are not in a list."""
    return Text(" ").join(line[len(line.plain) - len(line.plain.lstrip()) :] for line in text.split())
