"""Which figures both reports show, in which order, under which labels, and how numbers are formatted."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from comparison.report.summaries.repeats import ChangeOfRepeats, RunOfRepeats, seeds_of
from comparison.results.causes import interval_ns
from comparison.results.keys import COMPLETE, DELIVERING, RESTART, SIZING
from comparison.results.meanings import Compares
from comparison.results.metrics import CHANGE_METRICS, METRICS, REPEATS_MIN
from comparison.results.outcomes import Kind, VerdictOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from comparison.results.result import Result
    from comparison.results.run import Bystander, Change, Counted, Overlap, Run

T = TypeVar("T")

NOT_APPLICABLE = "not applicable"
#: What the figures of a run are of, as `Metric.of` says one by one.
OF_WHAT = "Counts are of the whole run, what changes cost is of the measured stretch."
MARKS = {
    VerdictOutcome.EXPECTED: "+",
    VerdictOutcome.UNKNOWN: "?",
    VerdictOutcome.NOT_EXPECTED: "!",
    NOT_APPLICABLE: "-",
}
KINDS = {Kind.PROMISE: "promise", Kind.HISTORY: "history", Kind.MODEL: "count"}

#: What a page and a terminal say of simulated runs.
SIMULATED = "simulated: virtual time, a modelled network and a modelled ZooKeeper"
#: Changes whose cost is already in the table of figures.
_WHOLE_RUN = ("mass-start",)
#: Columns of a change's row in addition to its exact counts, by the names of their figures.
CHANGE_COLUMNS = {name: metric.heading for name, metric in CHANGE_METRICS.items() if metric.heading}


class SumTable(NamedTuple):
    """What changes cost: several of a design or an assignment strategy together, or what one was made of."""

    title: str
    first: str  #: the heading of the rows' names
    headings: Sequence[tuple[str, str]]  #: short and long, in the order of the cells
    rows: Sequence[tuple[str, list[str]]]


def circumstances(runs: Sequence[Run]) -> str:
    """The settings that all of them shared."""
    parameters = {
        name: value
        for name, value in runs[0].parameters.items()
        if all(run.parameters.get(name) == value for run in runs)
    }
    named = [
        f"{parameters[name]} {name.removesuffix('s') if parameters[name] == 1 else name}"
        for name in ("members", "partitions", "brokers")
        if parameters.get(name) is not None
    ]
    seeds = sorted({seed for run in runs for seed in seeds_of(run)})
    repeats = max(len(seeds_of(run)) for run in runs)
    repeated = [f"{repeats} repeats"] if repeats > 1 else []
    rate = [f"{parameters['rate']:g} records/s"] if "rate" in parameters else []
    preset = [str(parameters["preset"])] if "preset" in parameters else []
    if parameters.get("session_timeout_ms"):
        preset.append(f"sessions of {parameters['session_timeout_ms']} ms")
    simulated = ["simulated"] if parameters.get("simulated") else []
    if parameters.get("links"):
        simulated.append(f"links {parameters['links']}")
    return ", ".join([*simulated, *named, *rate, *preset, *repeated, f"seed {_ranges(seeds)}"])


def _ranges(seeds: Sequence[int]) -> str:
    """`1, 2`, or `1-10` for a longer sequence."""
    in_a_row = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[0] + len(seeds)))
    return f"{seeds[0]}-{seeds[-1]}" if in_a_row else ", ".join(map(str, seeds))


def warnings_of(runs: Sequence[Run]) -> list[str]:
    """The warnings about these runs' settings, each once."""
    return list(dict.fromkeys(str(warning) for run in runs for warning in run.parameters.get("warnings", [])))


def metric_rows(runs: Sequence[Run]) -> Iterator[tuple[str, list[float | None]]]:
    """The name and values by design of each metric worth showing."""
    for name, metric in METRICS.items():
        values = [run.metrics.get(name) for run in runs]
        if metric.label and (metric.is_always_shown or any(values)):
            yield name, values


def changes_shown(run: Run) -> list[Change]:
    """The membership changes measured one by one, except growth without exact counts."""
    return [
        change
        for change in run.changes
        if change.members is not None and (change.counted or change.change not in (*SIZING, *_WHOLE_RUN))
    ]


def by_change(runs: Sequence[Run]) -> Iterator[tuple[str, list[tuple[str, Change]]]]:
    """All designs' changes, grouped by name and round, in the order in which they were made."""
    shown = [(run.design, change) for run in runs for change in changes_shown(run)]
    for key in dict.fromkeys((change.change, change.round) for _, change in shown):
        rows = [(design, change) for design, change in shown if (change.change, change.round) == key]
        yield named(rows[0][1]), rows


