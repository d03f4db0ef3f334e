"""Fill the tables of `docs/results.md` and `docs/coordinators.md` from `docs/results.json`, and draw its herd.

`docs.generators.result_records` makes that file. Every figure is a median of the repeats, with their range behind it
where they differ.
"""

from __future__ import annotations

from datetime import date
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from comparison.pipeline.figures.model import JOIN, Setting, Troubles, zookeeper
from comparison.report.drawing.growth import GrowthLine, Measured
from comparison.results.outcomes import VerdictOutcome
from comparison.scenarios.plan.catalogue import CATALOGUE
from docs.generators.growth_picture import Chart, picture
from docs.generators.pages import DOCS, FIGURES, filled, markdown_table, with_range
from docs.generators.result_records import read_records
from kernel.designs import DESIGN_NAMES, ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from docs.generators.result_records import CaseRecord, CommandRecord

    Records = Mapping[str, CommandRecord]

PAGE, SIDE_BY_SIDE = DOCS / "results.md", DOCS / "coordinators.md"
#: The design beside which `zookeeper` stands in a herd.
_WITH_COORDINATOR = "eager"
#: Members after the join.
SIZES = (3, 6, 11, 21)


class Column(NamedTuple):
    """A column of a table; of several figures in a cell those that are not 0 are joined by +."""

    heading: str
    figures: tuple[str, ...]  #: `{}` is the scenario, which is also the name of its change
    unit: float = 1
    digits: int = 0


class Table(NamedTuple):
    """A row for each scenario and design."""

    page: Path
    command: str
    scenarios: tuple[str, ...]
    columns: Sequence[Column]


_REQUESTS = ("JoinGroup", "SyncGroup")
_WATCHING = {"": ("zk_reads", "notifications"), "coordinator ": ("reads", "notifications")}
#: By place.
TABLES: Mapping[str, Table] = {
    "restarts": Table(
        PAGE,
        "rolling-restart",
        ("rolling-restart",),
        (
            Column("rebalances", ("restart: rounds",)),
            Column("interruptions", ("restart: stopped",)),
            Column("moves", ("restart: moved",)),
            Column("without an owner, partition-s", ("restart: unowned_partition_s",), digits=1),
            Column("slowest restart settled after, s", ("restart: converge_ms",), 1000, 1),
        ),
    ),
    "stall": Table(
        PAGE,
        "slow-member",
        ("slow-member",),
        (
            Column("the whole group delivers nothing, s", ("stalled_s",), digits=1),
            Column("longest wait for a member, s", ("longest_wait_ms",), 1000, 1),
            Column("the join settled after, s", ("join: converge_ms",), 1000, 1),
        ),
    ),
    "faults": Table(
        PAGE,
        "faults",
        ("split-brain", "pause"),
        (
            Column("two members deliver, partition-s", ("two_delivering_partition_s",), digits=1),
            Column("commits accepted from a replaced member", ("stale_writes",)),
            Column("offsets moved back", ("moved_back",)),
            Column("commits fenced", ("fenced",)),
        ),
    ),
    "changes": Table(
        SIDE_BY_SIDE,
        "changes",
        ("join", "leave", "crash"),
        (
            Column("rebalances", ("{}: rounds",)),
            Column("stopped", ("{}: stopped",)),
            Column("moved", ("{}: moved",)),
            Column("JoinGroup + SyncGroup", tuple(f"{{}}: {api}" for api in _REQUESTS)),
            Column(
                "reads + notifications of ZooKeeper (in `server` the coordinator's)",
                tuple(f"{{}}: {who}{what}" for who, names in _WATCHING.items() for what in names),
            ),
            Column("unowned, partition-s", ("{}: unowned_partition_s",), digits=1),
            Column("settled, s", ("{}: converge_ms",), 1000, 1),
        ),
    ),
    "failovers": Table(
        SIDE_BY_SIDE,
        "faults",
        ("coordinator-failover",),
        (
            Column("rebalances", ("failover: rounds",)),
            Column("stopped", ("failover: stopped",)),
            Column("offsets moved back", ("moved_back",)),
            Column("every partition delivered and committed again, s", ("failover: settled_ms",), 1000, 1),
        ),
    ),
}


def shown(case: CaseRecord, column: Column) -> str:
    """A cell: medians and ranges."""
    spreads = [case.spread(name.format(case.scenario)) for name in column.figures]
    if len(spreads) > 1:
        spreads = [each for each in spreads if each is not None and each.high]
    return " + ".join(with_range(each, lambda value: f"{value / column.unit:,.{column.digits}f}") for each in spreads)


