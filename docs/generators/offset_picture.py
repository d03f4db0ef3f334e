"""Draw the figures of the 0.8 consumer's offsets: `make names`.

Of `diagrams/figures`, `offset-parts.svg` has the parts between a partition's log and the application, with the names of
the code, and `offset-life.svg` the moments of `offset_life`. The tables here say the same on the page.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.markup import Shape, path, rect, text
from docs.generators.figure_text import WIDTH, arrow_down, figure, head, width_of, wrapped
from docs.generators.offset_life import CHUNKS_MAX, COMMITTED, life
from docs.generators.pages import FIGURES, markdown_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from docs.generators.offset_life import Moment

#: Kafka's names for what the code calls so, by module of `zkconsumer`.
NAMES = (
    ("PartitionTopicInfo", "PartitionInfo", "records/streams.py"),
    ("PartitionTopicInfo.fetchedOffset", "PartitionInfo.fetched", "records/streams.py"),
    ("PartitionTopicInfo.consumedOffset", "PartitionInfo.consumed", "records/streams.py"),
    ("checkpointedZkOffsets", "PartitionInfo.checkpointed", "records/streams.py"),
    ("PartitionTopicInfo.chunkQueue", "Stream", "records/streams.py"),
    ("FetchedDataChunk", "Chunk", "records/streams.py"),
    ("topicRegistry", "Registry", "records/streams.py"),
    ("ConsumerFetcherThread", "Fetcher", "records/fetchers.py"),
    ("ConsumerFetcherManager", "FetcherManager", "records/leaders.py"),
    ("ConsumerIterator", "StreamIterator", "records/iterators.py"),
    ("commitOffsets", "Offsets.commit", "offsets/commits.py"),
)
MARGIN, LINE = 10, 14.5


def names_table() -> str:
    """Kafka's names and ours."""
    by_module: dict[str, list[str]] = {}
    for theirs, ours, module in NAMES:
        by_module.setdefault(module, []).append(f"`{theirs}` is `{ours}`")
    return "\n".join(f"- [{module}](../zkconsumer/{module}): {', '.join(of)}" for module, of in by_module.items())


def life_table() -> str:
    """The moments with their three offsets."""
    rows = []
    for number, moment in enumerate(life(), start=1):
        queued = [*([_span(moment.current)] if moment.current else []), *map(_span, moment.chunks)]
        said = ", ".join(queued) + (f"; {_span(moment.waiting)} waits" if moment.waiting else "")
        offsets = (moment.fetched, moment.consumed, moment.checkpointed)
        rows.append((str(number), moment.happened, f"`{moment.by}`", said, *map(str, offsets)))
    return markdown_table(
        ("moment", "what has happened", "by", "not handed out yet", "fetched", "consumed", "checkpointed"), rows
    )


def _span(offsets: tuple[int, int]) -> str:
    first, last = offsets
    return str(first) if first == last else f"{first}-{last}"


# -- the parts ---------------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A box on the way of a record, with the field of the partition that it moves."""

    name: str
    says: str
    kind: str
    field: str = ""
    field_says: str = ""


PARTS = (
    Part("the partition's log", "on the broker that leads it", "k9"),
    Part(
        "Fetcher",
        "one for each broker, for all its partitions; asks from fetched on, and waits while a queue is full",
        "k0",
        "fetched",
        "the next offset to ask for",
    ),
    Part(
        "Stream",
        "one queue for each thread, shared by its partitions: at most queued.max.message.chunks of Chunk",
        "k6",
    ),
    Part(
        "Stream.take, StreamIterator",
        "hand records out, one chunk after the other",
        "k4",
        "consumed",
        "the next offset to hand out",
    ),
    Part("the application", "may still be working on what it was handed", "k9"),
    Part(
        "Offsets.commit",
        "by the timer, in R4, and at the shutdown: writes consumed, if it has changed",
        "k2",
        "checkpointed",
        "the last one written",
    ),
    Part("/consumers/g/offsets/t/p", "in ZooKeeper; R8 reads it, and R12 makes a new PartitionInfo of it", "k1"),
)
_WAY, _INFO, _INFO_WIDTH, _GAP = 222, 262, 138, 16


def parts_picture() -> str:
    shapes: list[Shape] = []
    tops: list[tuple[float, float]] = []
    y = 10.0
    for part in PARTS:
        lines = wrapped(part.says, _WAY - 16)
        height = 25 + LINE * len(lines)
        shapes.append(rect(MARGIN, y, _WAY, height, class_="card", rx=4))
        shapes.append(rect(MARGIN, y, 6, height, class_=part.kind, rx=2))
        shapes.append(text(part.name, MARGIN + 13, y + 16, class_="name"))
        shapes += [text(line, MARGIN + 13, y + 16 + LINE * n, class_="faint") for n, line in enumerate(lines, start=1)]
        tops.append((y, height))
        y += height + _GAP
    bottom = y - _GAP + 10
    shapes += [shape for above, below in _pairs(tops) for shape in arrow_down(MARGIN + 26, above, below)]
    shapes += _info(tops)
    says = " ".join(
        f"{part.name}: {part.says}.{f' It moves {part.field}, {part.field_says}.' if part.field else ''}"
        for part in PARTS
    )
    return figure("From the log to the application, and the three offsets of a partition", shapes, bottom, says)