def named(change: Change | Bystander) -> str:
    """`join to 5`, or `restart 2` for a restart."""
    if change.change == RESTART:
        return f"restart {change.round}"
    return f"{change.change} to {change.members}"


def ending(run: Run) -> str:
    """How an incomplete run ended, with its error; '' for a complete one."""
    if run.outcome == COMPLETE:
        return ""
    ends = {"failed": "the run failed", "interrupted": "the run was interrupted"}
    error = f": {run.error}" if run.error else ""
    return ends.get(run.outcome, "the run was cut short") + error


def evidence(overlap: Overlap) -> str:
    """The first overlap, in words."""
    doing = "delivered" if overlap.view == DELIVERING else "claimed"
    owners = " and ".join(owner.partition("/")[0] for owner in overlap.owners)
    return (
        f"first overlap: {owners} {doing} {overlap.topic}-{overlap.partition}, "
        f"{overlap.from_ms:.0f}-{overlap.until_ms:.0f} ms"
    )


def inapplicable(result: Result) -> dict[tuple[str, str], str]:
    """Why a scenario was not run under a design, by (scenario, design)."""
    return {(each.scenario, each.design): each.reason for each in result.not_applicable}


def all_known(values: Iterable[T | None]) -> list[T] | None:
    """The values; None if one of them is not known."""
    found: list[T] = []
    for value in values:
        if value is None:
            return None
        found.append(value)
    return found


def number(value: float | None, *, whole: bool = False) -> str:
    """Format a number briefly, the same way everywhere; None is a dash."""
    if value is None:
        return "-"
    if value == int(value) or whole or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.1f}"


def figure(run: Run, name: str) -> str:
    """A figure of a run; where no standstill was seen, below which length none is."""
    value = run.metrics.get(name)
    return unseen(run) if name == "standstill_s" and value == 0 else number(value)


def unseen(run: Run) -> str:
    """The longest standstill of a run in which none was seen, in seconds: `<0.1`."""
    return f"<{interval_ns(round(run.duration_s * 1e9)) / 1e9:g}"


def spread_of(shown: Run | Change, name: str, *, whole: bool = False) -> str:
    """A figure's range over the repeats, as `310-1,204`; '' if it has none."""
    spread = shown.spreads.get(name) if isinstance(shown, RunOfRepeats | ChangeOfRepeats) else None
    if spread is None or spread.low == spread.high:
        return ""
    return f"{number(spread.low, whole=whole)}-{number(spread.high, whole=whole)}"


def counted_noun(count: Counted) -> str:
    """A count with its noun, which is given in the plural."""
    return f"{number(count.measured)} {count.what.removesuffix('s') if count.measured == 1 else count.what}"


def ratio(name: str, run: Run, base: Run) -> str:
    """A figure as a multiple of the base's; '' where that does not compare the designs."""
    value, other = run.metrics.get(name), base.metrics.get(name)
    if value is None or not other or compared(name, (run, base)) is not Compared.AS_MEASURED:
        return ""
    return f"{value / other:.2f}x"


class Compared(Enum):
    """Whether a figure of some runs compares their designs. Where it does not, the values say why."""

    AS_MEASURED = ""
    ONE_DRAW = "one run of each design is one draw"
    OTHER_TIMERS = "the designs had different timers"
    OTHER_LENGTH = "a total of runs of different length"


def compared(name: str, runs: Sequence[Run]) -> Compared:
    """Counts that follow from the change compare as they are. Times, and what depends on the phase at which a change
    came, are one random draw each: they compare as medians of several repeats under the same timers. Totals of runs of
    different length do not compare.
    """
    match METRICS[name].compares:
        case Compares.ALWAYS:
            return Compared.AS_MEASURED
        case Compares.NEVER:
            return Compared.OTHER_LENGTH
        case Compares.AS_MEDIAN if len({_timers(run) for run in runs}) > 1:
            return Compared.OTHER_TIMERS
        case Compares.AS_MEDIAN:
            is_repeated = min((len(seeds_of(run)) for run in runs), default=0) >= REPEATS_MIN
            return Compared.AS_MEASURED if is_repeated else Compared.ONE_DRAW


def _timers(run: Run) -> tuple[object, object]:
    """How long the group waits for a silent member, and for a slow one."""
    timers = run.parameters.get("timers", {})
    return timers.get("session_ms"), timers.get("max_poll_ms")
