"""What was done: each scenario's symptom, steps and what to look for, and the conditions, in a form to run again."""

from __future__ import annotations

import datetime
import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from comparison.report.summaries.figures import SIMULATED, number
from comparison.report.summaries.repeats import seeds_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comparison.results.result import Result
    from comparison.results.run import Run

#: Of more commands than these, the first and the last date are shown.
DATES_MAX = 3
_STAMP = re.compile(r"(\d{8}T\d{6})Z")
#: Parameters that are named beside the settings, or say nothing of what was run.
_NOT_SETTINGS = ("seed", "preset", "settings", "time_limit_s")


@dataclass(frozen=True, slots=True)
class About:
    """What the report gets besides the result; everything may be missing.

    `command` is what command.json or run.json holds; `catalogue` describes scenarios by name, with symptom, steps in
    words, look_for, references and defaults.
    """

    command: Mapping[str, Any] = field(default_factory=dict)
    catalogue: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    others: Sequence[Mapping[str, Any]] = ()  #: further commands, of a page of several results


def conditions(result: Result, about: About) -> list[tuple[str, str]]:
    """Everything that a reader needs to run it again, as label and text."""
    runs = result.runs
    commands = [about.command, *about.others]
    seeds = sorted({seed for run in runs for seed in seeds_of(run)})
    repeats = max((run.repeat for run in runs), default=1)
    found = [
        *(("command", text) for text in _each(shlex.join(map(str, each.get("command", ()))) for each in commands)),
        ("date", _dates(runs)),
        *(("versions", text) for text in _each(map(_versions, commands))),
        *(("machine", text) for text in _each(map(_machine, commands))),
        ("clock", SIMULATED if any(run.parameters.get("simulated") for run in runs) else ""),
        ("links", "; ".join(sorted({str(run.parameters.get("links", "")) for run in runs} - {""}))),
        ("seed", f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else "".join(map(str, seeds))),
        ("repeats", str(repeats)),
        ("preset", ", ".join(sorted({str(run.parameters.get("preset", "")) for run in runs} - {""}))),
        *(("setting", text) for text in _settings(runs, about)),
    ]
    return [(label, text) for label, text in found if text]


def _each(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _versions(command: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {version}" for name, version in command.get("versions", {}).items())


def _machine(command: Mapping[str, Any]) -> str:
    machine = command.get("machine", {})
    return ", ".join(f"{value} cores" if name == "cores" else str(value) for name, value in machine.items())


def _dates(runs: Sequence[Run]) -> str:
    """When the commands were started, from their folders' names where nothing else says it."""
    stamps = {match[1] for run in runs for match in [_STAMP.search(f"{run.run_id} {run.path}")] if match}
    dates = [
        f"{datetime.datetime.strptime(each, '%Y%m%dT%H%M%S').replace(tzinfo=datetime.UTC):%Y-%m-%d %H:%M:%S} UTC"
        for each in sorted(stamps)
    ]
    return ", ".join(dates) if len(dates) <= DATES_MAX else f"{dates[0]} to {dates[-1]}"


def _settings(runs: Sequence[Run], about: About) -> Iterator[str]:
    """Settings and parameters that differ from the scenario's defaults, and by the scenario itself, each once."""
    seen: dict[str, dict[str, None]] = {}
    for run in runs:
        parameters = run.parameters
        known = about.catalogue.get(run.scenario, {})
        defaults = known.get("defaults", {})
        own = known.get("settings", {})
        for name, value in (parameters.get("settings") or {}).items():
            whose = " (the scenario's own)" if own.get(name) == value else ""
            seen.setdefault(f"{name}={value}{whose}", {})[run.scenario] = None
        for name, default in defaults.items():
            value = parameters.get(name)
            if name not in _NOT_SETTINGS and value is not None and value != default:
                text = f"{name} {_plain(value)} (default {_plain(default)})"
                seen.setdefault(text, {})[run.scenario] = None
    for text, scenarios in seen.items():
        yield f"{text}: {', '.join(scenarios)}"


def _plain(value: object) -> str:
    return number(value) if isinstance(value, int | float) else str(value)


def as_text(rows: Sequence[tuple[str, str]]) -> str:
    """The conditions as text to be copied; the command stands alone, so that it can be run."""
    return "\n".join(text if label == "command" else f"# {label}: {text}" for label, text in rows)
