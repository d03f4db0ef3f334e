"""Rows of tables about a run's course to values: members' rebalances, intervals of the run, who joined when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from comparison.report.view.model import Interval, Joined, Rebalance
from comparison.results.keys import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from comparison.report.view.naming import MemberNames

    Row = Mapping[str, Any]

_NS_PER_MS = 1e6


def rebalances_of(rows: Iterable[Row], names: MemberNames) -> Iterator[Rebalance]:
    """From the table `phases`."""
    for row in rows:
        if row["phase"] == WHOLE:
            member = names.of_member(row["member"], row["process"])
            yield Rebalance(row["from_ns"] / _NS_PER_MS, row["until_ns"] / _NS_PER_MS, member)


def course_of(rows: Iterable[Row]) -> Iterator[Interval]:
    """From the table `course`, in order."""
    for row in sorted(rows, key=lambda row: row["from_ns"]):
        yield Interval(
            row["from_ns"] / _NS_PER_MS,
            row["until_ns"] / _NS_PER_MS,
            delivered=row["delivered"],
            duplicates=row["duplicates"],
            undelivered=row["undelivered"],
            lag=row["lag"],
        )


def joined_of(rows: Iterable[Row], names: MemberNames) -> Iterator[Joined]:
    """From the table `waits`; a rebalance has the number of its round, from 1."""
    for row in rows:
        yield Joined(
            number=row["round"] + 1,
            member=names.of_member(row["member"], row["process"]),
            at_ms=None if row["joined_ns"] is None else row["joined_ns"] / _NS_PER_MS,
            waited_ms=row["waited_ns"] / _NS_PER_MS,
            is_waited_for=row["is_waited_for"],
        )
