"""The catalogue in words: a scenario, all of them for reports, and what a file can be made of."""

from __future__ import annotations

import shlex
import textwrap
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from comparison.pipeline.figures.deciding import EVIDENCE
from comparison.pipeline.figures.unpromised import UNPROMISED
from comparison.pipeline.figures.verdicts import CHECKS
from comparison.scenarios.plan.catalogue import CATALOGUE, judged_by
from comparison.scenarios.plan.faults import FAULTS, Choice
from comparison.scenarios.plan.fields import default_of, has_default, types_of
from comparison.scenarios.plan.fields import in_words as kind_in_words
from comparison.scenarios.plan.played import PLAYGROUND
from comparison.scenarios.plan.points import KILLED, POINTS
from comparison.scenarios.plan.step_names import STEPS
from comparison.scenarios.plan.vocabulary import KillAtPoint
from comparison.scenarios.plan.wording import for_readers, in_words, summary_of
from comparison.screen.counted import counted
from kernel.designs import DESIGN_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comparison.pipeline.figures.verdicts import Check
    from comparison.scenarios.plan.faults import Number
    from comparison.scenarios.plan.scenario import Scenario


#: Of a terminal.
WIDTH = 80


def vocabulary_text() -> str:
    """Every step, fault and check with its parameters, as text."""
    lines = ["Steps:"]
    for name, step in STEPS.items():
        lines += [f"  {name}", f"      {summary_of(step)}"]
        kinds = types_of(step)
        for field in fields(step):
            optional = f"default {default_of(field)!r}" if has_default(field) and default_of(field) else "optional"
            needed = optional if has_default(field) else "required"
            lines.append(f"      {field.name}: {kind_in_words(kinds[field.name])}, {needed}")
            if step is KillAtPoint:
                lines += _points(field.name)
    lines += ["", "Faults, for inject:"]
    for fault in FAULTS.values():
        healed = f" Healed: {fault.heals}" if fault.heals else ""
        lines += [
            f"  {fault.name}",
            f"      {fault.does}{healed}",
            f"      target: {'; '.join(k.value for k in fault.targets)}",
        ]
        lines += [f"      {each.name}: {_range(each)}, default {each.default}" for each in fault.parameters]
    lines += ["", "Checks, for expectations:"]
    for name in dict.fromkeys(check.name for check in CHECKS):
        lines += [f"  {name}", *_check(name)]
    return "\n".join(lines) + "\n"


def _check(name: str) -> list[str]:
    """What a check says, of which designs; one that depends on the scenario says several things."""
    designs: dict[str, list[str]] = {}
    for check in CHECKS:
        if check.name == name:
            of = designs.setdefault(summary_of(check.decide), [])
            of += [each for each in DESIGN_NAMES if check.is_about(each) and each not in of]
    return [
        line
        for says, of in designs.items()
        for line in (f"      {says}", f"      of {'every design' if len(of) == len(DESIGN_NAMES) else ', '.join(of)}")
    ]


def _points(parameter: str) -> list[str]:
    """What `kill-at-point` can name: the points of each design, and what is killed."""
    if parameter == "target":
        return [f"        one of {', '.join(KILLED)}"]
    names: dict[str, list[str]] = {}
    for design, points in POINTS.items():
        names.setdefault(", ".join(point.name for point in points), []).append(design)
    return [
        line for points, designs in names.items() for line in _wrapped(f"{', '.join(designs)}: {points}", "        ")
    ]


def scenario_text(scenario: Scenario, given: str) -> str:
    """A scenario: its symptom, its steps, and what is expected of each design; `given` is its name, or its file."""
    lines = [*_wrapped(f"{scenario.name}: {scenario.symptom}"), "", "What to look for:"]
    for each in scenario.look_for:
        lines += _wrapped(each, "  - ")
    lines += ["", "Steps:"]
    for step in scenario.steps:
        lines += _wrapped(in_words(step), "  - ")
    if scenario.settings:
        pairs = ", ".join(f"{name}={value}" for name, value in scenario.settings.items())
        lines += ["", *_wrapped(f"Settings: {pairs}")]
    lines += ["", *_wrapped(f"Unless options say otherwise: {_defaults(scenario)}.")]
    for why in dict.fromkeys(scenario.not_applicable.values()):
        designs = [design for design, each in scenario.not_applicable.items() if each == why]
        lines += ["", *_wrapped(f"Not for {', '.join(designs)}: {why}.")]
    lines += ["", *_expectations(scenario)]
    if scenario.references:
        lines += ["", *_wrapped(f"References: {'; '.join(scenario.references)}")]
    variants = [each.name for each in CATALOGUE.values() if each.variant_of == scenario.name]
    lines += ["", *_wrapped(f"Run it: rebalance-lab run {shlex.quote(given)}")]
    if variants:
        lines += _wrapped(f"Runs with it: {', '.join(variants)}")
    if scenario.variant_of:
        lines += _wrapped(f"It runs with {scenario.variant_of}, of which it is a variant.")
    return "\n".join(lines) + "\n"


def _wrapped(text: str, bullet: str = "") -> list[str]:
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
        "model. A verdict is unknown if the run lacks what it needs. What is not promised is measured, and not judged.",
        WIDTH,
    )
    for judged in sorted(by_designs, key=lambda judged: (-len(judged), designs.index(judged[0]))):
        heading = "every design" if len(judged) == len(designs) > 1 else _short(judged, designs)
        lines += [*_wrapped(f"{heading}:", "  "), *by_designs[judged]]
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
        lines = _wrapped(f"{check.kind.value}: {check.name}", "    - ")
        lines += _wrapped(f"needs {EVIDENCE[check.decide]}", "      ")
        yield lines, tuple(design for design in designs if design in known)


def _unpromised(scenario: Scenario, designs: Sequence[str]) -> Iterator[tuple[list[str], tuple[str, ...]]]:
    named = judged_by(scenario)
    for each in UNPROMISED:
        of = tuple(design for design in designs if each.holds(design, named, alone=len(designs) == 1))
        if of:
            yield _wrapped(f"not promised: {each.what}", "    - "), of


def _short(judged: Sequence[str], designs: Sequence[str]) -> str:
    """Some of the designs, by those that are left out if these are fewer."""
    others = [design for design in designs if design not in judged]
    return f"all but {' and '.join(others)}" if len(others) <= 2 < len(judged) else ", ".join(judged)


def _range(parameter: Number | Choice) -> str:
    if isinstance(parameter, Choice):
        return f"one of {', '.join(parameter.words)}"
    return f"{parameter.least} to {parameter.most}"


def catalogue() -> dict[str, dict[str, Any]]:
    """Every scenario by name, and what is played by hand, with its steps in words."""
    known: tuple[Scenario, ...] = (*CATALOGUE.values(), PLAYGROUND)
    return {scenario.name: for_readers(scenario) for scenario in known}
