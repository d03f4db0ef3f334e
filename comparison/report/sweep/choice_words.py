"""The words of a choice, for the terminal and the page alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.choosing.choice import EVENTS
from comparison.report.summaries.figures import MARKS, SIMULATED
from comparison.results.outcomes import VerdictOutcome
from comparison.screen.brief_number import brief, brief_range
from comparison.screen.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.choosing.answer import Choice
    from comparison.choosing.choice import DesignCosts, Event, Figure

CANNOT_SAY = "cannot say"
IN_A_CLIENT = "In a client (docs/which-design.md says which of them and which brokers have it)"
#: How outcomes are coloured on a page.
CLASSES = {VerdictOutcome.EXPECTED: "good", VerdictOutcome.UNKNOWN: "doubt", VerdictOutcome.NOT_EXPECTED: "bad"}
#: Of what is tolerated.
_OUTCOMES = {True: VerdictOutcome.EXPECTED, None: VerdictOutcome.UNKNOWN, False: VerdictOutcome.NOT_EXPECTED}
_MEETS = {True: "meets", None: "perhaps", False: "misses"}


def outcome_of(design: DesignCosts) -> VerdictOutcome:
    return _OUTCOMES[design.meets]


def meets_text(design: DesignCosts) -> str:
    """Whether a design meets what is tolerated, with a mark."""
    return f"{MARKS[outcome_of(design)]} {_MEETS[design.meets]}"


def is_judged(choice: Choice) -> bool:
    return choice.tolerated.repeats is not None or choice.tolerated.standstill_s is not None


def figure_texts(figure: Figure) -> tuple[str, str]:
    """A figure's middle, and its range; or that nobody can say."""
    if figure.bounds is None:
        return CANNOT_SAY, ""
    low, middle, high = figure.bounds.low, figure.bounds.middle, figure.bounds.high
    return brief(middle), "" if brief(low) == brief(high) else brief_range(low, high)


def runs_text(design: DesignCosts) -> str:
    """The runs behind the design's figures."""
    found = sorted({figure.runs for figure in design.figures.values() if figure.bounds is not None})
    return " or ".join(map(str, found)) or "0"


def question(choice: Choice) -> str:
    """What was asked, in a sentence."""
    group, tolerated = choice.group, choice.tolerated
    happened = [(choice.events[each.name], each) for each in EVENTS if each.name in choice.events]
    events = ", ".join(f"{brief(count)} {_named(count, each)}" for count, each in happened) or "nothing"
    slow = ""
    if any(not each.scenarios and each.name in choice.events for each in EVENTS):
        slow = f", slowest record {group.slowest_record_s:g} s"
    bounds = []
    if tolerated.repeats is not None:
        bounds.append(f"{brief(tolerated.repeats)} records repeated")
    if tolerated.standstill_s is not None:
        bounds.append(f"a standstill of {tolerated.standstill_s:g} s")
    return (
        f"A week of {counted(group.members, 'member')} with {counted(group.partitions, 'partition')} and "
        f"{group.rate:g} records/s{slow}: {events}. Tolerated: {' and '.join(bounds) or 'anything'}."
    )


def source_text(choice: Choice) -> str:
    """Where the figures come from."""
    source = choice.source
    seeds = ", ".join(map(str, source.seeds))
    *fewer, most = source.runs_of_each
    each = " or ".join([*map(str, fewer), counted(most, "run")])
    made_with = (
        f"{each} of each scenario, design and size, with {'seed' if len(source.seeds) == 1 else 'seeds'} {seeds}"
    )
    how = SIMULATED if source.simulated else "live"
    made = f", made {source.made}" if source.made else ""
    version = source.versions.get("rebalance-lab")
    by = f" by rebalance-lab {version}" if version else ""
    return f"Runs: {how}; {made_with}{made}{by}: {' '.join(source.command)}"


def cells_texts(choice: Choice) -> list[str]:
    """Which runs the figures are of, by scenario and size; designs with the same ones together."""
    by_text: dict[str, list[str]] = {}
    for design in choice.designs:
        sizes: dict[tuple[str, str], list[str]] = {}
        cells = dict.fromkeys(cell for figure in design.figures.values() for cell in figure.cells)
        for scenario in dict.fromkeys(cell.scenario for cell in cells):
            of_it = [cell for cell in cells if cell.scenario == scenario]
            size = _either(cell.members for cell in of_it), _either(cell.partitions for cell in of_it)
            sizes.setdefault(size, []).append(scenario)
        for (members, partitions), scenarios in sizes.items():
            text = f"figures from {', '.join(scenarios)} with {members} members and {partitions} partitions"
            by_text.setdefault(text, []).append(design.design)
    return _by_design(by_text, choice)


def _either(numbers: Iterable[int]) -> str:
    return " or ".join(map(str, sorted(set(numbers))))


def reasons(choice: Choice) -> list[str]:
    """Why a design does not meet what is tolerated, or nobody can say; designs with the same reason together."""
    by_text: dict[str, list[str]] = {}
    for design in choice.designs:
        if design.because:
            by_text.setdefault(design.because, []).append(design.design)
        for why in dict.fromkeys(figure.why for figure in design.figures.values() if figure.why):
            by_text.setdefault(f"{CANNOT_SAY}: {why}", []).append(design.design)
    return _by_design(by_text, choice)


def _by_design(by_text: Mapping[str, Sequence[str]], choice: Choice) -> list[str]:
    everybody = len(choice.designs)
    return [f"{'all' if len(names) == everybody else ', '.join(names)}: {text}" for text, names in by_text.items()]


def _named(count: float, event: Event) -> str:
    return event.noun if count == 1 else event.name.replace("-", " ")