def _pairs(tops: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The end of each box and the top of the next; the application commits nothing by itself."""
    for number, ((top, height), (following, _)) in enumerate(pairwise(tops)):
        if PARTS[number].name != "the application":
            yield top + height, following


def _info(tops: Sequence[tuple[float, float]]) -> Iterator[Shape]:
    """The PartitionInfo beside the way, with its fields at the height of what moves them."""
    fields = [(part, *top) for part, top in zip(PARTS, tops, strict=True) if part.field]
    top, bottom = fields[0][1] - 44, fields[-1][1] + fields[-1][2]
    yield rect(_INFO, top, _INFO_WIDTH, bottom - top, class_="card", rx=4)
    yield text("PartitionInfo", _INFO + 9, top + 16, class_="name")
    yield text("new in each rebalance", _INFO + 9, top + 31, class_="faint")
    right = MARGIN + _WAY
    for part, y, height in fields:
        lines = wrapped(part.field_says, _INFO_WIDTH - 28)
        box = 24 + LINE * len(lines)
        place = y + (height - box) / 2
        yield rect(_INFO + 7, place, _INFO_WIDTH - 14, box, class_=f"box {part.kind}", rx=3)
        yield text(part.field, _INFO + 14, place + 16, class_="name on")
        for n, line in enumerate(lines, start=1):
            yield text(line, _INFO + 14, place + 16 + LINE * n, class_="on")
        middle = y + height / 2
        yield path(f"M{right} {middle:.1f}H{_INFO}", class_=f"line s-{part.kind}")
        yield head(_INFO + 7, middle, 1, part.kind)
    low = tops[-1][0] + 16
    x = _INFO + _INFO_WIDTH / 2
    yield path(f"M{right} {low:.1f}H{x:.1f}V{bottom + 7:.1f}", class_="line s-k1")
    yield path(f"M{x - 4.5:.1f} {bottom + 8:.1f}h9l-4.5 -8z", class_="h-k1")
    for n, line in enumerate(("all three begin with", "the committed offset")):
        yield text(line, right + 8, low + 15 + LINE * n, class_="")


# -- the life ----------------------------------------------------------------------------------------------------------

_CELLS, _CELL = 12, 32
_FILLS = (
    ("k9", "handed out"),
    ("k4", "the chunk that is being handed out"),
    ("k0", "a queued chunk"),
    ("k6", "the next one"),
    ("k1", "waits for room"),
)
_FIELDS = (("fetched", "k0"), ("consumed", "k4"), ("checkpointed", "k2"))


def life_picture() -> str:
    shapes: list[Shape] = []
    y = 8.0
    x: float = MARGIN
    for kind, says in _FILLS:
        width = width_of(says) + 24
        if x + width > WIDTH:
            x, y = MARGIN, y + 18
        shapes.append(rect(x, y + 2, 10, 10, class_=kind, rx=2))
        shapes.append(text(says, x + 14, y + 11, class_="faint"))
        x += width
    y += 26
    moments = life()
    for number, moment in enumerate(moments, start=1):
        y = _moment(shapes, number, moment, y)
    says = " ".join(
        f"{number}. {each.happened}: {', '.join(f'{field} {getattr(each, field)}' for field, _ in _FIELDS)}."
        for number, each in enumerate(moments, start=1)
    )
    return figure("The life of an offset, from the commit of one owner to the start of the next", shapes, y - 6, says)


def _moment(shapes: list[Shape], number: int, moment: Moment, y: float) -> float:
    for line in wrapped(f"{number}. {moment.happened}", WIDTH - 2 * MARGIN - 20):
        shapes.append(text(line, MARGIN, y + 11, class_="b"))
        y += LINE
    shapes.append(text(moment.by, MARGIN, y + 11, class_="faint"))
    y += LINE + 3
    for offset in range(COMMITTED, COMMITTED + _CELLS):
        kind = _kind(moment, offset)
        at = MARGIN + (offset - COMMITTED) * _CELL
        shapes.append(rect(at + 0.5, y, _CELL - 1, 18, class_=kind or "edge", rx=2))
        shapes.append(text(str(offset), at + _CELL / 2, y + 13, class_="on" if kind else "faint", text_anchor="middle"))
    y += 18
    for row, (field, kind) in enumerate(_FIELDS):
        value = getattr(moment, field)
        at = MARGIN + (value - COMMITTED) * _CELL
        low = y + 13 * row
        is_left = at > WIDTH / 2
        shapes.append(path(f"M{at} {y - 18 if row == 0 else y}V{low + 9}", class_=f"line s-{kind}"))
        label = f"{field} {value}"
        anchor = {"text_anchor": "end"} if is_left else {}
        shapes.append(text(label, at - 5 if is_left else at + 5, low + 11, class_="", **anchor))
    return y + 13 * len(_FIELDS) + 16


def _kind(moment: Moment, offset: int) -> str:
    """The colour of a record: the queued chunks take turns."""
    spans = [(moment.waiting, "k1"), (moment.current, "k4")]
    spans += [(chunk, ("k0", "k6")[place % 2]) for place, chunk in enumerate(moment.chunks)]
    found = next((kind for span, kind in spans if span and span[0] <= offset <= span[1]), "")
    return found or ("k9" if offset < moment.consumed else "")


def files() -> Mapping[Path, str]:
    return {FIGURES / "offset-parts.svg": parts_picture(), FIGURES / "offset-life.svg": life_picture()}


assert len(_FILLS[2:4]) == CHUNKS_MAX, "a colour for each queued chunk"
