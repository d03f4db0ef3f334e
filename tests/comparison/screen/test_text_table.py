"""Tables for screens of any width: whatever is in a cell is there in full, and no line is wider than the screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from comparison.screen.text_table import Column, TextTable
from tests.support.properties import examples

WORDS = st.text("abcdefghijklmnopqrstuvwxyzäλ漢-(),.", min_size=1, max_size=14)
LONG_WORDS = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=30, max_size=70)
TEXTS = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)
FIGURES = st.integers(min_value=0, max_value=10**12).map("{:,}".format)
#: Figures, some with the range of the repeats below.
CELLS = FIGURES | FIGURES.map(lambda figure: f"{figure}\n0-{figure}")
COLUMNS = st.one_of(
    st.builds(Column, heading=TEXTS, is_right=st.just(value=True), follows=st.booleans(), padded=st.integers(0, 15)),
    st.builds(
        Column,
        heading=WORDS,
        wraps=st.just(value=True),
        narrowest=st.none() | st.integers(0, 20),
        widest=st.none() | st.integers(4, 30),
    ),
)
LABELS = st.builds(
    Column, heading=WORDS | st.just(""), is_label=st.just(value=True), wraps=st.booleans(), narrowest=st.integers(0, 20)
)


@st.composite
def filled(draw: st.DrawFn) -> tuple[TextTable, list[Sequence[str]]]:
    """A table, and what is in it: its headings, and its rows."""
    labels = draw(st.lists(LABELS, min_size=1, max_size=2))
    columns = [*labels, *draw(st.lists(COLUMNS, min_size=1, max_size=9).filter(lambda found: not found[0].follows))]
    gaps = draw(st.sampled_from([(3, 1), (1,), (2, 1)]))
    table = TextTable(columns, gaps=gaps, is_framed=draw(st.booleans()), is_ruled=draw(st.booleans()))
    told = []
    for _ in range(draw(st.integers(1, 4))):
        told.append([draw(TEXTS | LONG_WORDS if each.wraps or each.is_label else CELLS) for each in columns])
        table.add(*told[-1])
    return table, [[column.heading for column in columns], *told]


def words(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in text.split())


@settings(max_examples=examples(200), deadline=None)
@given(filled(), st.integers(min_value=40, max_value=200))
def test_every_word_is_shown_whole_and_lines_fit_the_screen(
    made: tuple[TextTable, list[Sequence[str]]], width: int
) -> None:
    table, told = made
    lines = table.lines(width)
    # In a list a heading is followed by a colon.
    shown = words(line.plain.replace(":", "") for line in lines)
    assert words(text for row in told[1:] for text in row) <= shown
    assert words(told[0]) <= shown
    for line in lines:
        assert line.plain == line.plain.rstrip()
        assert line.cell_len <= width or len(line.plain.split()) == 1


@settings(max_examples=examples(50), deadline=None)
@given(filled())
def test_table_for_no_screen_has_a_line_for_each_line_of_a_cell(made: tuple[TextTable, list[Sequence[str]]]) -> None:
    table, told = made
    shown = words(line.plain for line in table.lines())
    assert shown == words(text for row in told for text in row) + Counter(
        {line.plain.strip(): 1 for line in table.lines() if set(line.plain.strip()) == {"─"}}
    )
