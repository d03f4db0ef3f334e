"""A group at a moment, and the columns in which Kafka's own tools show one. Pure.

Sources: ConsumerOffsetChecker of 0.8.2.2 for groups in ZooKeeper, kafka-consumer-groups of 2.0 to 4.1 for groups with a
coordinator (ConsumerGroupCommand: `--offsets`, `--members --verbose`, `--state`). `-` is what is unknown there too.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from comparison.screen.printable import printable
from comparison.screen.text_table import Column, TextTable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from kernel.values import TopicPartition

UNKNOWN = "-"
#: What ConsumerOffsetChecker writes for a partition without an owner or an offset.
NOBODY, NO_OFFSET_TEXT = "none", "unknown"
#: The column of lists, which wrap.
_ASSIGNMENT = "ASSIGNMENT"


class Keeper(StrEnum):
    """Who keeps a group's members and owners."""

    ZOOKEEPER = "zookeeper"
    COORDINATOR = "coordinator"


class Part(StrEnum):
    """A table about a group."""

    STATE = "state"
    MEMBERS = "members"
    OFFSETS = "offsets"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow:
    """One partition. In ZooKeeper the owner is a thread, with a coordinator a member."""

    partition: TopicPartition
    current: int | None = None  #: the committed offset
    end: int | None = None
    owner: str = ""
    host: str = ""
    client: str = ""

    @property
    def lag(self) -> int | None:
        return None if self.current is None or self.end is None else self.end - self.current


class PatternKind(StrEnum):
    """How a pattern is read."""

    JAVA = "java"  #: Consumer.subscribe(Pattern), matched by the member, which sends the topics
    RE2 = "re2"  #: SubscriptionPattern, matched by the coordinator
    WHITE_LIST = "white_list"  #: of 0.8: commas mean `|`
    BLACK_LIST = "black_list"  #: of 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribed:
    """What a member subscribes to: topics by name, or a pattern; neither if it is not known."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    kind: PatternKind | None = None  #: of the pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRow:
    """One member with what it owns."""

    member: str
    instance: str = ""
    host: str = ""
    client: str = ""
    owned: tuple[TopicPartition, ...] = ()
    subscribed: Subscribed = Subscribed()
    streams: int = 1  #: in ZooKeeper, where a member may have several


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSeen:
    """A group at a moment."""

    group: str
    keeper: Keeper
    coordinator: str = ""  #: HOST:PORT (id)
    strategy: str = ""
    state: str = ""
    generation: int | None = None  #: Kafka's tools do not show it, and no request tells it
    members: tuple[MemberRow, ...] = ()
    partitions: tuple[PartitionRow, ...] = ()
    commanded: bool = False  #: ids of the `server` design, whose coordinator has everything else
    problem: str = ""  #: why some of it is unknown or old


class Table(NamedTuple):
    """Rows of cells under headings; the last column has no width."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    widths: Sequence[int]  #: the least ones, as Kafka's tools have them
    labels: int  #: so many columns at the beginning say what a row is about

    def drawn(self, styled: Callable[[Sequence[str]], str] = lambda _: "") -> TextTable:
        """The table for a screen; columns are as wide as in Kafka's tools if there is room. `styled` is by row."""
        columns = [
            Column(heading=heading, padded=width, is_label=place < self.labels, wraps=heading == _ASSIGNMENT)
            for place, (heading, width) in enumerate(zip(self.headings, self.widths, strict=True))
        ]
        table = TextTable(columns, gaps=(1,), is_ruled=False)
        for row in self.rows:
            table.add(*row, style=styled(row))
        return table

    def lines(self, room: int | None = None) -> list[str]:
        """The headings and the rows as lines of text; None: as wide as they get."""
        return [line.plain for line in self.drawn().lines(room)]


def tables(seen: GroupSeen, parts: Iterable[Part]) -> list[Table]:
    """The tables about a group, with every text printable."""
    wanted = set(parts)
    return [make(seen) for part, make in _TABLES.items() if part in wanted]


def zookeeper_state(ids: Collection[str], rows: Sequence[PartitionRow]) -> str:
    """ZooKeeper keeps no state of a group; this is what its znodes amount to."""
    if not ids:
        return "Empty"
    unowned = sum(not row.owner for row in rows)
    return f"{unowned} of {len(rows)} unowned" if unowned or not rows else "all owned"


def assignment_text(partitions: Iterable[TopicPartition]) -> str:
    """`orders(0,1), invoices(2)`, as kafka-consumer-groups has it."""
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for tp in sorted(partitions):
        numbers[tp.topic].append(tp.partition)
    return ", ".join(f"{topic}({','.join(map(str, each))})" for topic, each in numbers.items())


def _state(seen: GroupSeen) -> Table:
    headings = ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
    row = (seen.group, seen.coordinator, seen.strategy, seen.state, str(len(seen.members)))
    return Table(headings, [_cells(row)], (15, 25, 25, 20, 0), labels=1)


def _members(seen: GroupSeen) -> Table:
    static = any(member.instance for member in seen.members)
    headings = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", _ASSIGNMENT]
    widths = [15, 15, 15, 15, 15, 0]
    rows = []
    for member in seen.members:
        row = [seen.group, member.member, member.host, member.client, str(len(member.owned))]
        row.append(assignment_text(member.owned))
        if static:
            row.insert(2, member.instance)
        rows.append(_cells(row))
    if static:
        headings.insert(2, "GROUP-INSTANCE-ID")
        widths.insert(2, 15)
    return Table(headings, rows, widths, labels=2)


def _offsets(seen: GroupSeen) -> Table:
    """As ConsumerOffsetChecker of 0.8 for a group in ZooKeeper, as kafka-consumer-groups for others."""
    checked = seen.keeper is Keeper.ZOOKEEPER
    unknown = NO_OFFSET_TEXT if checked else ""
    rows = []
    for row in seen.partitions:
        offsets = (unknown if number is None else str(number) for number in (row.current, row.end, row.lag))
        owner = (row.owner or NOBODY,) if checked else (row.owner, row.host, row.client)
        rows.append(_cells((seen.group, row.partition.topic, str(row.partition.partition), *offsets, *owner)))
    if checked:
        headings = ("Group", "Topic", "Pid", "Offset", "logSize", "Lag", "Owner")
        return Table(headings, rows, (15, 30, 3, 15, 15, 15, 0), labels=3)
    described = (
        *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"),
        *("CONSUMER-ID", "HOST", "CLIENT-ID"),
    )
    return Table(described, rows, (15, 15, 10, 15, 15, 15, 15, 15, 0), labels=3)


_TABLES = {Part.STATE: _state, Part.MEMBERS: _members, Part.OFFSETS: _offsets}


def _cells(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(printable(text) or UNKNOWN for text in texts)
