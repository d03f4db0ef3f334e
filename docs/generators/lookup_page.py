"""Fill `coordinator-lookup.md`, how a group's coordinator is found, and draw its picture.

Every number is computed by the code that brokers run (`coordinator.groups.placement`); a test compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.report.markup import Shape, rect, text
from coordinator.groups.placement import partition_of
from docs.generators.figure_text import arrow_down, figure
from docs.generators.pages import DOCS, FIGURES, filled, markdown_table
from kernel.java_hash import INT_MIN, java_hash, kafka_abs
from kernel.topic_names import OFFSETS_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

PAGE, PICTURE = DOCS / "coordinator-lookup.md", FIGURES / "coordinator-lookup.svg"
PARTITIONS = 50
EXAMPLE, TRAP = "my-group", "polygenelubricants"
#: The groups of the table: short and long names, a negative hash, another script, and the trap.
NAMES = ("a", "test", "group", EXAMPLE, "connect-cluster", "console-consumer-12345", "消费组", TRAP)
COMMAND = f"rebalance-lab broker coordinator {EXAMPLE} --partitions {PARTITIONS}"
TITLE = f"From a group's name to its coordinator: {EXAMPLE}, and {TRAP}, whose hash code has no absolute value"


class Way(NamedTuple):
    """A way to compute a group's partition from its hash code, and what it gives."""

    says: str
    used: str
    partition: int


def java_remainder(number: int, by: int) -> int:
    """Java's %: its result has the sign of the left side."""
    return abs(number) % by if number >= 0 else -(abs(number) % by)


def java_abs(number: int) -> int:
    """Java's Math.abs."""
    return number if number == INT_MIN else abs(number)


def ways(name: str) -> tuple[Way, ...]:
    """All ways for a name, the right one last."""
    hashed = java_hash(name)
    return (
        Way("abs(hash % 50)", "article 002", java_abs(java_remainder(hashed, PARTITIONS))),
        Way("Math.abs(hash) % 50", "the formula as it reads", java_remainder(java_abs(hashed), PARTITIONS)),
        Way(
            "(hash & 0x7fffffff) % 50",
            "how producers drop the sign of a key's hash",
            (hashed & 0x7FFFFFFF) % PARTITIONS,
        ),
        Way("Utils.abs(hash) % 50", "**Kafka's coordinator**, and ours", partition_of(name, PARTITIONS)),
    )


def _steps(name: str) -> str:
    """The hash code, character by character."""
    rows, before = [], 0
    for place, letter in enumerate(name, start=1):
        now = java_hash(name[:place])
        whole = 31 * before + ord(letter)
        rows.append((f"`{letter}`", str(ord(letter)), f"31 · {before} + {ord(letter)} = {whole}", str(now)))
        before = now
    shown = markdown_table(("character", "its number", "31 · hash + number", "in 32 bits"), rows)
    absolute, place = kafka_abs(before), partition_of(name, PARTITIONS)
    says = f"its absolute value {absolute}, and {absolute} % {PARTITIONS} = **{place}**"
    return f"{shown}\n\nSo the hash code is {before}, {says}."


def _ways() -> str:
    rows = [
        (f"`{trap.says}`", trap.used, str(trap.partition), str(example.partition))
        for trap, example in zip(ways(TRAP), ways(EXAMPLE), strict=True)
    ]
    return markdown_table(("formula", "used by", f"`{TRAP}`", f"`{EXAMPLE}`"), rows)


def _groups() -> str:
    rows = [
        (
            f"`{name}`",
            str(java_hash(name)),
            str(partition_of(name, PARTITIONS)),
            str(partition_of(name, 2 * PARTITIONS)),
        )
        for name in NAMES
    ]
    return markdown_table(("group", "hash code", f"partition of {PARTITIONS}", f"partition of {2 * PARTITIONS}"), rows)


# -- the picture -------------------------------------------------------------------------------------------------------

_COLUMNS, _BOX, _LINE = (8, 209), 193, 52


def picture() -> str:
    """The two names side by side, from the name to the broker."""
    shapes: list[Shape] = []
    lines = list(_lines())
    for number, (heading, kind, cells) in enumerate(lines):
        y = 10 + number * _LINE
        for x, cell in zip(_COLUMNS, cells, strict=True):
            if number:
                shapes += arrow_down(x + _BOX / 2, y - 18, y)
            shapes.append(rect(x, y, _BOX, 34, class_="card" if not kind else f"box {kind}", rx=4))
            shapes.append(text(heading, x + 8, y + 13, class_="on" if kind else "faint"))
            shapes.append(text(cell, x + 8, y + 28, class_="name on" if kind else "name"))
    height = 10 + len(lines) * _LINE - 10
    says = " ".join(f"{heading}: {', '.join(cells)}." for heading, _, cells in lines)
    return figure(TITLE, shapes, height, says)


def _lines() -> Iterable[tuple[str, str, tuple[str, str]]]:
    """Heading, colour, and what both names have."""
    names = (EXAMPLE, TRAP)
    hashes = [java_hash(name) for name in names]
    places = [partition_of(name, PARTITIONS) for name in names]
    yield "the group", "k0", names
    yield "hashCode, in 32 bits", "", (str(hashes[0]), str(hashes[1]))
    yield "abs: 0 for the smallest integer", "", (str(kafka_abs(hashes[0])), str(kafka_abs(hashes[1])))
    yield f"% {PARTITIONS}", "", (str(places[0]), str(places[1]))
    yield "its partition", "k1", (f"{OFFSETS_TOPIC}-{places[0]}", f"{OFFSETS_TOPIC}-{places[1]}")
    yield "FindCoordinator answers with", "k2", ("the broker that leads it", "the broker that leads it")


def files() -> Mapping[Path, str]:
    """The page and its picture."""
    return {PAGE: filled(PAGE, {"steps": _steps(EXAMPLE), "ways": _ways(), "groups": _groups()}), PICTURE: picture()}
