"""The catalogue in words: a scenario, and all of them for reports."""

from __future__ import annotations

import shlex
import textwrap
from typing import TYPE_CHECKING, Any

from comparison.pipeline.figures.deciding import EVIDENCE
from comparison.pipeline.figures.unpromised import UNPROMISED
from comparison.pipeline.figures.verdicts import CHECKS
from comparison.scenarios.plan.catalogue import CATALOGUE, judged_by
from comparison.scenarios.plan.played import PLAYGROUND
from comparison.scenarios.plan.wording import for_readers, in_words
from comparison.screen.counted import counted
from kernel.designs import DESIGN_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comparison.pipeline.figures.verdicts import Check
    from comparison.scenarios.plan.scenario import Scenario


#: Of a terminal.
WIDTH = 80


def scenario_text(scenario: Scenario, given: str) -> str:
    """A scenario: its symptom, its steps, and what is expected of each design; `given` is its name, or its file."""
    lines = [*wrapped(f"{scenario.name}: {scenario.symptom}"), "", "What to look for:"]
    for each in scenario.look_for:
        lines += wrapped(each, "  - ")
    lines += ["", "Steps:"]
    for step in scenario.steps:
        lines += wrapped(in_words(step), "  - ")
    if scenario.settings:
        pairs = ", ".join(f"{name}={value}" for name, value in scenario.settings.items())
        lines += ["", *wrapped(f"Settings: {pairs}")]
    lines += ["", *wrapped(f"Unless options say otherwise: {_defaults(scenario)}.")]
    for why in dict.fromkeys(scenario.not_applicable.values()):
        designs = [design for design, each in scenario.not_applicable.items() if each == why]
        lines += ["", *wrapped(f"Not for {', '.join(designs)}: {why}.")]
    lines += ["", *_expectations(scenario)]
    if scenario.references:
        lines += ["", *wrapped(f"References: {'; '.join(scenario.references)}")]
    variants = [each.name for each in CATALOGUE.values() if each.variant_of == scenario.name]
    lines += ["", *wrapped(f"Run it: rebalance-lab run {shlex.quote(given)}")]
    if variants:
        lines += wrapped(f"Runs with it: {', '.join(variants)}")
    if scenario.variant_of:
        lines += wrapped(f"It runs with {scenario.variant_of}, of which it is a variant.")
    return "\n".join(lines) + "\n"


def wrapped(text: str, bullet: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet) if bullet else "  ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def _defaults(scenario: Scenario) -> str:
    made = scenario.defaults
    counts = [
        (made.members, "member"),
        (made.partitions, "partition"),
        (made.brokers, "broker"),
        (scenario.zookeeper_servers, "ZooKeeper server"),
    ]
    counts[1:1] = [(made.topics, "topic")] if made.topics > 1 else []
    counts[1:1] = [(made.streams, "stream")] if made.streams > 1 else []
    parts = [counted(count, noun) for count, noun in counts]
    parts += [f"{made.rate} records per second", made.preset, f"about {scenario.budget_s} s"]
    sized = " (the steps say how many members there are)" if scenario.sets_own_sizes else ""
    return ", ".join(parts) + sized


def _expectations(scenario: Scenario) -> list[str]:
    """The rows of the table of verdicts that judge the scenario, and what is not promised, by the designs that each is
    about; with what a row needs to find.
    """
    designs = [design for design in DESIGN_NAMES if design not in scenario.not_applicable]
    by_designs: dict[tuple[str, ...], list[str]] = {}
    for row, judged in (*_judged(scenario, designs), *_unpromised(scenario, designs)):
        by_designs.setdefault(judged, []).extend(row)
    lines = textwrap.wrap(
        "Expected of each design: promises that it keeps, faults that it is known for, and exact counts of the "
        "model. A verdict is unknown if the run lacks what it needs. What is not promised is measured, and not judged; "
        "a report's second verdict is on what users rely on, whichever design promises it.",
        WIDTH,
    )
    for judged in sorted(by_designs, key=lambda judged: (-len(judged), designs.index(judged[0]))):
        heading = "every design" if len(judged) == len(designs) > 1 else _short(judged, designs)
        lines += [*wrapped(f"{heading}:", "  "), *by_designs[judged]]
    return lines


def _judged(scenario: Scenario, designs: Sequence[str]) -> Iterator[tuple[list[str], tuple[str, ...]]]:
    """The lines of each check, and the designs that it judges."""
    settings = {**scenario.settings, **scenario.defaults.settings}
    rows: dict[tuple[str, Any], tuple[Check, list[str]]] = {}
    for check in CHECKS:
        judged = [
            design for design in designs if check.judges(design, judged_by(scenario), settings, scenario=scenario.name)
        ]
        if judged:
            _, known = rows.setdefault((check.name, check.decide), (check, []))
            known += [design for design in judged if design not in known]
    for check, known in rows.values():
        lines = wrapped(f"{check.kind.value}: {check.name}", "    - ")
        lines += wrapped(f"needs {EVIDENCE[check.decide]}", "      ")
        yield lines, tuple(design for design in designs if design in known)


def _unpromised(scenario: Scenario, designs: Sequence[str]) -> Iterator[tuple[list[str], tuple[str, ...]]]:
    named = judged_by(scenario)
    for each in UNPROMISED:
        of = tuple(design for design in designs if each.holds(design, named, alone=len(designs) == 1))
        if of:
            yield wrapped(f"not promised: {each.what}", "    - "), of


def _short(judged: Sequence[str], designs: Sequence[str]) -> str:
    """Some of the designs, by those that are left out if these are fewer."""
    others = [design for design in designs if design not in judged]
    return f"all but {' and '.join(others)}" if len(others) <= 2 < len(judged) else ", ".join(judged)


def catalogue() -> dict[str, dict[str, Any]]:
    """Every scenario by name, and what is played by hand, with its steps in words."""
    known: tuple[Scenario, ...] = (*CATALOGUE.values(), PLAYGROUND)
    return {scenario.name: for_readers(scenario) for scenario in known}
