"""The report as one HTML file: what was found, what was done, who owned what, and every figure in a table.

Beside the result it shows the values that were read from the analysis's tables (`comparison.report.view`). The file
loads nothing, says everything without its script, and runs no script but its own. This module decides what is shown;
the templates say how, and escape every text, because a trace may contain anything.

To add a chart: read what it draws in `view`, draw it in `drawing` as a `Block`, put it below the lanes in `sections`.
To add to the script: a plain file in `script`, named in SCRIPTS; all of them together are one function, in that order.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from markupsafe import Markup

from comparison.report.drawing.palette import PALETTE
from comparison.report.drawing.svg import painted, painter
from comparison.report.markup import own_script_only, render
from comparison.report.sections.bystanders import waited
from comparison.report.sections.done import About, as_text, conditions
from comparison.report.sections.evidence import anchor_of
from comparison.report.sections.first import first
from comparison.report.sections.glossary import COUNTED, glossary, of_changes, of_rows
from comparison.report.sections.growth import grown
from comparison.report.sections.lanes import Column, lanes, marks_for
from comparison.report.sections.overview import PRICES, judged
from comparison.report.sections.pairs import worst_and_best
from comparison.report.sections.tables import tables
from comparison.report.summaries.additions import additions
from comparison.report.summaries.figures import (
    CHANGE_COLUMNS,
    KINDS,
    MARKS,
    NOT_APPLICABLE,
    OF_WHAT,
    circumstances,
    inapplicable,
    warnings_of,
)
from comparison.report.summaries.glance import RULE
from comparison.report.summaries.repeats import columns_of
from comparison.report.summaries.two_verdicts import CLASSES
from comparison.results import promises
from comparison.results.outcomes import VerdictOutcome
from comparison.screen.printable import printable_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.report.sections.bystanders import Latencies
    from comparison.report.sections.differences import Differences
    from comparison.report.sections.first import First
    from comparison.report.sections.growth import Grown
    from comparison.report.sections.lanes import Lanes
    from comparison.report.sections.overview import Judged
    from comparison.report.sections.tables import Tables
    from comparison.report.view.model import RunView
    from comparison.results.result import Result, Scenario
    from comparison.results.run import Run

_FOLDER = Path(__file__).parent
#: The parts of the page's script in order. What is declared in one is known in all.
SCRIPTS = (
    "elements",
    "block",
    "pair",
    "lanes",
    "pointer",
    "details",
    "raw",
    "why",
    "sequences",
    "links",
    "keys",
    "tables",
    "start",
)


#: A page with more runs than fit into so many bytes draws fewer stretches of each, not fewer than the least. Below
#: MARKS_FEW most would be joined: rather than that, lanes of two designs of each scenario are drawn instead of all.
BYTES_MAX, MARKS_FEW, MARKS_LEAST = 8_000_000, 150, 20

#: Up to so many scenarios the overview stands before the first table.
OVERVIEW_FIRST_MAX = 8


class _Scenario(NamedTuple):
    """One section of the page."""

    name: str
    anchor: str
    verdict: str
    judged: Mapping[str, Judged]  #: by design
    first: First
    about: Mapping[str, Any]
    circumstances: str
    warnings: list[str]
    lanes: Lanes | None
    without_lanes: str  #: the designs that had no room for them
    growth: Grown | None
    waited: Sequence[Latencies]
    tables: Tables


def page(
    result: Result,
    views: Sequence[RunView | None] | None = None,
    about: About | None = None,
    differences: Differences | None = None,
) -> str:
    """The whole file; `views` are those of the result's runs, and without them no lanes are drawn.

    Of two results side by side (`summaries.side_by_side`), what differs between them stands first.
    """
    about = about or About()
    result = _worst_first(printable_all(result), about)
    about = About(printable_all(about.command), about.catalogue, printable_all(about.others))
    by_path = {run.path: view for run, view in zip(result.runs, views or (), strict=False)}
    shown = [columns_of(scenario, result) for scenario in result.scenarios]
    marks_max, in_pairs = marks_for(sum(map(len, shown))), False
    while True:
        scenarios = [
            _scenario(each, runs, result, by_path, about, marks_max, in_pairs=in_pairs)
            for each, runs in zip(result.scenarios, shown, strict=True)
        ]
        text = _page(result, about, scenarios, differences)
        over = len(text.encode()) / BYTES_MAX - 1
        if over <= 0 or (in_pairs and marks_max <= MARKS_LEAST):
            return text
        # The more is too much, the fewer: bars are a part of a page, about a quarter of one that has many runs.
        marks_max = int(marks_max * min(0.85, max(0.5, 1 - 4 * over)))
        if marks_max < MARKS_FEW and not in_pairs:
            marks_max, in_pairs = marks_for(sum(min(2, len(runs)) for runs in shown)), True


def _worst_first(result: Result, about: About) -> Result:
    """The scenarios in the order of the page: what is not as the model says, then what broke the most promises.

    Those alike are in the order in which the user, or else the catalogue, names them.
    """
    named = [*about.command.get("command", ()), *about.catalogue]

    def place(scenario: Scenario) -> tuple[bool, int, int]:
        outcomes = [each for of in promises.by_design(scenario, result).values() for each in of]
        broken = sum(each.outcome is promises.PromiseOutcome.BROKEN for each in outcomes)
        goes_as_said = scenario.verdict != VerdictOutcome.NOT_EXPECTED
        return goes_as_said, -broken, named.index(scenario.scenario) if scenario.scenario in named else len(named)

    return msgspec.structs.replace(result, scenarios=sorted(result.scenarios, key=place))


def _page(result: Result, about: About, scenarios: Sequence[_Scenario], differences: Differences | None = None) -> str:
    script = _script()
    rows = conditions(result, about)
    return str(
        render(
            "page.html.j2",
            policy=own_script_only(script),
            script=Markup(script),  # ours
            painted=painted,
            **PALETTE,
            classes=CLASSES,
            marks=MARKS,
            legend=", ".join(f"{mark} {outcome}" for outcome, mark in MARKS.items()),
            kinds=KINDS,
            of_what=OF_WHAT,
            not_applicable=NOT_APPLICABLE,
            change_headings=list(CHANGE_COLUMNS.values()),
            glossary=glossary(),
            counted=COUNTED,
            meanings_of_changes=of_changes(),
            meanings_of_rows=of_rows(),
            outcome=result.verdict,
            title=differences.title if differences else _title(result),
            rule=RULE,
            prices=PRICES,
            overview_first_max=OVERVIEW_FIRST_MAX,
            designs=list(dict.fromkeys(run.design for run in result.runs)),
            inapplicable=inapplicable(result),
            conditions=rows,
            conditions_text=as_text(rows),
            scenarios=scenarios,
            differences=differences,
            by_name=defaultdict(lambda: None, {scenario.name: scenario for scenario in scenarios}),
            anchor_of=anchor_of,
        )
    )


def _scenario(
    scenario: Scenario,
    runs: Sequence[Run],
    result: Result,
    views: Mapping[str, RunView | None],
    about: About,
    marks_max: int,
    *,
    in_pairs: bool,
) -> _Scenario:
    name = scenario.scenario
    missing = {design: why for (of, design), why in inapplicable(result).items() if of == name}
    by_design = {run.design: view for run in runs if (view := views.get(run.path)) is not None}
    drawable = [run for run in runs if run.design in by_design]
    seen = (worst_and_best(drawable) or drawable) if in_pairs else drawable
    drawn = {run.design: by_design[run.design] for run in seen}
    return _Scenario(
        name=name,
        anchor=anchor_of(name),
        verdict=scenario.verdict,
        judged=judged(scenario, runs, result, missing),
        first=first(name, runs, by_design, drawn, missing, promises.by_design(scenario, result)),
        about=about.catalogue.get(name, {}),
        circumstances=circumstances(runs),
        warnings=warnings_of(runs),
        lanes=lanes(
            anchor_of(name),
            [
                Column(anchor_of(name, run.design), run.design, view)
                for run, view in zip(seen, drawn.values(), strict=True)
            ],
            marks_max,
            seen,
            additions(runs),
        ),
        without_lanes=", ".join(run.design for run in drawable if run.design not in drawn),
        growth=grown(name, result),
        waited=waited(runs),
        tables=tables(runs, promises.by_design(scenario, result)),
    )


def _title(result: Result) -> str:
    said = promises.title(result)
    return said[:1].upper() + said[1:]


@cache
def _script() -> str:
    parts = [painter().replace("export ", "")]
    parts += [(_FOLDER / "script" / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS]
    return "\n".join(["'use strict';", "(() => {", *parts, "})();", ""])