def table(records: Records, place: str) -> str:
    """A table of the pages. Designs that follow each other with the same figures share a row."""
    _, command, scenarios, columns = TABLES[place]
    cases = {(case.scenario, case.design): case for case in records[command].cases}
    rows = []
    for scenario in scenarios:
        cells = {design: tuple(shown(cases[scenario, design], column) for column in columns) for design in DESIGN_NAMES}
        for figures, same in groupby(DESIGN_NAMES, cells.__getitem__):
            rows.append((scenario, ", ".join(f"`{design}`" for design in same), *figures))
    headings = ("scenario", "design", *(column.heading for column in columns))
    rule = ["---", "---", *["---:"] * len(columns)]
    leaves_out = int(len(scenarios) == 1)
    return markdown_table(headings[leaves_out:], [row[leaves_out:] for row in rows], rule[leaves_out:])


def reads_of_a_join(members: int) -> int:
    """What one more member costs in a herd if no attempt fails; `members` are those after it."""
    defaults = CATALOGUE["herd"].parameters({})
    at = Setting(members=members, topics=defaults.topics, partitions=defaults.partitions, brokers=defaults.brokers)
    return zookeeper(JOIN, at, Troubles())["reads"].count


def herd(records: Records) -> str:
    """What one more member costs, by the size of the group that it joins."""
    rows = []
    for size in SIZES:
        reads, woken, requests = (
            shown(records["compare"].case("herd", design), Column("", _of_a_join(size, *figures)))
            for design, *figures in (
                (ZOOKEEPER, "zk_reads"),
                (ZOOKEEPER, "notifications"),
                (_WITH_COORDINATOR, *_REQUESTS),
            )
        )
        rows.append((str(size - 1), reads, f"{reads_of_a_join(size):,}", woken, requests))
    headings = (
        "members before",
        "`zookeeper`: reads of ZooKeeper",
        "if no attempt fails",
        "members woken",
        f"`{_WITH_COORDINATOR}`: JoinGroup + SyncGroup requests",
    )
    return markdown_table(headings, rows, ["---:"] * len(headings))


def _of_a_join(size: int, *figures: str) -> tuple[str, ...]:
    return tuple(f"join to {size}: {each}" for each in figures)


def herd_picture(records: Records) -> str:
    """The same as a picture: reads of ZooKeeper, those without conflicts dashed, and requests to the coordinator."""
    lines = []
    for design, figures in ((ZOOKEEPER, ("zk_reads",)), (_WITH_COORDINATOR, _REQUESTS)):
        case = records["compare"].case("herd", design)
        spreads = [(size - 1, case.spread_of_sum(_of_a_join(size, *figures))) for size in SIZES]
        points = [Measured.of(before, spread) for before, spread in spreads if spread is not None]
        model = [(size - 1, reads_of_a_join(size)) for size in SIZES] if design == ZOOKEEPER else ()
        lines.append(GrowthLine(design, DESIGN_NAMES.index(design), points, model=model))
    unit = "reads of ZooKeeper, or requests to the coordinator"
    return picture(Chart("what one more member costs", "members before it joins", unit, lines, [n - 1 for n in SIZES]))


def measured(record: CommandRecord) -> str:
    """When the runs of a command were made, on how busy a machine, and how they went."""
    made = date.fromisoformat(record.date)
    verdicts = [verdict for case in record.cases for verdict in case.verdicts]
    others = sum(verdict != VerdictOutcome.EXPECTED for verdict in verdicts)
    went = f"all {len(verdicts)} runs" if not others else f"all but {others} of {len(verdicts)} runs"
    low, high = record.load
    return (
        f"*`{record.command}`, {made.day} {made:%B %Y}, load {low:.0f} to {high:.0f}; {went} went as the model says.*"
    )


def versions(records: Records) -> str:
    """What the runs were made with."""
    made = ((record.versions, record.machine["cores"]) for record in records.values())
    distinct = dict.fromkeys(
        f"commit `{of['commit']}` on Python {of['python']} and {cores} cores" for of, cores in made
    )
    return f"The runs are of {', or of '.join(distinct)}, with other work beside."


def lost(records: Records) -> str:
    """The sentence about lost records."""
    cases = [case for record in records.values() for case in record.cases]
    assert not any(sum(filter(None, case.figures["lost"])) for case in cases)
    return f"No record was lost in any of {sum(len(case.seeds) for case in cases)} runs."


def places(records: Records, page: Path) -> dict[str, str]:
    """The contents of a page's places, by name."""
    tables = {place: table(records, place) for place, each in TABLES.items() if each.page == page}
    if page == SIDE_BY_SIDE:
        return tables
    notes = {f"measured-{name}": measured(record) for name, record in records.items()}
    return {"herd": herd(records), "lost": lost(records), "versions": versions(records), **tables, **notes}


def files() -> dict[Path, str]:
    """The pages with their tables, and the picture of the herd."""
    records = read_records()
    pages = {page: filled(page, places(records, page)) for page in (PAGE, SIDE_BY_SIDE)}
    return {FIGURES / "herd.svg": herd_picture(records), **pages}
