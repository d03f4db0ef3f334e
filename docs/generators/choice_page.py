"""Fill `which-design.md` with what events cost, from `which-design.json` and the table behind `rebalance-lab choose`.

A test compares, and makes some of the runs again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.choosing.answer import choice_of
from comparison.choosing.choice import Group, Tolerated
from comparison.choosing.costs import STANDSTILL_IN_ALL, STOPPED, kept_costs
from comparison.screen.brief_number import brief, brief_range
from docs.generators.choice_records import COLUMNS, DESIGNS, read_records
from docs.generators.pages import DOCS, filled, markdown_table

if TYPE_CHECKING:
    from pathlib import Path

    from docs.generators.choice_records import Records

PAGE = DOCS / "which-design.md"
TWO_DELIVERING = "two_delivering_partition_s"
#: The week of the page's example, as its command says it.
WEEK = {"deploys": 40 * 7.0, "crashes": 1.0, "slow-joins": 1.0}
GROUP = Group(members=12, partitions=48, rate=200, slowest_record_s=1)


#: From here on a decimal says nothing.
_TELLING = 20


class Row(NamedTuple):
    """A figure of a scenario, and what it is called."""

    says: str
    scenario: str
    metric: str


ROWS = (
    Row("**a deploy** of five members: partitions stopped on the others", "rolling-restart", "stopped"),
    Row("... stood still, partition-s", "rolling-restart", "standstill_partition_s"),
    Row("... requests at the coordinator", "rolling-restart", "authority_requests"),
    Row("**a join**: partitions stopped", "join", "stopped"),
    Row("**a clean leave**: longest standstill, s", "leave", "standstill_s"),
    Row("**a crash**, session 3 s: the same", "crash", "standstill_s"),
    Row("**a record of 7 s**, and a join: nobody delivered, s", "slow-member", "stalled_s"),
    Row("... stood still, partition-s", "slow-member", "standstill_partition_s"),
    Row("**callbacks of 3 and 8 s**: nobody delivered, s", "slow-listener", "stalled_s"),
    Row("**cut off** from the coordinator for 10 s: two delivered, partition-s", "split-brain", TWO_DELIVERING),
)


def _cell(spread: tuple[float, float, float]) -> str:
    places = 1 if spread[0] < _TELLING and any(value % 1 for value in spread) else 0
    low, middle, high = (f"{value:,.{places}f}" for value in spread)
    return middle if low == high else f"{middle} ({low} to {high})"


def _events(records: Records) -> str:
    rows = [
        (row.says, *(_cell(records.case(row.scenario, column).spread(row.metric)) for column in COLUMNS))
        for row in ROWS
    ]
    shown = markdown_table(
        ("what happens", *(" with ".join(f"`{part}`" for part in column.split(", ")) for column in COLUMNS)), rows
    )
    says = f"Medians of {len(records.cases[0].seeds)} simulated runs, and their ranges; made {records.made} by"
    commands = "\n".join(f"    {' '.join(each)}" for each in records.commands)
    return f"{shown}\n\n{says}\n\n{commands}\n"


def _week() -> str:
    """Of the designs that are advised, in the week of the page's command."""
    found = choice_of(kept_costs(), GROUP, WEEK, Tolerated(), designs=DESIGNS)
    rows = []
    for each in found.designs:
        bounds = [each.figures[metric].bounds for metric in (STOPPED, STANDSTILL_IN_ALL)]
        cells = [f"{brief(b.middle)} ({brief_range(b.low, b.high, ' to ')})" for b in bounds if b is not None]
        rows.append((f"`{each.design}`", *cells))
    return markdown_table(("design", "partitions stopped in a week", "stood still, partition-s"), rows)


def files() -> dict[Path, str]:
    """The generated page with its content."""
    return {PAGE: filled(PAGE, {"events": _events(read_records()), "week": _week()})}
