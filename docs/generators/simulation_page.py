"""Fill the places of `docs/simulation.md` in which simulated runs stand beside live ones, from `docs/simulation.json`.

`docs.generators.simulation_records` makes that file, and `docs.generators.original_records` its part about originals. A
difference is a count that all live runs have in common and a
simulated one has not, counts whose ranges do not meet, or times whose intervals do not; each has its explanation here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.results.outcomes import VerdictOutcome
from comparison.scenarios.plan.catalogue import CATALOGUE
from docs.generators.pages import DOCS, filled, markdown_table
from docs.generators.result_records import read_records as read_results
from docs.generators.simulation_records import read_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from docs.generators.simulation_records import CaseRecord, OriginalRecord, Records

PAGE = DOCS / "simulation.md"
SETTLED = "settled"

#: Why a figure of simulated runs is another one: by scenario, design and figure.
_COMPUTING = (
    "The same timers pass, and between them live members and brokers waited longer for the processor of a busy machine "
    "than the simulated cost."
)
_IDS = (
    "Which partitions move depends on the order of the members' ids, in which the milliseconds of their starts stand."
)
_CONFLICT = (
    "In one simulated run a claim failed that another member still held, and was tried again after a backoff. "
    "Live runs of larger groups show that as well, and so does one of the original consumer."
)
_PHASE = (
    "Where the crash falls between two heartbeats decides: the session of 3 s counts from the last one of the killed "
    "member, and the others hear of its end with their next ones, so that it takes from 2 to 4 s, and the rebalance."
)
EXPLANATIONS: Mapping[tuple[str, str, str], str] = {
    ("crash", "cooperative", SETTLED): _PHASE,
    ("pause", "zookeeper", "moved"): _IDS,
    **{("pause", design, SETTLED): _COMPUTING for design in ("cooperative", "consumer")},
    ("join", "zookeeper", "reads"): _CONFLICT,
    ("join", "zookeeper", "writes"): _CONFLICT,
    ("leave", "zookeeper", "moved"): _IDS,
}


class Difference(NamedTuple):
    """A figure of which simulated runs say something else than live ones."""

    scenario: str
    design: str
    figure: str


def pairs(records: Records) -> Iterator[tuple[CaseRecord, CaseRecord]]:
    """Live and simulated runs of the same case."""
    simulated = {(case.scenario, case.design): case for case in records.simulated}
    for live in records.live:
        if (live.scenario, live.design) in simulated:
            yield live, simulated[live.scenario, live.design]


def differences(records: Records) -> list[Difference]:
    """All of them, in the order of the table."""
    found = []
    for live, simulated in pairs(records):
        names = dict.fromkeys((*live.counts, *simulated.counts))
        figures = [name for name in names if _differs(*_values(live, simulated, name))]
        if not _meet([*live.settled_ms, *repeated_ms(live)], simulated.settled_ms):
            figures.append(SETTLED)
        found += [Difference(live.scenario, live.design, figure) for figure in figures]
    return found


def repeated_ms(case: CaseRecord) -> list[int]:
    """When the case had settled in the runs of `docs/results.json`."""
    return [
        round(settled_ms)
        for record in read_results().values()
        for each in record.cases
        if (each.scenario, each.design) == (case.scenario, case.design)
        for settled_ms in each.figures.get(f"{case.scenario}: converge_ms", [])
        if settled_ms is not None
    ]


def _values(live: CaseRecord, simulated: CaseRecord, name: str) -> tuple[Sequence[int], Sequence[int]]:
    return live.counts.get(name, [0]), simulated.counts.get(name, [0])


def _differs(live: Sequence[int], simulated: Sequence[int]) -> bool:
    return set(simulated) != set(live) if len(set(live)) == 1 else not _meet(live, simulated)


def _meet(one: Sequence[int], other: Sequence[int]) -> bool:
    return max(min(one), min(other)) <= min(max(one), max(other))


def beside(records: Records) -> str:
    """The table of figures, with the explanations below it."""
    reasons = list(dict.fromkeys(EXPLANATIONS.get(tuple(each), "") for each in differences(records)))
    numbers = {each: 1 + reasons.index(EXPLANATIONS.get(tuple(each), "")) for each in differences(records)}
    originals = {(each.scenario, each.design): each for each in records.originals}
    rows = [
        _row(originals.get((live.scenario, live.design)), live, simulated, numbers)
        for live, simulated in pairs(records)
    ]
    sides = "originals / live / simulated"
    table = markdown_table(("scenario", "design", "the same in all runs", sides, f"settled, s: {sides}"), rows)
    why = [f"{number}. {text}" for number, text in enumerate(reasons, 1)]
    return "\n\n".join([table, "\n".join(why)]) if why else table


def _row(
    original: OriginalRecord | None, live: CaseRecord, simulated: CaseRecord, numbers: Mapping[Difference, int]
) -> tuple[str, ...]:
    same, others = [], []
    for name in dict.fromkeys((*live.counts, *simulated.counts)):
        of_live, of_simulated = _values(live, simulated, name)
        each = (original.counts.get(name) if original else None, of_live, of_simulated)
        if len({value for some in each for value in some or ()}) == 1:
            is_predicted = set(live.predicted.get(name, [])) == set(of_live)
            same.append(f"{name} {of_live[0]}{' (=)' if is_predicted else ''}")
        else:
            others.append(f"{name} {_in_turn(each)}{_mark(numbers, live, name)}")
    times_ms = (original.settled_ms if original else None, [*live.settled_ms, *repeated_ms(live)], simulated.settled_ms)
    times_s = [some and [ms / 1000 for ms in some] for some in times_ms]
    settled = f"{_in_turn(times_s, '.2f')}{_mark(numbers, live, SETTLED)}"
    return f"`{live.scenario}`", f"`{live.design}`", ", ".join(same), ", ".join(others), settled


def _mark(numbers: Mapping[Difference, int], case: CaseRecord, figure: str) -> str:
    number = numbers.get(Difference(case.scenario, case.design, figure))
    return f" [{number}]" if number else ""


def _interval(values: Sequence[float], form: str = "d") -> str:
    low, high = (format(each, form) for each in (min(values), max(values)))
    return low if low == high else f"{low}–{high}"


def originals(records: Records) -> str:
    """Who the originals of each design are."""
    designs: dict[str, dict[str, None]] = {}
    for each in records.originals:
        designs.setdefault(each.of, {})[f"`{each.design}`"] = None
    return "\n".join(f"- {', '.join(named)}: {of}" for of, named in designs.items())


def apart(records: Records) -> list[Difference]:
    """Counts of which originals say something else than live or simulated runs."""
    ours = {(live.scenario, live.design): (live, simulated) for live, simulated in pairs(records)}
    return [
        Difference(each.scenario, each.design, name)
        for each in records.originals
        for name, values in each.counts.items()
        if not all(_meet(values, some) for some in _values(*ours[each.scenario, each.design], name))
    ]


def _in_turn(several: Sequence[Sequence[float] | None], form: str = "d") -> str:
    """The intervals of all sides; a dash for one that has not been counted."""
    return " / ".join("–" if each is None else _interval(each, form) for each in several)


def verdicts(records: Records) -> str:
    """How many simulated runs were as expected, and which were not."""
    every = [(name, *each) for name in CATALOGUE for each in records.verdicts.get(name, {}).items()]
    others = [f"`{name}` in `{design}`: {found}" for name, design, found in every if found != VerdictOutcome.EXPECTED]
    designs = {design for _, design, _ in every}
    went = f"all but {len(others)} went as expected ({'; '.join(others)})" if others else "all went as expected"
    return f"Of {len(every)} runs of {len(records.verdicts)} scenarios in {len(designs)} designs {went}."


def files() -> dict[Path, str]:
    records = read_records()
    places = {"beside-live": beside(records), "originals": originals(records), "verdicts": verdicts(records)}
    return {PAGE: filled(PAGE, places)}
