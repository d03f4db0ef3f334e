"""A result on the terminal in a screenful: which design kept what, at what price, and what is not in order.

What is in order is counted, what is not is named, and what does not fit is counted again; everything is in
`comparison.report.terminal`, and in the report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.padding import Padding
from rich.text import Text

from comparison.report.summaries.figures import MARKS, circumstances, ending, number, unseen
from comparison.report.summaries.glance import seconds
from comparison.report.summaries.repeats import columns_of
from comparison.report.summaries.two_verdicts import BAD, CLASSES, MODEL, PROMISES, STYLES, promised
from comparison.results.outcomes import VerdictOutcome
from comparison.results.outcomes import worst as worst_verdict
from comparison.results.promised import PROMISES as ALL_PROMISES
from comparison.results.promises import PromiseOutcome, by_design, numbered, over, title
from comparison.results.wording import listed
from comparison.screen.counted import counted
from comparison.screen.text_table import Column, TextTable, trimmed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from rich.console import Console, RenderableType

    from comparison.results.promises import Outcome
    from comparison.results.result import Result
    from comparison.results.run import Run

#: Lines in 80 columns; a command adds the path of the report, and how to repeat it, on standard error.
LINES_MAX = 28
#: Lines of the table of designs without its rows: two of headings, a rule, and an empty one above and below.
_FRAME = 5
#: Of what was seen, in characters: two lines.
_REASON_MAX = 110
#: How many scenarios, or designs, are named; of more, the number.
_NAMED_MAX = 2


class _Price(NamedTuple):
    """A figure of a run, and how those of several scenarios make one."""

    name: str
    heading: str
    words: str  #: what the figure is called in a line
    together: Callable[[Iterable[float]], float]


_SETTLED = "converge_ms"
#: The price of a design.
_PRICES = (
    _Price(_SETTLED, "settled\nafter, s", "settled", max),
    _Price("standstill_s", "stood\nstill, s", "stood still", max),
    _Price("stopped", "partitions\nstopped", "stopped", sum),
    _Price("duplicates", "delivered\nagain", "delivered again", sum),
)
#: The heading of how long it took to settle, where faults ended in one of the scenarios.
_HEALED = "settled, s\nafter heal"


def render_brief(result: Result, console: Console) -> str:
    """What the console shows of a result first: at most LINES_MAX lines, where it is 80 columns wide."""
    head = _lines(console, Text(title(result), style="bold"), *_circumstances(result))
    table, left_out = _fitting(result, console.width)
    head += _lines(console, table)
    head += _lines(console, *_of_prices(result), *_not_shown(left_out))
    last = _lines(console, _more(result))
    room = LINES_MAX - len(head) - len(last)
    wrong = [_lines(console, each) for each in _not_in_order(result)]
    broken = [_lines(console, each) for each in _broken(result)]
    # What the model did not foresee comes first: it may be a fault of ours.
    kept_free = min(sum(map(len, broken)) + bool(broken), room // 2)
    first = _section("not as the model says, or unknown:", wrong, room - kept_free)
    second = _section("broken promises:", broken, room - len(first))
    between = [""] * (head[-1] != "" and len(head) + len(first) + len(second) + len(last) < LINES_MAX)
    return "".join(f"{line}\n" for line in (*head, *between, *first, *second, *last))


def _lines(console: Console, *parts: RenderableType) -> list[str]:
    return trimmed(console, *parts).splitlines()


def _section(heading: str, entries: Sequence[Sequence[str]], room: int) -> list[str]:
    """As many entries as there is room for, at least one of them; of the others, how many there are."""
    if not entries:
        return []
    lines = [heading]
    for place, entry in enumerate(entries):
        left = len(entries) - place
        if place and len(lines) + len(entry) + (left > 1) > room:
            return [*lines, f"  and {left} more"]
        lines += entry
    return lines


def _circumstances(result: Result) -> list[Text]:
    """Those of a single scenario."""
    if len(result.scenarios) > 1:
        return []
    return [Text(circumstances(columns_of(result.scenarios[0], result)), style="dim")]


# -- each design -------------------------------------------------------------------------------------------------------


def _fitting(result: Result, width: int) -> tuple[TextTable, Sequence[_Price]]:
    """The table of designs with as many prices as fit beside the verdicts, and the others, left to --details."""
    designs = len({run.design for run in result.runs})
    for count in range(len(_PRICES), 0, -1):
        table = _designs(result, _PRICES[:count])
        if len(table.lines(width)) <= designs + _FRAME:
            return table, _PRICES[count:]
    return _designs(result, ()), _PRICES


def _not_shown(prices: Sequence[_Price]) -> list[Text]:
    names = ", ".join(price.words for price in prices)
    return [Text(f"(not shown at this width: {names})", style="dim")] if prices else []


def _designs(result: Result, chosen: Sequence[_Price]) -> TextTable:
    """Both verdicts on each design, and its price in the scenarios that all designs have run."""
    runs: dict[str, list[Run]] = {}
    for run in result.runs:
        runs.setdefault(run.design, []).append(run)
    scenarios = _shared(result, len(runs))
    columns = [Column(heading=heading) for heading in (MODEL.replace("the ", "the\n"), PROMISES)]
    headings = [_HEALED if price.name == _SETTLED and _heals(result) else price.heading for price in chosen]
    prices = [Column(heading=heading, is_right=True) for heading in headings] if scenarios else []
    table = TextTable([Column(heading="design", is_label=True), *columns, *prices], gaps=(2, 1), is_framed=True)
    for design, made in runs.items():
        figures = [next(run for run in each if run.design == design) for each in scenarios]
        cells = [_total(figures, price) for price in chosen] if scenarios else []
        table.add(design, _model(made), _promises(over(made)), *cells)
    return table


def _of_prices(result: Result) -> list[Text]:
    """Which scenarios make the prices, if there are several."""
    if (several := len(result.scenarios)) == 1:
        return []
    shared = len(_shared(result, len({run.design for run in result.runs})))
    every = "both" if several == 2 else f"all {several}"
    of = f"{every} scenarios" if shared == several else f"the {counted(shared, 'scenario')} run in all designs"
    since = " (without a heal: since the change)" if _heals(result) else ""
    said = f"worst times{since} and summed counts of {of}" if shared else "no scenario was run in all designs"
    clock = "simulated; " if any(run.parameters.get("simulated") for run in result.runs) else ""
    return [Text(f"{clock}{said}", style="dim")]


def _more(result: Result) -> Text:
    left = len(result.not_applicable)
    why = f", and why {left} {'combinations do' if left > 1 else 'combination does'} not apply" if left else ""
    return Text(f"--details: every change, figure and check{why}", style="dim")


def _shared(result: Result, designs: int) -> list[list[Run]]:
    """The runs of each scenario that all designs have run, one a design."""
    columns = (columns_of(scenario, result) for scenario in result.scenarios)
    return [runs for runs in columns if len({run.design for run in runs}) == designs]


def _model(runs: Sequence[Run]) -> Text:
    verdict = worst_verdict(run.verdict for run in runs)
    expected = sum(run.verdict == VerdictOutcome.EXPECTED for run in runs)
    if len(runs) == 1:
        words = {VerdictOutcome.EXPECTED: "yes", VerdictOutcome.NOT_EXPECTED: "no"}.get(verdict, "unknown")
    else:
        words = f"all {expected}" if expected == len(runs) else f"{expected} of {len(runs)}"
    return Text(f"{MARKS[verdict]} {words}", style=STYLES[CLASSES[verdict]])


def _promises(outcomes: Sequence[Outcome]) -> Text:
    found = promised(outcomes)
    return Text(f"{found.mark} {found.text}", style=STYLES[found.class_])


def _heals(result: Result) -> bool:
    return any(run.metrics.get("converge_healed_ms") is not None for run in result.runs)


def _total(runs: Sequence[Run], price: _Price) -> str:
    """A figure over several scenarios; `≥` where some of them do not have it."""
    known = [(run, value) for run in runs if (value := _value(run, price.name)) is not None]
    if not known:
        return number(None)
    at_least = "≥" if len(known) < len(runs) else ""
    total = price.together(value for _, value in known)
    if price.name == "standstill_s" and not total:
        return at_least + unseen(max((run for run, _ in known), key=lambda run: run.duration_s))
    return f"{at_least}{number(total) if price.together is sum else seconds(total)}"


def _value(run: Run, name: str) -> float | None:
    """Times in seconds; until a group settled, from the end of a fault on if there was one, as in the report."""
    if name != _SETTLED:
        return run.metrics.get(name)
    settled_ms = run.metrics.get("converge_healed_ms")
    if settled_ms is None:
        settled_ms = run.metrics.get(name)
    return None if settled_ms is None else settled_ms / 1000


# -- what is not in order ----------------------------------------------------------------------------------------------


def _not_in_order(result: Result) -> list[RenderableType]:
    """What did not go as the model says, and what is unknown: the same of several runs together."""
    together: dict[tuple[VerdictOutcome, str], list[tuple[Run, str]]] = {}
    for run in result.runs:
        for outcome, check, reason in _of_run(run):
            together.setdefault((outcome, check), []).append((run, reason))
    order = [VerdictOutcome.NOT_EXPECTED, VerdictOutcome.UNKNOWN]
    worst_first = sorted(together.items(), key=lambda each: order.index(each[0][0]))
    return [_indented(MARKS[outcome], CLASSES[outcome], _entry(check, of)) for (outcome, check), of in worst_first]


def _of_run(run: Run) -> Iterator[tuple[VerdictOutcome, str, str]]:
    """Outcome, check and reason; what a run leaves open that was cut short, or has a damaged trace, is said once."""
    cut = ending(run) or "".join(run.problems[:1])
    if cut or not run.verdicts:
        yield VerdictOutcome.UNKNOWN, "", cut or "no check judges this run"
    for verdict in run.verdicts:
        if verdict.outcome == VerdictOutcome.NOT_EXPECTED or (verdict.outcome == VerdictOutcome.UNKNOWN and not cut):
            yield verdict.outcome, verdict.check, verdict.reason


def _entry(check: str, places: Sequence[tuple[Run, str]]) -> str:
    """`counts: herd in zookeeper and 2 more: 112 reads instead of 111`."""
    run, reason = places[0]
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    return f"{f'{check}: ' if check else ''}{run.scenario} in {run.design}{more}: {_short(reason)}"


def _short(reason: str) -> str:
    return reason if len(reason) <= _REASON_MAX else f"{reason[: _REASON_MAX - 1].rstrip()}…"


def _broken(result: Result) -> list[RenderableType]:
    """Each promise that was broken: by whom, and where; in a single scenario, what shows it."""
    found = {scenario.scenario: by_design(scenario, result) for scenario in result.scenarios}
    of_all = {run.design for run in result.runs}
    entries: list[RenderableType] = []
    for place, promise in enumerate(ALL_PROMISES):
        where: dict[str, dict[str, str]] = {}
        for scenario, designs in found.items():
            for design, outcomes in designs.items():
                if outcomes[place].outcome is PromiseOutcome.BROKEN:
                    where.setdefault(design, {})[scenario] = outcomes[place].shown
        if where:
            by = _by(where, of_all) if len(found) > 1 else _with_figures(where)
            entries.append(_indented(MARKS[VerdictOutcome.NOT_EXPECTED], BAD, f"{promise.name}: {by}"))
    return entries


def _by(where: Mapping[str, Mapping[str, str]], designs: Collection[str]) -> str:
    """`zookeeper and server in pause`, or `zookeeper in 11 scenarios, server 3, the others 1`."""
    scenarios = {tuple(shown) for shown in where.values()}
    if len(scenarios) == 1 and len(named := scenarios.pop()) <= _NAMED_MAX:
        return f"{'all designs' if len(where) == len(designs) > 1 else listed(list(where))} in {listed(named)}"
    by_number: dict[int, list[str]] = {}
    for design in sorted(where, key=lambda each: -len(where[each])):
        by_number.setdefault(len(where[design]), []).append(design)
    (most, first), *less = by_number.items()
    begin = f"{listed(first)} in {counted(most, 'scenario')}"
    return ", ".join([begin, *numbered(less, is_all=len(where) == len(designs))])


def _with_figures(where: Mapping[str, Mapping[str, str]]) -> str:
    """`zookeeper (offsets moved back: 3)`."""
    designs: dict[str, list[str]] = {}
    for design, shown in where.items():
        designs.setdefault(_short("; ".join(shown.values())), []).append(design)
    return ", ".join(f"{listed(by)} ({shown})" for shown, by in designs.items())


def _indented(mark: str, class_: str, text: str) -> RenderableType:
    return Padding(Text.assemble((f"{mark} ", STYLES[class_]), text), (0, 0, 0, 2))
